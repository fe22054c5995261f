"""The fleet and its nodes: what is there, whether it is well, and the owner's orders."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.reading import file_rows, node_settings, qr, queues, surroundings
from dashboard.views import downloads, lendings
from dashboard.views.access import action, page, person
from dashboard.views.lists import paged
from dashboard.views.orders import ordered
from dashboard.views.team_choice import team_choice
from farm.accounts.selectors import team_to_write
from farm.base.refusals import Invalid, Missing
from farm.fleet import selectors, services
from farm.fleet.enrolment import joining
from farm.fleet.states import NodeHealth
from farm.rules.comparing.margins import NoiseFloor
from farm.rules.presenting.tables import Column, Number, Table, counted, written
from farm.rules.wording import numbers
from farm.runs.selectors import backlog, blocks_on, last_blocks_of

if TYPE_CHECKING:
    from farm.fleet.models import Node

EVENTS_SHOWN = 50
BLOCKS_SHOWN = 10
Order = Callable[..., object]
ORDERS: dict[str, Order] = {
    "approve": services.approve,
    "drain": services.drain,
    "resume": services.resume,
    "revoke": services.revoke,
}
LABELS = {"approve": "Approve", "drain": "Drain", "resume": "Resume", "revoke": "Retire"}
# what may be ordered of a node in each health
ORDERS_OF = {
    NodeHealth.PENDING: ("approve", "revoke"),
    NodeHealth.ACTIVE: ("drain", "revoke"),
    NodeHealth.DRAINING: ("resume", "revoke"),
    NodeHealth.QUARANTINED: ("resume", "revoke"),
}
DONE = {"approve": "approved", "drain": "draining", "resume": "taking blocks again", "revoke": "retired"}


@page
def fleet(request: HttpRequest) -> HttpResponse:
    """Every node of the reader's teams."""
    if downloads.is_wanted(request):
        every = selectors.nodes_visible_to(person(request))[: downloads.MOST_ROWS]
        return downloads.as_file(
            request, "fleet", every, lambda node: file_rows.node(node, selectors.false_alarms(node))
        )
    return render(request, "dashboard/fleet.html", {**_fleet(request), "code": ""})


@action
def invite(request: HttpRequest) -> HttpResponse:
    """Shows a new one-off code with the command that uses it; it is shown this once."""
    user = person(request)
    try:
        team = team_to_write(user, name=request.POST.get("team", ""))
    except Invalid as refusal:
        context = {**_fleet(request), "code": "", "team_error": str(refusal)}
        return render(request, "dashboard/fleet.html", context, status=refusal.status)
    row, code = services.invite(team=team, by=user)
    how = joining(code)
    known = {
        "code": code,
        "team": team,
        "expires_at": row.expires_at,
        "joining": how,
        "joining_code": qr.code_of(how.tab),
    }
    context = {**_fleet(request), **known}
    return render(request, "dashboard/fleet.html", context)


def _fleet(request: HttpRequest) -> dict[str, object]:
    """What waits, and a page of nodes: what each measures now, how often it was wrong, and that of all of them."""
    user = person(request)
    nodes = paged(request, selectors.nodes_listed(user))
    busy = blocks_on(nodes)
    rows = [{"node": node, "block": busy.get(node.pk), "alarms": selectors.false_alarms(node)} for node in nodes]
    there = backlog.takers(user)
    waiting = backlog.queues(user, there)
    return {
        "headline": queues.headline(online=len(there), nodes=nodes.paginator.count, queues=waiting),
        "nodes": rows,
        "page": nodes,
        "alarms": selectors.of_fleet(user),
        "queues": queues.table(waiting),
        "lendings": lendings.offered(request),
        "team_choice": team_choice(user),
    }


@page
def node(request: HttpRequest, node_id: int) -> HttpResponse:
    """One node: facts, proven tags, runtimes, noise floor and log."""
    return node_page(request, selectors.node(person(request), node_id))


def node_page(request: HttpRequest, row: "Node", *, status: int = 200, **more: object) -> HttpResponse:
    """The page of one node; `more`: what was typed into its form, and what is wrong with it."""
    floor = selectors.noise_floor(row)
    before = last_blocks_of(row, most=BLOCKS_SHOWN)
    context = {
        "node": row,
        "facts": row.facts,
        "limits": node_settings.shown(row),
        "lendings": list(row.lendings.select_related("team", "answered_by")),
        "errors": {},
        "self_test": row.self_test,
        "advice": surroundings.advice(row.facts, before),
        "before": surroundings.table(before, lambda run_id: reverse("dashboard:run", args=[run_id])),
        "floor": floor,
        "floor_table": floor_table(floor),
        "alarms": selectors.false_alarms(row),
        "events": list(selectors.events_of(row)[:EVENTS_SHOWN]),
        "block": blocks_on([row]).get(row.pk),
        "may_manage": selectors.can_manage_node(person(request), row),
        "orders": [(what, LABELS[what]) for what in ORDERS_OF.get(NodeHealth(row.health), ())],
        **more,
    }
    return render(request, "dashboard/node.html", context, status=status)


def floor_table(floor: NoiseFloor | None) -> Table:
    """The smallest change seen after each number of rounds."""
    columns: tuple[Column[tuple[int, float]], ...] = (
        Number("rounds", lambda seen: counted(seen[0])),
        Number("smallest change seen", lambda seen: written(seen[1], numbers.share)),
    )
    seen = floor.smallest_detectable.items() if floor else ()
    return Table.of("floor", "What so many rounds see on this node", columns, seen)


@action
def order(request: HttpRequest, node_id: int, what: str) -> HttpResponseBase:
    """An order of the owner; a refusal is said on the node's page."""
    row = selectors.node(person(request), node_id)
    if what not in ORDERS:
        raise Missing(f"Unknown action “{what}”.", hint="See the node's page for available actions.")
    act = ORDERS[what]
    ordered(request, lambda: act(node=row, by=person(request)), lambda _: f"{row.name} is {DONE[what]}.")
    return redirect("dashboard:node", node_id=node_id)
