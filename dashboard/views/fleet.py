"""The fleet page: the nodes and their queues, invitations for new nodes, and answers to nodes that others lend."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString, mark_safe

from dashboard.reading import file_rows
from dashboard.reading.ledgers import UNFORESEEN, describe_start
from dashboard.views import lists
from dashboard.views.access import action, carry_out, page, signed_in_user, team_choice
from dashboard.views.lists import make_page
from dashboard.views.node import Buttons, list_answerable
from farm.accounts.selectors import can_manage, team_to_write
from farm.base.refusals import Invalid, Missing
from farm.fleet import selectors, services
from farm.fleet.enrolment import make_join_commands
from farm.fleet.states import NodeHealth
from farm.rules.planning.time_left import format_about
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count
from farm.rules.wording import numbers
from farm.runs.selectors.forecasts import Forecast
from farm.runs.selectors.queues import Queue, current_work, online_nodes, queues, upcoming_blocks

if TYPE_CHECKING:
    from farm.fleet.models import Lending


# the white border of a QR code in modules, which cameras need
BORDER = 2


def draw_qr_code(address: str) -> SafeString:
    """Draw the address as a QR code in SVG; empty for an empty address, and where segno is not installed."""
    try:
        # segno is in the extra `server`; a farm that was upgraded without it shows only the link
        import segno
    except ImportError:
        return SafeString()
    if not address:
        return SafeString()
    drawn: str = segno.make(address, micro=False).svg_inline(border=BORDER, dark="#000", light="#fff", omitsize=True)
    return mark_safe(drawn.replace("<svg ", '<svg role="img" aria-label="The link as a QR code" ', 1))


COLUMNS: tuple[Column[Queue], ...] = (
    Column("Hardware", lambda queue: Entry(queue.hardware, is_name=True)),
    Number("blocks waiting", lambda queue: as_count(queue.waiting)),
    Number("being measured", lambda queue: as_count(queue.measuring)),
    Number("nodes", lambda queue: as_count(queue.nodes), note="online, and taking such blocks now"),
    Number(
        "work left",
        lambda queue: Entry(numbers.duration(round(60 * queue.minutes)), queue.minutes),
        note="all of it, by its plans and the machines’ pace; several machines share it",
    ),
    Prose("A block queued now starts", lambda queue: Entry(describe_queue_start(queue))),
)


def describe_queue_start(queue: Queue) -> str:
    """Say when a block that is queued now is expected to start: `at once`, `in about …`, or what it waits for."""
    if queue.start_s is None:
        if queue.nodes or not queue.barred_nodes:
            return UNFORESEEN if queue.nodes else "when a node that takes them comes online"
        return f"not yet: {'; '.join(queue.barred_nodes)}"
    return f"in {format_about(queue.start_s)}" if queue.start_s else "at once"


def write_headline(
    *, online: int, nodes: int, queues: Sequence[Queue], pending: Sequence[str] = (), barred: Sequence[str] = ()
) -> str:
    """Say how many nodes are online, how many blocks are being measured, how many wait, and how many of these no online
    node takes. `nodes`: how many were approved; `pending`: the names of those that wait for approval; `barred`: for
    each online node that takes no blocks, a clause that says why."""
    if not nodes and not pending:
        return "No node has joined yet"
    waiting = sum(queue.waiting for queue in queues)
    measuring = sum(queue.measuring for queue in queues)
    stuck = sum(queue.waiting for queue in queues if not queue.nodes)
    parts = [f"{numbers.listed(pending)} {'waits' if len(pending) == 1 else 'wait'} for approval"] if pending else []
    parts += barred if len(barred) < 2 else [f"{len(barred)} of them take no blocks now"]
    parts += [f"{numbers.counted(measuring, 'block')} being measured"] if measuring else []
    parts += [f"{waiting} waiting" if measuring else f"{numbers.counted(waiting, 'block')} waiting"] if waiting else []
    parts += [f"{stuck} of them that no node online takes now"] if stuck else []
    return f"{online} of {numbers.counted(nodes, 'node')} online; {', '.join(parts) or 'nothing waits'}"


@page
def fleet(request: HttpRequest) -> HttpResponse:
    """Show a page of the nodes that the reader may see, with the blocks that wait for them. `as` asks for a file
    instead, of all pages but at most lists.MAX_ROWS rows."""
    if lists.wants_file(request):
        every = selectors.nodes_visible_to(signed_in_user(request))[: lists.MAX_ROWS]
        return lists.render_file(
            request, "fleet", every, lambda node: file_rows.node_row(node, selectors.false_alarms(node))
        )
    return render(request, "dashboard/fleet.html", _list_nodes(request))


@action
def invite(request: HttpRequest) -> HttpResponse:
    """Make a code with which one machine joins the named team, and show it, this once, with the command that uses it. A
    team that the form cannot name is an error at its field, and no code is made."""
    user = signed_in_user(request)
    try:
        team = team_to_write(user, name=request.POST.get("team", ""))
    except Invalid as refusal:
        context = {**_list_nodes(request), "team_error": str(refusal)}
        return render(request, "dashboard/fleet.html", context, status=refusal.status)
    row, code = services.invite(team=team, by=user)
    how = make_join_commands(code)
    known = {
        "code": code,
        "team": team,
        "expires_at": row.expires_at,
        "joining": how,
        "joining_code": draw_qr_code(how.tab),
    }
    return render(request, "dashboard/fleet.html", {**_list_nodes(request), **known})


def _list_nodes(request: HttpRequest) -> dict[str, object]:
    """Make the context of the fleet page: a page of nodes with their current work, and the queues by hardware."""
    user = signed_in_user(request)
    nodes = make_page(request, selectors.nodes_without_logs(user))
    now = current_work(user, nodes)
    forecast = Forecast()
    waits = upcoming_blocks(user, nodes, forecast=forecast)
    rows = [
        {
            "node": node,
            "now": now[node.pk],
            "next": [(waiting, describe_start(waiting, node)) for waiting in waits[node.pk][:1]],
            "waiting": len(waits[node.pk]),
            "may_approve": node.health == NodeHealth.PENDING and selectors.can_manage_node(user, node),
        }
        for node in nodes
    ]
    there = online_nodes(user)
    waiting = queues(user, there, forecast=forecast)
    pending = [node.name for node in nodes if node.health == NodeHealth.PENDING]
    return {
        "headline": write_headline(
            online=len(there),
            nodes=nodes.paginator.count - len(pending),
            queues=waiting,
            pending=pending,
            barred=[
                f"{node.name} is {node.obstacle}"
                for node in there
                if node.obstacle and node.health not in (NodeHealth.PENDING, NodeHealth.RETIRED)
            ],
        ),
        "nodes": rows,
        "page": nodes,
        "alarms": selectors.false_alarms_of_fleet(user),
        "queues": Table.of("queues", "What waits for which hardware", COLUMNS, waiting),
        "lendings": list_offered_nodes(request),
        "trials": list_answerable(selectors.trials_awaiting_answer(user)[:SHOWN], user),
        "team_choice": team_choice(user),
    }


ANSWERS: dict[str, Callable[..., "Lending"]] = {"agree": services.agree, "decline": services.decline}
# the answers that an admin may give in each state of a lending, with the label of the button
BUTTONS: dict[str, Buttons] = {
    "asked": (("agree", "Agree"), ("decline", "Decline")),
    "agreed": (("decline", "Revoke"),),
    "declined": (("agree", "Agree"),),
}
SHOWN = 200


def list_offered_nodes(request: HttpRequest) -> list[tuple["Lending", Buttons]]:
    """List the nodes that others offered to the reader's teams, answered or not, at most SHOWN. Each has buttons for
    the possible answers, but only for readers who manage the team."""
    user = signed_in_user(request)
    rows = list(selectors.lendings_to_own_teams(user)[:SHOWN])
    # check the rights only once for each team
    managed = {team for team in {row.team for row in rows} if can_manage(user, team=team)}
    return [(row, BUTTONS[row.state] if row.team in managed else ()) for row in rows]


@action
def answer(request: HttpRequest, lending_id: int, what: str) -> HttpResponseBase:
    """Carry out an admin's answer, `agree` or `decline`, to a node that was offered to the team. Redirects to the fleet
    page, which shows a refusal. Raises Missing for any other answer."""
    user = signed_in_user(request)
    found = selectors.lending(user, lending_id)
    if what not in ANSWERS:
        raise Missing(f"Unknown answer “{what}”.", hint="See the fleet page for available answers.")
    carry_out(request, ANSWERS[what], lambda row: f"{row.node.name}: {row.words}", lending=found, by=user)
    return redirect("dashboard:fleet")
