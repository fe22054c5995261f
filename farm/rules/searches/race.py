"""A race: finds the setting that is best by the goal and keeps its budgets, by successive elimination.

1. In a large space, one launch of each setting selects those that go on, and the others are held in reserve.
2. Short blocks compare at most 16 settings in interleaved rounds, always with the default, which is the first setting
   of the space, and the leader. Settings that break a budget or are shown to be slower than the leader are dropped.
3. The best of the others run a final block. All figures of the answer come from that block alone.

Settings whose accuracy is not known race among themselves, and are never the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from statistics import mean
from typing import Any

from farm.contract.blocks import MAX_ARMS
from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_find import Goal, LeftSetting, State, Why
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import MIN_MEMORY
from farm.rules.cells.values import to_plain
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.product import Selector
from farm.rules.searches.block_costs import BlockCosts, Cost
from farm.rules.searches.limits import Limits
from farm.rules.searches.search import Experiment, Measured, Search, SearchProblem
from farm.rules.wording.numbers import counted

# rounds of a short block, the fewest that show a spread
ROUNDS = 2
# more settings than this are screened by one launch each, and the best go on to the short blocks
MAX_UNSCREENED = 9
# how many settings run the final block in addition to the default; it takes most of the launches
FINALISTS = 3
# the share of the time that is reserved for the final block
FINAL_SHARE = 0.5
LATE = "The time was over before it was measured: give more minutes."
MISSING = "Its block ended without a result for it."


@dataclass(frozen=True, slots=True)
class Contender:
    """A setting that races.

    `digest` is that of its cell. `values` are its values on the axes of the matrix, the runtime included.
    """

    digest: str
    values: Selector
    label: str = ""

    @property
    def settings(self) -> dict[str, object]:
        return {axis: to_plain(value) for axis, value in self.values.items()}

    def as_dropped(self, why: Why, text: str, budget: str = "") -> LeftSetting:
        return LeftSetting(label=self.label, settings=self.settings, why=why, budget=budget, text=text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a race, or the best so far. The keys of mappings are the digests of settings.

    `answer` is the setting to use, followed by those that are not shown to differ from it. `costs` are relative to the
    first of the answer. `uncompared` counts those of the answer that were not compared with the first. `close` are
    settings that had no place in the final block and are not shown to be slower by earlier launches. `unproven` says
    why the accuracy of a setting is not known. `dropped` has all settings that left the race. `resolution` is the
    largest difference that may remain within the answer, as a fraction. `is_by_processor` says that processor time
    decided, because the machine was busy.
    """

    state: State
    answer: Sequence[Contender] = ()
    unproven: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, LeftSetting] = field(default_factory=dict)
    close: Sequence[Contender] = ()
    costs: Mapping[str, Cost] = field(default_factory=dict)
    uncompared: int = 0
    resolution: float | None = None
    is_final: bool = False
    is_by_processor: bool = False


