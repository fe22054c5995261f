"""The home page: open alerts, what got better or worse in the last week, open runs, and the fleet."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from dashboard import markup
from dashboard.reading import alerts as alert_reading
from dashboard.reading import news as news_reading
from dashboard.reading import setup
from dashboard.reading.facts import Fact
from dashboard.views.access import page, signed_in_user
from farm.accounts.selectors import open_invitations_of
from farm.alerts.selectors.pages import count_alerts_by_list, list_alerts, releases_since
from farm.alerts.states import AlertState
from farm.fleet.selectors import nodes_without_logs
from farm.fleet.selectors.nodes import count_nodes_online, nodes_awaiting_approval
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.confinement import current_confinement
from farm.rules.wording import numbers
from farm.runs.selectors.outlooks import outlook_without_forecast
from farm.runs.selectors.pages import newest_finished_runs, open_run_counts, open_runs
from farm.runs.selectors.queue_order import priority_key
from farm.runs.selectors.runs import shown_states

if TYPE_CHECKING:
    from farm.alerts.models import Alert
    from farm.fleet.models import Node
    from farm.runs.models import Run


WEEK = timedelta(days=7)
NODES = 12
REST = "Nothing needs you"
ALERTS = 5
# the gravest alert is looked for among at most so many of the newest open alerts
MAX_WEIGHED = 25


@page
def home(request: HttpRequest) -> HttpResponse:
    """Show open alerts, models that got better or worse in the last week, runs in progress, and the fleet."""
    user = signed_in_user(request)
    known = open_runs(user)
    states = shown_states(run for run, *_ in known)
    opened = [(run, ended, planned or 1, states[run.pk]) for run, ended, planned in known]
    open_count, searches = open_run_counts(user)
    online, node_count = count_nodes_online(user)
    counts = count_alerts_by_list(user)
    nodes = list(nodes_without_logs(user).order_by("-state", "name")[:NODES])
    has_team, week = user.memberships.exists(), timezone.now() - WEEK
    no_fleet = "no node has joined yet" if has_team else ""
    fleet = f"{online} of {numbers.counted(node_count, 'node')} online" if node_count else no_fleet
    seen = f"{numbers.counted(counts['acknowledged'], 'acknowledged alert')}" if counts["acknowledged"] else ""
    alerts = list(list_alerts(user, "open")[:MAX_WEIGHED]) if counts["open"] else []
    unseen = [alert for alert in alerts if alert.state == AlertState.OPEN]
    news = news_reading.make_news(newest_finished_runs(user), since=week)
    steps = setup.list_steps(user) if user.is_superuser else []
    invitations, pending = list(open_invitations_of(user)), list(nodes_awaiting_approval(user)[:NODES])
    set_up = setup.write_headline(steps) if not all(step.is_done for step in steps) else ""
    context = {
        "invitations": invitations,
        "set_up": set_up,
        "alert_count": counts["open"],
        "alert_table": alert_reading.make_table(alerts[:ALERTS]),
        "news": news,
        "releases": [news_reading.describe_releases(*row) for row in releases_since(week)],
        "open_runs": opened,
        "open_count": open_count,
        "searches": searches,
        "waits": describe_wait([run for run, *_ in known if states[run.pk] not in ("measuring", "settling")]),
        "has_team": has_team,
        "nodes": [_make_chip(node) for node in nodes],
        "pending": pending,
        "walls": current_confinement(),
        "headline": _write_headline(unseen, counts, news.headline, len(invitations) + len(pending)) or set_up or REST,
        "because": " · ".join(filter(None, (seen, news.counts, describe_activity(open_count, searches), fleet))),
    }
    return render(request, "dashboard/home.html", context)


def _write_headline(unseen: "Sequence[Alert]", counts: Mapping[str, int], worse: str, requests: int) -> str:
    """Write a headline about open alerts, else about the model that got worse, else about requests; empty without any.
    `unseen`: open alerts that nobody acknowledged; `worse`: a sentence about the model; `requests`: the number of
    invitations and of nodes to approve."""
    if unseen:
        return alert_reading.write_headline(unseen, counts["open"] - counts["acknowledged"])
    asked = f"{numbers.counted(requests, 'request')} {'needs' if requests == 1 else 'need'} you" if requests else ""
    return worse or asked


def describe_activity(runs: int, searches: int) -> str:
    """Say how many runs are in progress, or that nothing is being measured. `searches`: how many further runs the farm
    started itself, for searches and to confirm alerts."""
    parts = [f"{numbers.counted(runs, 'run')} in progress"] if runs else []
    parts += [f"{numbers.counted(searches, 'run')} for searches and alerts"] if searches else []
    return ", ".join(parts) or "nothing is being measured"


def describe_wait(queued: "Sequence[Run]") -> str:
    """Say why the next of the queued runs waits, and how many others wait. Empty where none is queued or no reason is
    known. The next run is the first by priority_key."""
    if not queued:
        return ""
    first = min(queued, key=priority_key)
    why = outlook_without_forecast(first.pk).idle_reason
    others = len(queued) - 1
    more = f" {numbers.counted(others, 'more run')} {'waits' if others == 1 else 'wait'}." if others else ""
    return f"Run {first.pk} waits. {why}{more}" if why else ""


def _make_chip(node: "Node") -> Fact:
    state = node.state if node.health == NodeHealth.ACTIVE else node.health
    href = reverse("dashboard:node", args=[node.pk])
    is_barred = node.state == NodeState.ONLINE and node.health == NodeHealth.ACTIVE and node.obstacle
    text = f"{node.name}, {node.obstacle}" if is_barred else node.name
    return Fact(markup.hardware_tags(node), text, href=href, state=state)
