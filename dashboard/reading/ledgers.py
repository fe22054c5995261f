"""The work of a node: its current activity, the blocks that wait for it, and what it measured for whom."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dashboard.reading.runs import link_run
from farm.fleet.states import NodeHealth, NodeState
from farm.rules.comparing.margins import NoiseFloor
from farm.rules.planning.plans import Plan
from farm.rules.planning.time_left import format_about
from farm.rules.presenting.idle_reasons import describe_unavailable_node
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count
from farm.rules.wording import numbers
from farm.runs.selectors import Before
from farm.runs.selectors.ledger import Ledger, Work
from farm.runs.selectors.queues import Activity, NextBlock

if TYPE_CHECKING:
    from farm.fleet.models import Node

# so many days of the node's past work are shown
DAYS = 7
# so many nodes are named that a run waits for
MAX_NAMED = 2
UNFORESEEN = "when its machine is free"


def write_heading(node: "Node", now: Activity, before: Sequence[Before]) -> str:
    """Say what the node does now, and whether other programs keep its machine busy. `before`: the state of the machine
    before each of its last blocks, the newest first."""
    health = "drained" if node.health == NodeHealth.DRAINING and not now.team else str(node.health)
    parts = [str(node.state)] if node.health == NodeHealth.ACTIVE else [str(node.state), health]
    if node.pause and node.health != NodeHealth.RETIRED:
        parts.append("paused" if node.settings.is_paused else "outside its hours")
    if now.team:
        parts.append(f"measuring {now.words}")
    elif parts == [NodeState.ONLINE] and now.waits_for:
        parts.append("waiting for its machine")
    is_busy = node.state == NodeState.ONLINE and before and before[0].facts.is_busy
    if parts == [NodeState.ONLINE] and not is_busy:
        parts.append("idle")
    return f"{node.name} is {', '.join(parts)}{'; other programs keep its machine busy' if is_busy else ''}"


def explain_wait(plan: Plan, nodes: Iterable["Node"]) -> list[str]:
    """Return a list with one sentence where no online node takes the blocks of the plan now: the run will wait, and for
    what. Empty where one does, or no node is known that ever will. `nodes`: those that the reader may see."""
    wanted = {node for block in plan.blocks for node in block.nodes}
    takers = [node for node in nodes if str(node.pk) in wanted or (not wanted and node.health == NodeHealth.DRAINING)]
    if any(node.state == NodeState.ONLINE and not node.obstacle for node in takers):
        return []
    reasons = [
        describe_unavailable_node(node.name, node.obstacle)
        if node.state == NodeState.ONLINE
        else f"{node.name} is offline, {node.last_heard}"
        for node in takers[:MAX_NAMED]
    ]
    return [f"The run will wait: {'; '.join(reasons)}."] if reasons else []


def describe_week(
    work: Ledger | None, waiting: Sequence[NextBlock], before: Sequence[Before], floor: NoiseFloor | None
) -> str:
    """Say what the node did in the last DAYS days, how many blocks wait for it, how precisely it measures, and whether
    other programs kept it busy. What is not known is left out. `work`: None where the reader may not see it; `before`:
    the state of the machine before each of its last blocks; `floor`: None without A/A pairs."""
    did = "" if work is None else f"{numbers.counted(work.blocks, 'block')} in {DAYS} days"
    took = f", {numbers.duration(work.seconds)}" if work is not None and work.blocks else ""
    waits = f"{numbers.counted(len(waiting), 'block')} {'waits' if len(waiting) == 1 else 'wait'}"
    busy, every = sum(state.facts.is_busy for state in before), len(before)
    which = f"{busy} of its last {every} blocks" if every > 1 else "its last block"
    disturbed = f"other programs kept it busy before {which}, so verdicts of one thread rest on CPU time"
    noise = "" if floor is None else f"identical launches differ by {numbers.share(floor.deviation)}"
    return " · ".join(filter(None, (did + took, waits if waiting else "", noise, disturbed if busy else "")))


def waiting_table(waiting: Sequence[NextBlock], node: "Node") -> Table:
    """Make the table of the blocks that wait for a node, in the order given, with the start and duration of each."""
    columns: tuple[Column[NextBlock], ...] = (
        Column("Run", lambda row: link_run(row.run) if row.run else Entry(f"a run of {row.team}")),
        Column("Begins", lambda row: Entry(describe_start(row, node), row.begins_in_minutes)),
        Number("takes", _length_entry, note="by its plan and the machine’s pace"),
    )
    return Table.of("next", "What waits for this node", columns, waiting)


def work_table(work: Sequence[Work]) -> Table:
    """Make the table of a node's past work, with a row for each combination of person, team and reason."""
    columns: tuple[Column[Work], ...] = (
        Column("For", lambda row: Entry(row.person or "a former user", soft=row.team, is_name=True)),
        Column("Why", lambda row: Entry(row.reason or "asked for")),
        Number("runs", lambda row: as_count(row.runs)),
        Number("blocks", lambda row: as_count(row.blocks)),
        Number("time", lambda row: Entry(_format_minutes(row.minutes), row.minutes)),
    )
    return Table.of("ledger", "What this node did, and for whom", columns, work)


def describe_start(row: NextBlock, node: "Node") -> str:
    """Say when a waiting block begins: `in about 12 min`, or `next` where no block comes before it. Where the time is
    not known, say what the block waits for."""
    if row.begins_in_minutes is None:
        return "when it takes blocks again" if node.obstacle else UNFORESEEN
    return f"in {format_about(60.0 * row.begins_in_minutes)}" if row.begins_in_minutes else "next"


def _length_entry(row: NextBlock) -> Entry:
    return Entry() if row.minutes is None else Entry(_format_minutes(row.minutes), row.minutes)


def _format_minutes(minutes: float) -> str:
    return numbers.duration(round(60.0 * minutes))
