"""Reads runs for people: lists, states, progress, and the blocks that are being measured.

`events` returns the lines of a run's log whose id is greater than `after`, in order. A run's ETag changes with its
stored revision. `can_write_runs` is true for an empty set.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db.models import Count, QuerySet

from farm.accounts.selectors import Anyone
from farm.base.refusals import Missing
from farm.contract.blocks import SAID_ARM
from farm.fleet.selectors.nodes import name_or_removed
from farm.fleet.states import NodeState
from farm.rules.presenting.cell_counts import OPEN, CellCounts
from farm.rules.wording.numbers import counted
from farm.runs.models import Arm, Block, Event, Run
from farm.runs.selectors.forecasts import Forecast
from farm.runs.selectors.outlooks import Outlook, outlook_of
from farm.runs.states import ENDED_BLOCKS, OPEN_BLOCKS, BlockState, RunState, activity_of

# a measuring node's words on what it does begin so, and end with SAID_ARM
_ROUND = re.compile(r"round (\d{1,4}): ")
# how many nodes are quoted
MAX_DOING = 3


@dataclass(frozen=True, slots=True)
class BusyBlock:
    """A block that is being measured.

    `doing` and `cell` are what its node says; both are empty if it says nothing, or names a round that it has reported.
    """

    number: int
    node: str
    node_id: int | None
    # what its node says it does
    doing: str
    # the cell that the node says it measures, or empty
    cell: str
    since: datetime | None
    # how many rounds were reported, and how many there can be
    rounds: int
    rounds_most: int


def busy_blocks(run: Run) -> list[BusyBlock]:
    """List the blocks of a run that are being measured now, in the order of their numbers."""
    rows = list(run.blocks.filter(state=BlockState.LEASED).select_related("node").defer("plan_json").order_by("number"))
    cells = _name_current_cells(rows)
    return [_describe_busy_block(row, cells[row.pk]) for row in rows]


def _name_current_cells(blocks: Sequence[Block]) -> dict[int, str]:
    """Map each block to the cell that its node says it measures, empty if it names none. One query."""
    arms = Arm.objects.filter(block__in=blocks).only("block", "number", "name")
    names = {(arm.block_id, arm.number): arm.name for arm in arms}
    arm_words = {block.pk: SAID_ARM.search(block.doing) for block in blocks}
    return {pk: names.get((pk, int(match[1])), "") if match else "" for pk, match in arm_words.items()}


def _describe_busy_block(row: Block, cell: str) -> BusyBlock:
    doing = "" if _is_past_round(row.doing, row.rounds) else row.doing
    return BusyBlock(
        number=row.number,
        node=name_or_removed(row.node),
        node_id=row.node_id,
        doing=SAID_ARM.sub("", doing),
        cell=cell if doing else "",
        since=row.leased_at,
        rounds=row.rounds,
        rounds_most=max(row.rounds, row.max_rounds),
    )


def _is_past_round(doing: str, rounds: int) -> bool:
    match = _ROUND.match(doing)
    return match is not None and int(match[1]) <= rounds


def shown_states(runs: Iterable[Run]) -> dict[int, str]:
    """Name the state of each run for lists and pages, by run id: how it ended, or what goes on in it."""
    listed = list(runs)
    block_states: dict[int, set[str]] = {run.pk: set() for run in listed if run.state != RunState.FINISHED}
    if block_states:
        blocks = Block.objects.filter(run__in=block_states).order_by()
        for run_id, state in blocks.values_list("run", "state").distinct():
            block_states[run_id].add(state)
    return {
        run.pk: activity_of(block_states[run.pk]) if run.pk in block_states else run.outcome or run.state
        for run in listed
    }


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    `status` is the outcome of a finished run, or the activity of an open one, whose `minutes_left` may be known.
    """

    id: int
    state: str
    outcome: str
    # how the run ended, and its main result
    sentence: str
    headline: str
    # grows with each change of the run
    revision: int
    # numbers of cells by status, which is `open` until they end, and of blocks by state
    cells: dict[str, int]
    blocks: dict[str, int]
    rounds: int
    rounds_most: int
    # what the plan expected
    minutes: float
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    model: str
    version: int
    requested_by: str
    # what nodes do for the run, in their words
    doing: tuple[str, ...] = ()
    # why the run waits, and the time left; empty for a finished run
    outlook: Outlook = field(default_factory=Outlook)

    @property
    def is_finished(self) -> bool:
        return self.state == RunState.FINISHED

    @property
    def status(self) -> str:
        return self.outcome or self.state if self.is_finished else activity_of(self.blocks)

    @property
    def counts(self) -> CellCounts:
        return CellCounts(self.cells)

    @property
    def minutes_left(self) -> float | None:
        return None if self.outlook.left_s is None else self.outlook.left_s / 60.0

    @property
    def words(self) -> str:
        """The state of blocks and rounds in words, and what nodes do or the run waits for; empty once finished."""
        if self.is_finished:
            return ""
        total = counted(sum(self.blocks.values()), "block")
        if busy := self.blocks.get(BlockState.LEASED, 0):
            state = f"{busy} of {total} being measured"
        elif settling := self.blocks.get(BlockState.REPORTED, 0):
            state = f"{settling} of {total} settling"
        else:
            state = f"{sum(self.blocks.get(ended, 0) for ended in ENDED_BLOCKS)} of {total} done"
        since = f" since {self.outlook.since:%H:%M} UTC" if self.outlook.since else ""
        wait = (f"waiting{since}: {self.outlook.idle_reason}",) if self.outlook.idle_reason else ()
        return "; ".join((f"{state}, {self.rounds} of {counted(self.rounds_most, 'round')}", *self.doing, *wait))

    @property
    def share(self) -> float:
        """The share of rounds that is done, from 0 to 1."""
        if self.is_finished:
            return 1.0
        return min(1.0, self.rounds / self.rounds_most) if self.rounds_most else 0.0


