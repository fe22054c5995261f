"""Runs as a list."""

from typing import TYPE_CHECKING

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.reading import file_rows
from dashboard.reading import runs as reading
from dashboard.views import downloads
from dashboard.views.access import page, person
from dashboard.views.lists import Filter, Listing, Together, chosen, ordered, paged, searched
from farm.accounts.selectors import teams_writable_by
from farm.registry.selectors import versions_named
from farm.rules.wording.vocabulary import ELSEWHERE, VERDICTS, WRONG
from farm.runs import selectors
from farm.runs.selectors import pages
from farm.runs.selectors.live import shown_states
from farm.runs.states import FARM_MADE, RunOutcome, RunReason, RunState

if TYPE_CHECKING:
    from farm.runs.models import Run

STATES = (("running", "in progress"), *((one.value, one.value) for one in RunOutcome if one.value))
# what the farm made to be sure of something stands apart, unless it is asked for
REASONS = (("every", "every run"), *((one.value, one.value) for one in RunReason if one.value))


@page
def runs(request: HttpRequest) -> HttpResponse:
    """Runs of the reader's teams, newest first."""
    user, wanted = person(request), searched(request)
    filters = [
        chosen(request, "state", "State", STATES),
        chosen(request, "verdict", "Verdict", [(word, word) for word in (WRONG, ELSEWHERE, *VERDICTS)]),
        chosen(request, "reason", "Why", REASONS, nothing="started by people or watches"),
    ]
    rows = ordered(request, narrowed(selectors.runs_listed(user), wanted, filters), reading.ORDERS)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "runs", rows[: downloads.MOST_ROWS], file_rows.run)
    shown = paged(request, rows)
    writable = set(teams_writable_by(user).values_list("pk", flat=True))
    listing = Listing(
        reading.table(shown, shown_states(shown), writable=writable, is_ordered=True, box="runs"),
        shown,
        filters,
        wanted,
        searches="Model",
        together=[Together("Compare", reverse("dashboard:compare"), key="c")],
    )
    return render(request, "dashboard/runs.html", {"list": listing})


def narrowed(rows: QuerySet["Run"], wanted: str, filters: list[Filter]) -> QuerySet["Run"]:
    """Those that the search and the filters of the address leave."""
    values = {filter_.name: filter_.value for filter_ in filters}
    if wanted:
        rows = rows.filter(version__in=versions_named(wanted))
    if values["state"] == RunState.RUNNING:
        rows = rows.filter(state__in=pages.OPEN_RUNS)
    elif values["state"]:
        rows = rows.filter(outcome=values["state"])
    if values["verdict"]:
        rows = rows.filter(lead__verdict=values["verdict"])
    if values["reason"] in RunReason.values and values["reason"]:
        return rows.filter(reason=values["reason"])
    return rows if values["reason"] else rows.exclude(reason__in=FARM_MADE)
