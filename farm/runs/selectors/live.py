"""What is going on in an open run: who measures which of its cells, since when, and why nobody does."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from farm.contract.version import node_queue
from farm.fleet.models import Node
from farm.fleet.selectors.nodes import name_of
from farm.fleet.states import NodeState
from farm.rules.presenting.standstill import Waiting, standstill
from farm.runs.models import Arm, Block, Run
from farm.runs.states import BlockState, RunState, activity_of

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
    most = max(row.rounds, row.max_rounds)
    return Busy(row.number, name_of(row.node), row.node_id, _ARM.sub("", doing), cell, row.leased_at, row.rounds, most)


def shown_states(runs: Iterable[Run]) -> dict[int, str]:
    """The state of each run as lists and pages show it: how it ended, else what goes on in it. At most one query."""
    every = list(runs)
    states: dict[int, set[str]] = {run.pk: set() for run in every if run.state != RunState.FINISHED}
    if states:
        for run_id, state in Block.objects.filter(run__in=states).order_by().values_list("run", "state").distinct():
            states[run_id].add(state)
    return {run.pk: activity_of(states[run.pk]) if run.pk in states else run.outcome or run.state for run in every}


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why no cell of an open run is being measured, in one sentence, empty while one is; and since when it waits."""

    text: str = ""
    since: datetime | None = None


class _Waiting(NamedTuple):
    state: str
    queues: list[str]
    only_node: int | None
    hardware: str
    since: datetime | None


def standstill_of(run_id: int) -> Standstill:
    """What an open run waits for. It depends on nodes and other runs too, which change no revision of this one."""
    rows = Block.objects.filter(run=run_id).order_by("number")
    columns = rows.values_list("state", "queues", "only_node_id", "hardware", "queued_at")
    blocks = [_Waiting(*row) for row in columns]
    queued = [one for one in blocks if one.state == BlockState.QUEUED]
    preparing = [one for one in blocks if one.state == BlockState.WAITING]
    if any(one.state == BlockState.LEASED for one in blocks) or not (queued or preparing):
        return Standstill()
    run = Run.objects.select_related("team", "version__uploaded_by").defer("matrix").get(pk=run_id)
    if not queued:
        return Standstill(standstill(Waiting(preparing=len(preparing))), run.started_at)
    since = min((one.since for one in queued if one.since is not None), default=run.started_at)
    return Standstill(standstill(_waiting(run, queued, preparing=len(preparing))), since)


def _waiting(run: Run, queued: Sequence[_Waiting], *, preparing: int) -> Waiting:
    nodes = _takers(run, queued)
    there = [node for node in nodes if node.state == NodeState.ONLINE]
    leased = Block.objects.filter(state=BlockState.LEASED, node__in=there).order_by("pk")
    measured = {block.node_id: block for block in leased.select_related("run").defer("plan_json", "run__matrix")}
    # a node that measures says what it does, which is no reason to wait
    free = [node for node in there if node.pk not in measured]
    busy = [_measures(node, measured[node.pk], run) for node in there if node.pk in measured]
    return Waiting(
        preparing=preparing,
        queued=len(queued),
        told=[f"{node.name}: {node.doing}" for node in free if node.doing][:MOST_TOLD],
        busy=[] if free else busy[:MOST_TOLD],
        nodes=len(there),
        offline=[node.name for node in nodes if node.state != NodeState.ONLINE][:MOST_TOLD],
        hardware=sorted({one.hardware for one in queued}),
    )


def _takers(run: Run, queued: Sequence[_Waiting]) -> list[Node]:
    """Nodes that are asked for one of these blocks, when they are there."""
    asked = {
        name for one in queued for name in (one.queues if one.only_node is None else [node_queue(str(one.only_node))])
    }
    serving = Node.objects.serving(run.team, uploader=run.version.uploaded_by)
    return [node for node in serving.defer("log_tail").order_by("pk") if not asked.isdisjoint(node.queues)]


def _measures(node: Node, block: Block, run: Run) -> str:
    """`bench-1 has measured run 12 since 07:12 UTC`; the run of another team has no number here."""
    what = f"run {block.run_id}" if block.run.team_id == run.team_id else "a run of another team"
    return f"{node.name} has measured {what}" + (f" since {block.leased_at:%H:%M} UTC" if block.leased_at else "")