def runs_visible_to(user: Anyone) -> QuerySet[Run]:
    return Run.objects.visible_to(user).select_related("version__model", "requested_by", "team")


def runs_for_lists(user: Anyone) -> QuerySet[Run]:
    """Return the runs that the user may see, for lists: the large columns matrix and inspection are not loaded."""
    return runs_visible_to(user).defer("matrix", "version__inspection", "version__problem")


def run(user: Anyone, run_id: int, *, is_light: bool = False) -> Run:
    """Return a run by its id. Raises Missing if the user may see none. `is_light` does not load large columns."""
    rows = runs_for_lists(user) if is_light else runs_visible_to(user)
    row = rows.filter(pk=run_id).first()
    if row is None:
        raise make_missing_run_error(run_id)
    return row


def make_missing_run_error(run_id: int) -> Missing:
    return Missing(f"There is no run {run_id} that you can access.", hint="List yours with `onnxfarm status`.")


def can_write_run(user: Anyone, run: Run) -> bool:
    return can_write_runs(user, {run.pk})


def can_write_runs(user: Anyone, numbers: Set[int]) -> bool:
    return not numbers or Run.objects.writable_by(user).filter(pk__in=numbers).count() == len(numbers)


def address_of(run: Run) -> str:
    return f"{settings.PUBLIC_URL}/runs/{run.pk}/"


def make_etag(run: Run) -> str:
    number = Run.objects.values_list("revision", flat=True).get(pk=run.pk)
    return f'"run-{run.pk}-{number}"'


def progress(run: Run, *, outlook: Outlook | None = None, forecast: Forecast | None = None) -> Progress:
    """Read the progress of a run, in a few small queries.

    A caller that has read the run's `outlook` passes it; one that shows several runs passes their common `forecast`.
    """
    run = Run.objects.select_related("version__model", "requested_by").get(pk=run.pk)
    cells = dict(run.cells.values_list("status").annotate(Count("pk")).order_by())
    blocks = list(run.blocks.values_list("state", "rounds", "max_rounds"))
    states = dict(Counter(state for state, _, _ in blocks))
    is_open = run.state != RunState.FINISHED
    return Progress(
        id=run.pk,
        state=run.state,
        outcome=run.outcome,
        sentence=run.sentence,
        headline=run.headline,
        revision=run.revision,
        cells={status or OPEN: count for status, count in cells.items()},
        blocks=states,
        rounds=sum(rounds for _, rounds, _ in blocks),
        # rounds that replace dropped pairs may come on top of the budget's
        rounds_most=sum(max(rounds, limit if state in OPEN_BLOCKS else 0) for state, rounds, limit in blocks),
        minutes=run.minutes,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        model=run.version.model.name,
        version=run.version.number,
        requested_by=run.requested_by.username if run.requested_by else "",
        doing=_list_doing(run) if is_open and BlockState.LEASED in states else (),
        outlook=(outlook or outlook_of(run.pk, forecast=forecast)) if is_open else Outlook(),
    )


def _list_doing(run: Run) -> tuple[str, ...]:
    """List the words of the nodes that measure the run on what they do."""
    at_work = run.blocks.filter(state=BlockState.LEASED, node__state=NodeState.ONLINE).exclude(doing="")
    blocks = at_work.select_related("node").defer("plan_json").order_by("node", "number")[:MAX_DOING]
    current = [block for block in blocks if not _is_past_round(block.doing, block.rounds)]
    cells = _name_current_cells(current)
    return tuple(
        f"{name_or_removed(block.node)}: {', '.join(filter(None, (SAID_ARM.sub('', block.doing), cells[block.pk])))}"
        for block in current
    )


def events(run: Run, *, after: int = 0) -> QuerySet[Event]:
    return run.events.filter(pk__gt=after).select_related("block")


def devices_by_block(runs: Collection[int]) -> dict[tuple[int, str], str]:
    """Map run id and block name, such as `b1`, to the machine that took the block; blocks never taken are left out."""
    measured = Block.objects.filter(run__in=runs).exclude(device="").values_list("run", "number", "device")
    return {(run_id, f"b{number}"): device for run_id, number, device in measured}
