"""Alerts: the list, one of them, the digest, and what people do with them."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.figures import operators, ratios
from dashboard.figures.figure import Figure
from dashboard.reading import alert as reading
from dashboard.reading import alerts as listing
from dashboard.reading import digest as digests
from dashboard.reading import file_rows
from dashboard.reading.alert_timeline import timeline
from dashboard.views import downloads
from dashboard.views.access import page, person
from dashboard.views.home import changes_since
from dashboard.views.list_views import Listing, Together, chosen, ordered
from dashboard.views.lists import paged, searched
from farm.accounts.selectors import can_write, members_of, teams_visible_to, teams_writable_by
from farm.accounts.states import WRITING_ROLES
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors import pages
from farm.alerts.selectors.evidence import graph_changes
from farm.alerts.services.digests import digest_of
from farm.rules.cells import commands
from farm.rules.findings.kinds import KINDS, title_of
from farm.rules.presenting.lines import BUSY

if TYPE_CHECKING:
    from datetime import datetime

    from farm.accounts.models import Team, User
    from farm.alerts.models import Alert

LABELS = {
    "open": "open",
    "snoozed": "snoozed",
    "infra": "could not measure",
    "resolved": "resolved",
    "invalid": "false positives",
    "all": "all",
}
WATCH_COMMAND = "onnxfarm watch add upgrades --model MODEL --reference 1.29.0"


@page
def alerts(request: HttpRequest) -> HttpResponse:
    """Alerts of the reader's teams, newest first; open ones unless the address says otherwise."""
    user, wanted = person(request), searched(request)
    name = request.GET.get("state", "open")
    name = name if name in LABELS else "open"
    kind = chosen(request, "kind", "Kind", [(key, kind.title.word) for key, kind in KINDS.items()])
    rows = pages.alerts_in(user, name)
    if wanted:
        rows = rows.filter(model__name__icontains=wanted)
    if kind.value:
        rows = rows.filter(pk__in=pages.of_kind(kind.value))
    rows = ordered(request, pages.with_size(rows) if "change" in request.GET.get("sort", "") else rows, listing.ORDERS)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "alerts", rows[: downloads.MOST_ROWS], file_rows.alert)
    counts = pages.alert_counts(user)
    shown = paged(request, rows)
    writable = set(teams_writable_by(user).values_list("pk", flat=True))
    table = listing.table(shown, writable=writable, is_ordered=True, box="alerts")
    context = {
        "headline": listing.headline(counts),
        "list": Listing(
            table,
            shown,
            [kind],
            wanted,
            searches="Model",
            kept=[("state", name)],
            together=[Together("Acknowledge", reverse("dashboard:acknowledge_alerts"))] if table.box else [],
            is_posted=True,
        ),
        "lists": [(key, label, counts[key]) for key, label in LABELS.items()],
        "state": name,
        "has_any": bool(counts["all"]),
        "command": WATCH_COMMAND,
    }
    return render(request, "dashboard/alerts.html", context)


@page
def digest(request: HttpRequest) -> HttpResponse:
    """What the watches of each team did in some days, as channels are told it."""
    user, days = person(request), digests.days_of(request.GET.get("days", ""))
    since = digests.since(days)
    told = [_digest(user, team, since) for team in teams_visible_to(user)]
    context = {
        "days": days,
        "choices": digests.DAYS,
        "digests": told,
        "headline": digests.headline(told, days),
        # alerts stand above, with their figures
        "changes": [one for one in changes_since(user, since) if "/alerts/" not in one.href],
    }
    return render(request, "dashboard/digest.html", context)


def _digest(user: "User", team: "Team", since: "datetime") -> digests.Digest:
    opened = pages.alerts_in(user, "all").filter(team=team, opened_at__gte=since)
    rounds = selectors.rounds_judged(team, since=since)
    return digests.told(
        team, digest_of(team, since=since), rounds=rounds[: digests.SHOWN], opened=opened[: digests.SHOWN]
    )


@page
def alert(request: HttpRequest, alert_id: int) -> HttpResponse:
    """One alert: what changed, since when, through what, what undoes it, and what was done about it."""
    return shown(request, selectors.alert(person(request), alert_id))


def shown(request: HttpRequest, row: "Alert", *, status: int = 200, **more: object) -> HttpResponse:
    """The page of one alert; `more`: errors and what was typed into its forms."""
    kinds = listing.kinds_of(row)
    members = [member for member in members_of(row.team) if member.role in WRITING_ROLES]
    since_when, may_write = reading.question(row, "since_when"), can_write(person(request), team=row.team)
    may_ask = bool(row.node) and any(not one.resolved_in for one in row.symptoms.all())
    context = {
        "alert": row,
        "state": listing.state_of(row),
        "kinds": [title_of(kind) for kind in kinds],
        "kind_names": kinds,
        "bisect_command": bisect_command(row),
        "opening": reading.opening(row),
        "evidence": reading.evidence(row),
        "busy": BUSY if any(map(reading.is_by_processor_time, row.symptoms.all())) else "",
        "figure": _ratios(row),
        "operators": _operators(row),
        "graph_changes": graph_changes(leading) if (leading := reading.leading(row)) is not None else [],
        "since_when": since_when,
        "first_bad": reading.first_bad(row, since_when, may_ask=may_write and may_ask),
        "work_around": reading.question(row, "work_around"),
        "members": [member.user for member in members],
        "timeline": timeline(row),
        "may_write": may_write,
        "is_unsettled": row.state in ("open", "acknowledged"),
        "may_ask": may_ask,
        "report_command": f"onnxfarm report {row.pk}",
        "has_evidence": any(one.run_id for one in row.symptoms.all()),
        "errors": {},
        "typed": {},
        **more,
    }
    return render(request, "dashboard/alert.html", context, status=status)


def bisect_command(row: "Alert") -> str:
    """The bisection as it is asked for in a terminal."""
    return commands.bisect_command(
        row.version.artifact.main, good=row.good, bad=row.bad, provider=reading.provider_of(row)
    )


def _ratios(row: "Alert") -> Figure | None:
    """All compared series on one axis, where there are several."""
    named = reading.named(row)
    return ratios.ratios(named) if len(named) > 1 else None


def _operators(row: "Alert") -> Figure | None:
    """The operators behind the leading change; traces are of inferences, so they explain a change of latency alone."""
    symptom = reading.leading(row)
    is_of_latency = symptom is not None and symptom.kind == "slower"
    comparison = reading.comparison_of(symptom) if symptom is not None and is_of_latency else None
    if comparison is None or not comparison.operators:
        return None
    return operators.operators(comparison, reading.sides(row))
