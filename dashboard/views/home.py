"""The first page: what is being measured, what came out last, and the fleet at a glance."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import numbers
from dashboard.views.access import page, person
from farm.fleet.selectors import nodes_visible_to
from farm.runs.selectors import runs_visible_to
from farm.runs.selectors.pages import open_runs
from farm.runs.states import RunState

RECENT = 8
NODES = 12


@page
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Runs in progress, latest results, the fleet; an invitation while there is nothing."""
    user = person(request)
    opened = [{"run": run, "ended": ended, "planned": run.cell_count or 1} for run, ended in open_runs(user)]
    nodes = list(nodes_visible_to(user).order_by("-state", "name")[:NODES])
    context = {
        "open_runs": opened,
        "recent": list(runs_visible_to(user).filter(state=RunState.FINISHED)[:RECENT]),
        "nodes": nodes,
        "headline": headline(len(opened), sum(node.state == "online" for node in nodes), len(nodes)),
    }
    return render(request, "dashboard/home.html", context)


def headline(runs: int, online: int, nodes: int) -> str:
    """What is going on, in one sentence."""
    measured = f"{numbers.count(runs, 'run')} in progress" if runs else "Nothing is being measured"
    if not nodes:
        return f"{measured}; no node has joined yet"
    return f"{measured}; {online} of {numbers.count(nodes, 'node')} online"
