"""What is going on in an open run: who measures which of its cells, since when, and why nobody does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.states import NodeState
from farm.rules.reporting.standstill import Waiting, standstill
from farm.runs.models import Arm, Block, Run
from farm.runs.states import BlockState

# the end of what a node says of itself while it measures
_ARM = re.compile(r", arm (\d{1,4})$")
# so many say what keeps them
MOST_TOLD = 2


@dataclass(frozen=True, slots=True)
class Busy:
    """A block that is being measured. `doing`: the node's own words; `cell`: the one they name, if any."""

    number: int
    node: str
    node_id: int | None
    doing: str
    cell: str
    since: datetime | None
    rounds: int
    rounds_most: int


def busy_blocks(run: Run) -> list[Busy]:
    """The blocks of a run that are being measured now, by their number."""
    rows = list(run.blocks.filter(state=BlockState.LEASED).select_related("node").defer("plan_json").order_by("number"))
    names = {
        (arm.block_id, arm.number): arm.name
        for arm in Arm.objects.filter(block__in=rows).only("block", "number", "name")
    }
    return [_busy(row, names) for row in rows]


def _busy(row: Block, names: dict[tuple[int, int], str]) -> Busy:
    doing = row.node.doing if row.node else ""
    arm = _ARM.search(doing)
    cell = names.get((row.pk, int(arm[1])), "") if arm else ""
    node = row.node.name if row.node else "a removed node"
    most = max(row.rounds, row.max_rounds)
    return Busy(row.number, node, row.node_id, _ARM.sub("", doing), cell, row.leased_at, row.rounds, most)


def why_not_measured(run: Run) -> str:
    """Why no cell of an open run is being measured, in one sentence; empty while one is."""
    blocks = list(run.blocks.values_list("state", "queues", "only_node_id", "hardware"))
    states = [state for state, _, _, _ in blocks]
    if BlockState.LEASED in states:
        return ""
    queued = [(queues, only, hardware) for state, queues, only, hardware in blocks if state == BlockState.QUEUED]
    nodes = _takers(run, queued) if queued else []
    return standstill(
        Waiting(
            preparing=states.count(BlockState.WAITING),
            queued=len(queued),
            told=[f"{node.name}: {node.doing}" for node in nodes if node.doing][:MOST_TOLD],
            busy=_measuring(nodes),
            nodes=len(nodes),
            hardware=sorted({hardware for _, _, hardware in queued}),
        )
    )


def _takers(run: Run, queued: Sequence[tuple[list[str], int | None, str]]) -> list[Node]:
    """Nodes online that are asked for one of these blocks."""
    asked = {name for queues, only, _ in queued for name in (queues if only is None else [node_queue(str(only))])}
    serving = Node.objects.serving(run.team, uploader=run.version.uploaded_by).filter(state=NodeState.ONLINE)
    return [node for node in serving.defer("log_tail").order_by("pk") if not asked.isdisjoint(node.queues)]


def _measuring(nodes: list[Node]) -> list[str]:
    """`bench-1 has measured run 12 since 07:12 UTC`; only what all of them are busy with keeps a block waiting."""
    leased = Block.objects.filter(state=BlockState.LEASED, node__in=nodes).select_related("node").defer("plan_json")
    rows = [(row.node, row) for row in leased.order_by("pk") if row.node is not None and row.leased_at is not None]
    if len({node.pk for node, _ in rows}) < len(nodes):
        return []
    return [f"{node.name} has measured run {row.run_id} since {row.leased_at:%H:%M} UTC" for node, row in rows][
        :MOST_TOLD
    ]
