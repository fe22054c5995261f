"""Lists the open blocks for each kind of hardware, the blocks that wait for each node, and what nodes do now.

`online_nodes` lists the online nodes that the user may see, with only the columns that queues need.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Exists, OuterRef, Q

from farm.accounts.selectors import Anyone
from farm.base.grouping import group_by
from farm.contract.version import name_node_queue
from farm.fleet.models import Node
from farm.fleet.selectors.nodes import newest_waits
from farm.fleet.states import NodeHealth, NodeState
from farm.rules.planning.schedule import Span
from farm.rules.presenting.idle_reasons import describe_unavailable_node
from farm.runs.models import Block, Run
from farm.runs.selectors.forecasts import Forecast
from farm.runs.states import OPEN_BLOCKS, BlockState

MAX_NEXT: Final = 20


@dataclass(frozen=True, slots=True)
class Queue:
    """The open blocks for a kind of hardware: how many wait or are measured, and how many minutes they will take.

    `minutes` is their sum, without the time that they wait and without blocks beyond those that a forecast covers.
    """

    hardware: str
    waiting: int
    measuring: int
    minutes: float
    # how many online nodes take such blocks, busy or not
    nodes: int
    # the nodes that would take them but may not now, each with the reason in words
    barred_nodes: Sequence[str]
    # in how many seconds a block that a person queues now begins; None if that is unknown
    start_s: float | None


@dataclass(frozen=True, slots=True)
class NextBlock:
    """A block that waits for a node, with its forecast: when it begins, and how many minutes it takes.

    `run` is the id of the block's run, None if the reader may not see it. Both times are None if there is no forecast.
    """

    run: int | None
    team: str
    begins_in_minutes: float | None
    minutes: float | None


@dataclass(frozen=True, slots=True)
class Activity:
    """What a node does now: it measures a run for a team, or waits for something."""

    # the run's id; None if the reader may not see it, or nothing is measured
    run: int | None = None
    # empty while the node measures nothing
    team: str = ""
    since: datetime | None = None
    waits_for: str = ""

    @property
    def words(self) -> str:
        """What the node does, in a few words: the run that it measures, or what it waits for, or `idle`.

        A run that the reader may not see is called by its team.
        """
        if not self.team:
            return self.waits_for or "idle"
        return f"run {self.run}" if self.run is not None else f"a run of {self.team}"


class _OpenBlock(NamedTuple):
    pk: int
    hardware: str
    state: str
    queues: list[str]
    only_node: int | None
    team: int
    uploader: int | None

    @property
    def target_queues(self) -> list[str]:
        return self.queues if self.only_node is None else [name_node_queue(str(self.only_node))]


def online_nodes(user: Anyone) -> list[Node]:
    columns = ("id", "name", "team", "health", "tags", "owner_tags", "settings_json", "owner", "host", "sandbox")
    return list(Node.objects.visible_to(user).filter(state=NodeState.ONLINE).only(*columns))


def queues(user: Anyone, nodes: Sequence[Node], *, forecast: Forecast) -> list[Queue]:
    """Group the open blocks that the user may see by hardware, the kind with most waiting blocks first.

    `nodes` are those of `online_nodes`.
    """
    rows = Block.objects.filter(run__in=Run.objects.visible_to(user).order_by(), state__in=OPEN_BLOCKS)
    columns = ("pk", "hardware", "state", "queues", "only_node_id", "run__team_id", "run__version__uploaded_by_id")
    blocks = (_OpenBlock(*row) for row in rows.order_by().values_list(*columns))
    by_hardware = group_by(blocks, lambda block: block.hardware)
    starts_s = forecast.forecast_starts_s({name: [block.pk for block in alike] for name, alike in by_hardware.items()})
    listed = []
    for name, alike in by_hardware.items():
        audiences = {(*block.target_queues, block.team, block.uploader): block for block in alike}.values()
        takers = [node for node in nodes if any(forecast.may_take(node, block) for block in audiences)]
        listed.append(_make_queue(name, alike, takers, starts_s.get(name), left_s=forecast.left_s))
    return sorted(listed, key=lambda queue: (-queue.waiting, queue.hardware))


def _make_queue(
    hardware: str,
    blocks: Sequence[_OpenBlock],
    takers: Sequence[Node],
    start_s: float | None,
    *,
    left_s: Mapping[int, float],
) -> Queue:
    measuring = sum(block.state == BlockState.LEASED for block in blocks)
    return Queue(
        hardware=hardware,
        waiting=len(blocks) - measuring,
        measuring=measuring,
        # a forecast covers only the first blocks of the queue; later ones add no minutes
        minutes=sum(left_s.get(block.pk, 0.0) for block in blocks) / 60.0,
        nodes=sum(node.may_take_blocks for node in takers),
        barred_nodes=[describe_unavailable_node(node.name, node.obstacle) for node in takers if node.obstacle],
        start_s=start_s,
    )


def current_work(user: Anyone, nodes: Iterable[Node]) -> dict[int, Activity]:
    """Map each node id to what the node does now. A node waits while another node on its machine measures.

    Other nodes that measure on the same machines are included. For a node that measures nothing and is not online,
    `waits_for` says when it was last heard.
    """
    # blocks that these nodes, or others on their machines, measure
    listed = list(nodes)
    devices = {node.device for node in listed}
    leased = Block.objects.filter(Q(node__in=listed) | Q(device__in=devices), state=BlockState.LEASED)
    leased = leased.annotate(is_seen=Exists(Run.objects.visible_to(user).filter(pk=OuterRef("run"))))
    columns = ("node", "node__name", "device", "run", "is_seen", "run__team__name", "leased_at")
    work, machine_holders, waits = {}, {}, newest_waits(listed)
    for key, name, device, run, is_seen, team, since in leased.values_list(*columns):
        work[key] = Activity(run if is_seen else None, team, since)
        machine_holders[device] = f"waits while {name} measures {work[key].words} on its machine"

    # the others wait or are idle
    for node in listed:
        # it has finished its block
        obstacle = "drained" if node.health == NodeHealth.DRAINING else node.obstacle
        waits_for = obstacle or machine_holders.get(node.device, "")
        if not waits_for and node.doing:
            waits_for = waits.get(node.device, "")
        work.setdefault(node.pk, Activity(waits_for=waits_for if node.state == NodeState.ONLINE else node.last_heard))
    return work


def upcoming_blocks(
    user: Anyone, nodes: Iterable[Node], *, forecast: Forecast | None = None
) -> dict[int, list[NextBlock]]:
    """Map each node id to the blocks that wait for it, in the order of their start; those without a forecast are last.

    Each node has MAX_NEXT at most, blocks of runs that the user may not see included.
    """
    forecast = forecast or Forecast()
    spans: dict[int, list[tuple[int, Span | None]]] = {
        node.pk: [
            *forecast.list_next_blocks(node),
            *((block, None) for block in forecast.blocks_without_forecast(node)),
        ][:MAX_NEXT]
        for node in nodes
    }

    # one query for all blocks, and one for the runs that the user may see
    numbers = {block for next_blocks in spans.values() for block, _ in next_blocks}
    rows = Block.objects.filter(pk__in=numbers).select_related("run__team").defer("plan_json", "run__matrix")
    blocks = rows.in_bulk() if numbers else {}
    visible = Run.objects.visible_to(user).filter(blocks__in=numbers)
    visible_ids = set(visible.values_list("pk", flat=True)) if numbers else set()
    return {
        key: [
            NextBlock(
                run=blocks[block].run_id if blocks[block].run_id in visible_ids else None,
                team=blocks[block].run.team.name,
                begins_in_minutes=None if span is None else span.begins_s / 60.0,
                minutes=None if span is None else (span.ends_s - span.begins_s) / 60.0,
            )
            for block, span in next_blocks
            if block in blocks
        ]
        for key, next_blocks in spans.items()
    }
