"""The first page: what has to be looked at, what changed, what is being measured, and the fleet at a glance."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from dashboard.reading import alerts as alert_reading
from dashboard.reading.runs import table as run_table
from dashboard.views.access import page, person
from dashboard.views.lists import first
from farm.accounts.selectors import invitations_of
from farm.alerts.selectors.pages import alert_counts, alerts_in, events_since, releases_since
from farm.fleet.selectors import nodes_listed
from farm.fleet.selectors.nodes import nodes_online
from farm.registry.confinement import current_confinement
from farm.registry.selectors import versions_visible_to
from farm.rules.wording import numbers
from farm.runs.selectors import runs_listed
from farm.runs.selectors.pages import open_run_counts, open_runs
from farm.runs.selectors.runs import shown_states
from farm.runs.states import FARM_MADE, RunState

if TYPE_CHECKING:
    from farm.accounts.models import User


NAME = "onnxfarm_visit"
SALT = "dashboard.visit"
ENDS_AFTER = timedelta(minutes=30)
KEPT_S = 365 * 24 * 3600
RECENT = 8
NODES = 12
ALERTS = 10
# of each sort of change
CHANGES = 6


@dataclass(frozen=True)
class Visit:
    """`since`: when the visit before this one ended; None on the first one."""

    since: datetime | None
    now: datetime

    def keep(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Notes in the browser that the reader was here."""
        since = int(self.since.timestamp()) if self.since is not None else 0
        value = f"{person(request).pk}:{since}:{int(self.now.timestamp())}"
        response.set_signed_cookie(
            NAME,
            value,
            salt=SALT,
            max_age=KEPT_S,
            httponly=True,
            samesite="Lax",
            secure=bool(settings.SESSION_COOKIE_SECURE),
        )
        return response


def visit(request: HttpRequest) -> Visit:
    """The reader's visit as their browser remembers it; a first one for another reader's cookie, or a forged one."""
    now = timezone.now()
    parts = (request.get_signed_cookie(NAME, default="", salt=SALT) or "").split(":")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or parts[0] != str(person(request).pk):
        return Visit(None, now)
    since, last = (datetime.fromtimestamp(int(part), UTC) for part in parts[1:])
    if now - last > ENDS_AFTER:
        return Visit(last, now)
    return Visit(since if int(parts[1]) else None, now)


@page
def home(request: HttpRequest) -> HttpResponse:
    """Open alerts, what changed since the last visit, runs in progress, latest results, the fleet."""
    user = person(request)
    # a part that fills in by itself is no visit
    is_part = bool(request.headers.get("HX-Request"))
    here = visit(request)
    known = open_runs(user)
    states = shown_states(run for run, *_ in known)
    opened = [
        {"run": run, "ended": ended, "planned": planned or 1, "state": states[run.pk]} for run, ended, planned in known
    ]
    open_count, searches = open_run_counts(user)
    online, node_count = nodes_online(user)
    counts = alert_counts(user)
    # what the farm measures to be sure of something stands with its watch or alert, and in the list of all runs
    recent = first(runs_listed(user).filter(state=RunState.FINISHED).exclude(reason__in=FARM_MADE), RECENT)
    context = {
        "invitations": list(invitations_of(user)),
        "alert_count": counts["open"],
        "alert_table": alert_reading.table(alerts_in(user, "open")[:ALERTS]) if counts["open"] else None,
        "alerts_shown": ALERTS,
        "since": here.since,
        "changes": changes_since(user, here.since) if here.since is not None and not is_part else [],
        "open_runs": opened,
        "open_count": open_count,
        "recent": run_table(recent, shown_states(recent)) if recent else None,
        "nodes": list(nodes_listed(user).order_by("-state", "name")[:NODES]),
        "walls": current_confinement(),
        "headline": headline(
            alerts=counts["open"], runs=open_count, searches=searches, online=online, nodes=node_count
        ),
    }
    response = render(request, "dashboard/home.html", context)
    return response if is_part else here.keep(request, response)


def headline(*, alerts: int, runs: int, online: int, nodes: int, searches: int = 0) -> str:
    """What is going on, in one sentence; what has to be looked at comes first. `searches`: runs for alerts."""
    first = f"{numbers.counted(alerts, 'open alert')}; " if alerts else ""
    parts = [f"{numbers.counted(runs, 'run')} in progress"] if runs else []
    parts += [f"{numbers.counted(searches, 'run')} for alerts"] if searches else []
    measured = ", ".join(parts) or "nothing is being measured"
    fleet = f"{online} of {numbers.counted(nodes, 'node')} online" if nodes else "no node has joined yet"
    text = f"{first}{measured}; {fleet}"
    return f"{text[:1].upper()}{text[1:]}"


def changes_since(user: "User", moment: datetime) -> list[alert_reading.Change]:
    """What happened after a moment, newest first; of each sort the newest few."""
    finished = runs_listed(user).filter(state=RunState.FINISHED, finished_at__gte=moment)
    runs = finished.exclude(reason__in=FARM_MADE).order_by("-finished_at")
    versions = versions_visible_to(user).filter(created_at__gte=moment).prefetch_related(None).defer("inspection")
    nodes = nodes_listed(user).filter(created_at__gte=moment).order_by("-pk")
    return alert_reading.newest_first(
        [
            *map(alert_reading.of_alert, events_since(user, moment)[:CHANGES]),
            *map(alert_reading.of_run, runs[:CHANGES]),
            *map(alert_reading.of_version, versions[:CHANGES]),
            *map(alert_reading.of_node, nodes[:CHANGES]),
            *(alert_reading.of_release(*row) for row in releases_since(moment)),
        ]
    )
