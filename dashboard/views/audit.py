"""The page of the audit log, with the events that the reader may see."""

from typing import TYPE_CHECKING

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.reading import file_rows
from dashboard.views import lists
from dashboard.views.access import page, signed_in_user
from farm.accounts.selectors import audit_events_visible_to
from farm.accounts.services import SHARE_OPENED
from farm.fleet.services.enrolment import ENROLMENT_VERB, VERB
from farm.rules.presenting.tables import Column, Entry, Prose, Table, as_time

if TYPE_CHECKING:
    from farm.accounts.models import AuditEvent

# what people and machines do without signing in; all else without an actor is done by the farm itself
STRANGERS_VERBS = (SHARE_OPENED, VERB, ENROLMENT_VERB)
NOTHING: tuple[object, ...] = (None, "", [], {})


def describe_facts(event: "AuditEvent") -> str:
    """Write the facts of an event: `role member, until 2026-12-01`. Facts without a value are left out."""
    known = {name: value for name, value in event.facts.items() if value not in NOTHING}
    return ", ".join(
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in known.items()
    )


def _describe_nobody(event: "AuditEvent") -> str:
    return "not signed in" if event.verb in STRANGERS_VERBS else "the farm"


COLUMNS: tuple[Column["AuditEvent"], ...] = (
    Column("What", lambda event: Entry(event.verb)),
    Column("Of", lambda event: Entry(event.subject)),
    Column(
        "Who", lambda event: Entry(event.actor.username) if event.actor else Entry("", soft=_describe_nobody(event))
    ),
    Column("When", lambda event: as_time(event.at)),
    Column("Team", lambda event: Entry(event.team.name if event.team else "")),
    Prose("Facts", lambda event: Entry(describe_facts(event), is_name=True)),
)


@page
def audit(request: HttpRequest) -> HttpResponse:
    """Show a page of the audit log, the newest events first. A search keeps the events whose verb, subject, actor or
    team contains the text. `as` asks for a file instead, of all pages but at most lists.MAX_ROWS rows."""
    rows, wanted = audit_events_visible_to(signed_in_user(request)), lists.read_search_words(request)
    if wanted:
        fields = ("verb", "subject", "actor__username", "team__name")
        rows = rows.filter(Q(**{f"{field}__icontains": wanted for field in fields}, _connector=Q.OR))
    if lists.wants_file(request):
        return lists.render_file(request, "audit", rows[: lists.MAX_ROWS], file_rows.event_row)
    events = lists.make_page(request, rows)
    table = Table.of("events", "Audit log", COLUMNS, events)
    listing = lists.Listing(table, events, words=wanted, searches="What, of, who, team")
    return render(request, "dashboard/audit.html", {"list": listing})