@dataclass
class Race(Search[Measured, Outcome]):
    """The search for the best of `contenders`, of which the first is the default. The keys of mappings are digests.

    All of `matrix` but its axes holds for every contender. `max_in_block` limits the settings of a short block. `fits`
    says whether a matrix is one block that ends in the remaining time. `time_left` returns the share of the time that
    remains. `cells` has the last cell of each measured setting. `estimates` are rough costs of the settings, in a unit
    that they share. `screening_estimates` are those after the one launch that screens a large space. `reserve` are the
    settings that screening held back; they go on only if all others were dropped.
    """

    matrix: Matrix
    contenders: Sequence[Contender]
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    max_in_block: int = MAX_ARMS
    fits: Callable[[Matrix], bool] = lambda matrix: True
    time_left: Callable[[], float] = lambda: 1.0
    cells: dict[str, Cell] = field(default_factory=dict, init=False)
    dropped: dict[str, LeftSetting] = field(default_factory=dict, init=False)
    blocks: list[BlockCosts] = field(default_factory=list, init=False)
    close: list[Contender] = field(default_factory=list, init=False)
    is_final: bool = field(default=False, init=False)
    reserve: list[Contender] = field(default_factory=list, init=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False)
    screening_estimates: dict[str, float] = field(default_factory=dict, init=False)
    _queue: list[Contender] = field(init=False)
    _is_screening: bool = field(init=False)
    _pending: Experiment | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._queue = list(self.contenders)
        self._is_screening = len(self.contenders) > MAX_UNSCREENED

    # what is measured next

    def next(self) -> Experiment | None:
        """Return the block to measure next, the same until its outcome is recorded; None once the race is over."""
        if self._pending is None and not self.is_final:
            self._pending = self._plan_short_block() or self._plan_final_block()
        return self._pending

    def _plan_short_block(self) -> Experiment | None:
        """Return the next block of queued settings; None once the final block is due, or if no setting remains."""
        proven, unproven = self._split_proven()
        if not proven:
            return None
        if self.blocks and self.time_left() < FINAL_SHARE:
            for contender in [each for each in self._queue if each.digest not in self.cells]:
                self._drop(contender, "no time", LATE)
            self._queue = []
        elif not self._queue and (self._is_screening or all(contender in self.reserve for contender in proven)):
            self._queue_best_screened(proven, unproven)
        if not self._queue:
            return None
        # the default and the leaders are in every block, so that the settings of different blocks can be compared
        leaders = self._find_leader(proven), self._find_leader(unproven)
        links = [each for each in self.contenders if each in leaders or self._is_default_and_runs(each)]
        settings = [*links, *(contender for contender in self._queue if contender not in links)]
        size = max(self.max_in_block, len(links) + 1)
        return self._make_experiment(settings[:size], Budget.QUICK, 1 if self._is_screening else ROUNDS)

    def _queue_best_screened(self, proven: Sequence[Contender], unproven: Sequence[Contender]) -> None:
        """Queue the best of the settings that were screened by one launch each, and hold the others in reserve."""
        screened = self.reserve or self._list_remaining()
        if self._is_screening:
            self._is_screening, self.screening_estimates = False, dict(self.estimates)
        # one launch each on a busy machine does not show which settings are slower
        is_busy = any(block.is_busy for block in self.blocks)
        self.reserve = [] if is_busy else [*self._sort(proven)[MAX_UNSCREENED:], *self._sort(unproven)[FINALISTS:]]
        self._queue = [each for each in screened if each not in self.reserve and each.digest not in self.dropped]

    def _plan_final_block(self) -> Experiment | None:
        """Return the block of the default, the best unproven setting and as many finalists as fit.

        None if no setting or no time remains.
        """
        proven, unproven = (self._sort(group) for group in self._split_proven())
        if not proven or self.time_left() <= 0.0:
            return None
        always = [contender for contender in self.contenders if self._is_default_and_runs(contender)] + unproven[:1]
        others = [contender for contender in proven if contender not in always]
        finalists = ([contender for contender in others if contender not in self.reserve] or others)[:FINALISTS]
        while len(finalists) > 1 and not self.fits(self.matrix_of([*always, *finalists], Budget.STANDARD)):
            finalists.pop()
        self.close = [contender for contender in others if contender not in finalists]
        return self._make_experiment([*always, *finalists], Budget.STANDARD, None)

    def _make_experiment(self, settings: Sequence[Contender], budget: Budget, rounds: int | None) -> Experiment:
        length = counted(rounds, "round") if rounds else "the final block"
        title = f"{len(settings)} of {len(self.contenders)} settings, {length}"
        asked = {"rounds": rounds, "settings": [contender.digest for contender in settings]}
        return Experiment(self.matrix_of(settings, budget), title, asked)

    def matrix_of(self, settings: Sequence[Contender], budget: Budget = Budget.QUICK) -> Matrix:
        points = tuple(contender.values for contender in settings)
        return replace(self.matrix, axes={}, exclude=(), include=points, budget=budget)

    # what was measured

    def record(self, outcome: Measured) -> None:
        """Record what the pending block measured, and drop the settings that it excludes.

        Raises SearchProblem where the race is over.
        """
        pending = self.next()
        if pending is None:
            raise SearchProblem("The race is over: no block was to be measured.")
        asked: Mapping[str, Any] = pending.asked
        rounds = asked["rounds"]
        block = BlockCosts.from_document(outcome.document, self.goal)
        self.blocks.append(block)
        self._pending, self.is_final = None, rounds is None
        cells = {cell.digest: cell for cell in outcome.document.cells if cell.twin_of is None}
        self._store_cells(cells, block)
        for contender in self.contenders:
            if contender.digest in asked["settings"] and contender.digest not in cells:
                self._drop(contender, "failed", MISSING)
        self._queue = [each for each in self._queue if each.digest not in cells and each.digest not in self.dropped]
        if rounds == ROUNDS:
            self._drop_slower(block)

    def record_interrupted(self, document: Document) -> None:
        """Record a block that was stopped, which stays the one that `next` returns.

        A block that compared nothing is ignored, unless it is the first one.
        """
        block = BlockCosts.from_document(document, self.goal)
        if block.freedom or (block.cells and not self.blocks):
            self.blocks.append(block)
            self._store_cells(block.cells, block)

    def _store_cells(self, cells: Mapping[str, Cell], block: BlockCosts) -> None:
        """Store the cells of a block, and drop the settings that failed or broke a budget in it."""
        for contender in self.contenders:
            cell, earlier = cells.get(contender.digest), self.cells.get(contender.digest)
            if cell is None:
                continue
            if earlier is not None and earlier.accuracy is not None and earlier.accuracy.difference is not None:
                # the cell that its accuracy was compared with may not be in this block
                cell = cell.model_copy(update={"accuracy": earlier.accuracy})
            self.cells[contender.digest] = cell
            if cell.status is not CellStatus.DONE:
                self._drop(contender, "failed", cell.reason.text if cell.reason else cell.status.value)
            elif (broken := self.limits.find_broken(cell, is_busy=block.is_busy)) is not None:
                self._drop(contender, "budget", broken.text, broken.budget)
        # settings that were measured before too show the factor between this block's unit and that of the estimates
        amounts = block.amounts
        known = self.estimates.keys() & amounts
        unit = exp(mean(log(amounts[digest] / self.estimates[digest]) for digest in known)) if known else 1.0
        self.estimates |= {digest: amount / unit for digest, amount in amounts.items()}

    def _drop_slower(self, block: BlockCosts) -> None:
        """Drop the settings that a short block shows to be slower than a leader."""
        proven, unproven = self._split_proven()
        measured = [contender for contender in proven if contender.digest in self.cells]
        # a leader that may yet break a budget excludes no other setting
        sure = [contender for contender in measured if self.limits.is_in_time(self.cells[contender.digest])]
        for group, leaders in ((proven, sure), (unproven, unproven), (unproven, sure)):
            leader = self._find_leader(leaders)
            if leader is not None:
                for contender in group:
                    self._drop_if_slower(contender, leader, block)

    def _drop_if_slower(self, contender: Contender, leader: Contender, block: BlockCosts) -> None:
        """Drop a setting that is slower than the leader by this block, or one of the reserve by the screening."""
        cost, launches = block.find_short_block_excess(contender.digest, relative_to=leader.digest), "short rounds"
        estimates = self.screening_estimates
        if cost is None and contender in self.reserve and {contender.digest, leader.digest} <= estimates.keys():
            ratio = estimates[contender.digest] / estimates[leader.digest]
            cost, launches = block.find_screening_excess(ratio), "one launch"
        if cost is not None:
            self._drop(contender, "slower", f"{cost.format(self.goal)} than {leader.label} in {launches}")

    def _drop(self, contender: Contender, why: Why, text: str, budget: str = "") -> None:
        self.dropped.setdefault(contender.digest, contender.as_dropped(why, text, budget))

    # what is known

    def answer(self) -> Outcome:
        """Return the answer of the final block, or before it the best settings so far.

        Until then these are all measured settings that remain and whose accuracy is not in doubt, the leader first and
        the others by rising estimates.
        """
        proven, unproven = self._split_proven()
        reasons = {contender.digest: self._explain_unproven(contender) for contender in unproven}
        if self.is_final:
            return replace(self._decide(proven), unproven=reasons, close=self.close)
        leader = self._find_leader(proven)
        measured = [contender for contender in self._sort(proven) if contender.digest in self.cells]
        measured.sort(key=lambda contender: contender is not leader)
        state: State = "undecided" if proven else self._find_state_without_answer(self.dropped)
        return Outcome(state, measured, reasons, dict(self.dropped))

    def _find_state_without_answer(self, dropped: Mapping[str, LeftSetting]) -> State:
        """Return `nothing` if every setting failed, broke a budget or has an unknown accuracy, else `undecided`."""
        proven = [contender for contender in self.contenders if not self._explain_unproven(contender)]
        reasons = {dropped[contender.digest].why for contender in proven if contender.digest in dropped}
        return "undecided" if self.close or reasons & {"slower", "undecided", "no time"} else "nothing"

    def _decide(self, proven: Sequence[Contender]) -> Outcome:
        """Return the answer of the final block: the settings that keep their budgets and are not shown to be slower."""
        block = self.blocks[-1]
        dropped = self._judge_budgets(proven, block)
        raced = {each.digest: each for each in self._sort(proven) if each.digest in block.cells}
        kept = [digest for digest in raced if digest not in dropped]
        if not kept:
            undecided = [contender for digest, contender in raced.items() if dropped[digest].why == "undecided"]
            return Outcome(self._find_state_without_answer(dropped), undecided, dropped=dropped, is_final=True)
        leader = block.find_leader(kept) or kept[0]
        ratios = {leader: 1.0}
        for digest in kept:
            if (slower := block.find_excess(digest, relative_to=leader)) is not None:
                words = f"{slower.format(self.goal)} than {raced[leader].label}"
                dropped[digest] = raced[digest].as_dropped("slower", words)
            elif (cost := block.find_cost(digest, relative_to=leader)) is not None:
                ratios[digest] = cost.ratio
        answer = sorted(
            (digest for digest in kept if digest not in dropped), key=lambda digest: ratios.get(digest, inf)
        )
        return self._rank_answer([raced[digest] for digest in answer], dropped)

    def _judge_budgets(self, proven: Sequence[Contender], block: BlockCosts) -> dict[str, LeftSetting]:
        """Return the dropped settings, and those that the final block does not show to keep their budgets.

        The default is judged even where short rounds showed that it is slower, because it is in the final block too.
        """
        dropped = dict(self.dropped)
        for contender in self.contenders:
            earlier = dropped.get(contender.digest)
            is_judged = contender in proven or (earlier is not None and earlier.why == "slower")
            if contender.digest not in block.cells or not is_judged:
                continue
            judged = self.limits.judge_budgets(self.cells[contender.digest], is_busy=block.is_busy)
            if doubts := [budget for budget in judged if budget.keeping != "kept"]:
                # a broken budget comes before an open one
                worst = min(doubts, key=lambda budget: budget.keeping == "open")
                why: Why = "budget" if worst.keeping == "broken" else "undecided"
                dropped[contender.digest] = contender.as_dropped(why, worst.text, worst.budget)
        return dropped

    def _rank_answer(self, answer: Sequence[Contender], dropped: Mapping[str, LeftSetting]) -> Outcome:
        """Rank the settings that the final block does not show to differ, the smallest in memory first.

        Memory counts in steps of MIN_MEMORY, and cost decides within a step. `answer` has at least one setting, by
        rising cost.
        """
        block = self.blocks[-1]
        sizes = {each.digest: block.cells[each.digest].peak_memory_bytes or 0 for each in answer}
        smallest = min(sizes.values())
        ordered = sorted(answer, key=lambda each: (sizes[each.digest] - smallest) // MIN_MEMORY)
        first = ordered[0].digest
        costs = {
            each.digest: cost for each in self.contenders if (cost := block.find_cost(each.digest, relative_to=first))
        }
        costs_of_answer = [costs[each.digest] for each in ordered if each.digest in costs]
        uncompared = len(ordered) - 1 - len(costs_of_answer)
        is_late = any(setting.why == "no time" for setting in dropped.values())
        state: State = "close" if len(ordered) > 1 or self.close else "decided"
        return Outcome(
            "undecided" if uncompared or is_late else state,
            ordered,
            dropped=dropped,
            costs=costs,
            uncompared=uncompared,
            resolution=max((max(cost.high, 1.0 / cost.low) - 1.0 for cost in costs_of_answer), default=None),
            is_final=True,
            is_by_processor=block.is_by_processor,
        )

    def _split_proven(self) -> tuple[list[Contender], list[Contender]]:
        """Split the remaining settings into those without a doubt about their accuracy, and those with one."""
        remaining = self._list_remaining()
        unproven = [contender for contender in remaining if self._explain_unproven(contender)]
        return [contender for contender in remaining if contender not in unproven], unproven

    def _list_remaining(self) -> list[Contender]:
        return [contender for contender in self.contenders if contender.digest not in self.dropped]

    def _explain_unproven(self, contender: Contender) -> str:
        cell = self.cells.get(contender.digest)
        return "" if cell is None else self.limits.explain_unproven(cell)

    def _find_leader(self, group: Sequence[Contender]) -> Contender | None:
        if self._is_screening:
            return next((each for each in self._sort(group) if each.digest in self.cells), None)
        digest = self.blocks[-1].find_leader([each.digest for each in group]) if self.blocks else None
        return next((each for each in group if each.digest == digest), None)

    def _is_default_and_runs(self, contender: Contender) -> bool:
        dropped = self.dropped.get(contender.digest)
        return contender is self.contenders[0] and (dropped is None or dropped.why != "failed")

    def _sort(self, group: Sequence[Contender]) -> list[Contender]:
        return sorted(group, key=lambda contender: self.estimates.get(contender.digest, inf))
