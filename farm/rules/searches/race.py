"""A race: which of many settings takes least and keeps its budgets, by blocks of fewer and fewer of them.

Short blocks come first. Each has at most 16 settings in interleaved rounds, among them the first setting of the space,
which is in use today, and the leader so far. Of a large space, one launch of each setting picks those that go on. A
setting leaves where it breaks a budget or is shown to be slower than the leader. The best of the others run a final
block, and all figures of the answer come from that block alone. Settings whose outputs nobody can judge race among
themselves, and are never the answer.
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
from farm.rules.searches.limits import Limits
from farm.rules.searches.search import Experiment, Measured, Search, SearchProblem
from farm.rules.searches.standings import Cost, Standing
from farm.rules.wording.numbers import counted

# rounds of a short block, the fewest that show a spread
ROUNDS = 2
# more settings than these are screened by one launch each: the best go on to the short blocks
MAX_UNSCREENED = 9
# how many settings beside today's run the final block, which takes most of the launches
FINALISTS = 3
# this share of the time stays for the final block
FINAL_SHARE = 0.5
LATE = "The time was over before it was measured: give more minutes."
MISSING = "Its block ended without a result for it."


@dataclass(frozen=True, slots=True)
class Contender:
    """A setting that races. `digest`: of its cell; `values`: its point of the matrix, with the runtime."""

    digest: str
    values: Selector
    label: str = ""

    @property
    def settings(self) -> dict[str, object]:
        return {axis: to_plain(value) for axis, value in self.values.items()}

    def leave(self, why: Why, text: str, budget: str = "") -> LeftSetting:
        return LeftSetting(label=self.label, settings=self.settings, why=why, budget=budget, text=text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of a race, or the best so far.

    `answer`: the setting to use, and behind it those that are not shown to differ from it. `costs`: what each setting
    takes against the first of the answer, by digest. `waiting`: how many of the answer were not compared with that one.
    `close`: settings that had no place in the final block, and that the launches before it do not show to be slower.
    `apart`: why the outputs of a setting cannot be judged, by digest. `left`: the settings that left, by digest.
    `resolution`: the largest difference that may remain among the answer, as a fraction. `is_by_processor`: processor
    time decided, because the machine was busy.
    """

    state: State
    answer: Sequence[Contender] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, LeftSetting] = field(default_factory=dict)
    close: Sequence[Contender] = ()
    costs: Mapping[str, Cost] = field(default_factory=dict)
    waiting: int = 0
    resolution: float | None = None
    is_final: bool = False
    is_by_processor: bool = False


@dataclass
class Race(Search[Measured, Outcome]):
    """The search for the best of `contenders`, of which the first is the setting in use today.

    `matrix`: everything but its axes holds for all of them. `max_in_block`: how many settings a short block has at
    most. `fits`: whether a matrix is one block that ends in the time that remains. `time_left`: the share of the time
    that remains. `left`: the settings that left, by digest. `cells`: the last cell of each measured setting, by digest.
    `estimates`: about what each setting takes, by digest, in a unit that is the same for all of them; `screened`: the
    same by the one launch that screens a large space. `aside`: the settings that go on from there only where all the
    others have left.
    """

    matrix: Matrix
    contenders: Sequence[Contender]
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    max_in_block: int = MAX_ARMS
    fits: Callable[[Matrix], bool] = lambda matrix: True
    time_left: Callable[[], float] = lambda: 1.0
    cells: dict[str, Cell] = field(default_factory=dict, init=False)
    left: dict[str, LeftSetting] = field(default_factory=dict, init=False)
    blocks: list[Standing] = field(default_factory=list, init=False)
    close: list[Contender] = field(default_factory=list, init=False)
    is_final: bool = field(default=False, init=False)
    aside: list[Contender] = field(default_factory=list, init=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False)
    screened: dict[str, float] = field(default_factory=dict, init=False)
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
        proven, unproven = self._split_proven()
        if not proven:
            return None
        if self.blocks and self.time_left() < FINAL_SHARE:
            for contender in [each for each in self._queue if each.digest not in self.cells]:
                self._drop(contender, "no time", LATE)
            self._queue = []
        elif not self._queue and (self._is_screening or all(contender in self.aside for contender in proven)):
            self._queue_best_screened(proven, unproven)
        if not self._queue:
            return None
        leaders = self._find_leader(proven), self._find_leader(unproven)
        links = [each for each in self.contenders if each in leaders or self._is_first_and_runs(each)]
        settings = [*links, *(contender for contender in self._queue if contender not in links)]
        room = max(self.max_in_block, len(links) + 1)
        return self._make_experiment(settings[:room], Budget.QUICK, 1 if self._is_screening else ROUNDS)

    def _queue_best_screened(self, proven: Sequence[Contender], unproven: Sequence[Contender]) -> None:
        """Queue the best settings of those that one launch each has screened, and set the others aside."""
        screened = self.aside or self._list_remaining()
        if self._is_screening:
            self._is_screening, self.screened = False, dict(self.estimates)
        # one launch each on a busy machine does not show who is behind
        is_busy = any(block.is_busy for block in self.blocks)
        self.aside = [] if is_busy else [*self._sort(proven)[MAX_UNSCREENED:], *self._sort(unproven)[FINALISTS:]]
        self._queue = [each for each in screened if each not in self.aside and each.digest not in self.left]

    def _plan_final_block(self) -> Experiment | None:
        proven, unproven = (self._sort(group) for group in self._split_proven())
        if not proven or self.time_left() <= 0.0:
            return None
        beside = [contender for contender in self.contenders if self._is_first_and_runs(contender)] + unproven[:1]
        others = [contender for contender in proven if contender not in beside]
        finalists = ([contender for contender in others if contender not in self.aside] or others)[:FINALISTS]
        while len(finalists) > 1 and not self.fits(self.matrix_of([*beside, *finalists], Budget.STANDARD)):
            finalists.pop()
        self.close = [contender for contender in others if contender not in finalists]
        return self._make_experiment([*beside, *finalists], Budget.STANDARD, None)

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
        """Keep what the pending block measured, and drop the settings that it excludes.

        Raises SearchProblem where the race is over.
        """
        pending = self.next()
        if pending is None:
            raise SearchProblem("The race is over: no block was to be measured.")
        asked: Mapping[str, Any] = pending.asked
        rounds = asked["rounds"]
        standing = Standing.from_document(outcome.document, self.goal)
        self.blocks.append(standing)
        self._pending, self.is_final = None, rounds is None
        cells = {cell.digest: cell for cell in outcome.document.cells if cell.twin_of is None}
        self._keep_cells(cells, standing)
        for contender in self.contenders:
            if contender.digest in asked["settings"] and contender.digest not in cells:
                self._drop(contender, "failed", MISSING)
        self._queue = [each for each in self._queue if each.digest not in cells and each.digest not in self.left]
        if rounds == ROUNDS:
            self._drop_slower(standing)

    def record_interrupted(self, document: Document) -> None:
        """Keep what was measured of a block that was stopped, unless it says less than the blocks before it."""
        standing = Standing.from_document(document, self.goal)
        if standing.freedom or (standing.cells and not self.blocks):
            self.blocks.append(standing)
            self._keep_cells(standing.cells, standing)

    def _keep_cells(self, cells: Mapping[str, Cell], standing: Standing) -> None:
        """Keep the cells of a block, by digest, and drop the settings that failed or broke a budget in it."""
        for contender in self.contenders:
            if (cell := cells.get(contender.digest)) is None:
                continue
            before = self.cells.get(contender.digest)
            if before is not None and before.accuracy is not None and before.accuracy.difference is not None:
                # the cell that its accuracy was compared with may not be in this block
                cell = cell.model_copy(update={"accuracy": before.accuracy})
            self.cells[contender.digest] = cell
            if cell.status is not CellStatus.DONE:
                self._drop(contender, "failed", cell.reason.text if cell.reason else cell.status.value)
            elif (broken := self.limits.find_broken(cell, is_busy=standing.is_busy)) is not None:
                self._drop(contender, "budget", broken.words, broken.budget)
        amounts, known = standing.amounts, self.estimates.keys() & standing.amounts
        unit = exp(mean(log(amounts[digest] / self.estimates[digest]) for digest in known)) if known else 1.0
        self.estimates |= {digest: amount / unit for digest, amount in amounts.items()}

    def _drop_slower(self, standing: Standing) -> None:
        proven, unproven = self._split_proven()
        measured = [contender for contender in proven if contender.digest in self.cells]
        # a leader that may yet break a budget drops nobody
        sure = [contender for contender in measured if self.limits.is_in_time(self.cells[contender.digest])]
        for group, judged_by in ((proven, sure), (unproven, unproven), (unproven, sure)):
            if (leader := self._find_leader(judged_by)) is None:
                continue
            for contender in group:
                if (cost := standing.find_shut_out_cost(contender.digest, by=leader.digest)) is not None:
                    words = f"{cost.format(self.goal)} than {leader.label} in short rounds"
                    self._drop(contender, "slower", words)
                elif contender in self.aside and {contender.digest, leader.digest} <= self.screened.keys():
                    ratio = self.screened[contender.digest] / self.screened[leader.digest]
                    if (cost := standing.find_screened_out_cost(ratio)) is not None:
                        words = f"{cost.format(self.goal)} than {leader.label} in one launch"
                        self._drop(contender, "slower", words)

    def _drop(self, contender: Contender, why: Why, text: str, budget: str = "") -> None:
        self.left.setdefault(contender.digest, contender.leave(why, text, budget))

    # what is known

    def answer(self) -> Outcome:
        """Return the answer of the final block, or before it the best settings so far."""
        proven, unproven = self._split_proven()
        apart = {contender.digest: self._explain_unproven(contender) for contender in unproven}
        if self.is_final:
            return replace(self._decide(proven), apart=apart, close=self.close)
        leader = self._find_leader(proven)
        measured = [contender for contender in self._sort(proven) if contender.digest in self.cells]
        measured.sort(key=lambda contender: contender is not leader)
        state: State = "undecided" if proven else self._find_state_without_answer(self.left)
        return Outcome(state, measured, apart, dict(self.left))

    def _find_state_without_answer(self, left: Mapping[str, LeftSetting]) -> State:
        """Return "nothing" only where every setting failed, broke a budget or cannot be judged."""
        proven = [contender for contender in self.contenders if not self._explain_unproven(contender)]
        reasons = {left[contender.digest].why for contender in proven if contender.digest in left}
        return "undecided" if self.close or reasons & {"slower", "undecided", "no time"} else "nothing"

    def _decide(self, proven: Sequence[Contender]) -> Outcome:
        """Return the answer of the final block."""
        standing = self.blocks[-1]
        left = self._judge_budgets(proven, standing)
        raced = {each.digest: each for each in self._sort(proven) if each.digest in standing.cells}
        kept = [digest for digest in raced if digest not in left]
        if not kept:
            undecided = [contender for digest, contender in raced.items() if left[digest].why == "undecided"]
            return Outcome(self._find_state_without_answer(left), undecided, left=left, is_final=True)
        leader = standing.find_leader(kept) or kept[0]
        ratios = {leader: 1.0}
        for digest in kept:
            if (slower := standing.find_slower_cost(digest, than=leader)) is not None:
                words = f"{slower.format(self.goal)} than {raced[leader].label}"
                left[digest] = raced[digest].leave("slower", words)
            elif (cost := standing.compare_cost(digest, of=leader)) is not None:
                ratios[digest] = cost.ratio
        answer = sorted((digest for digest in kept if digest not in left), key=lambda digest: ratios.get(digest, inf))
        return self._rank_answer([raced[digest] for digest in answer], left)

    def _judge_budgets(self, proven: Sequence[Contender], standing: Standing) -> dict[str, LeftSetting]:
        """Return the settings that left, with those that do not surely keep their budgets in the final block: also the
        setting in use today, which stands there even where short rounds showed that it is slower."""
        left = dict(self.left)
        for contender in self.contenders:
            before = left.get(contender.digest)
            is_judged = contender in proven or (before is not None and before.why == "slower")
            if contender.digest not in standing.cells or not is_judged:
                continue
            judged = self.limits.judge_budgets(self.cells[contender.digest], is_busy=standing.is_busy)
            if doubts := [budget for budget in judged if budget.keeping != "kept"]:
                worst = min(doubts, key=lambda budget: budget.keeping == "open")
                why: Why = "budget" if worst.keeping == "broken" else "undecided"
                left[contender.digest] = contender.leave(why, worst.words, worst.budget)
        return left

    def _rank_answer(self, answer: Sequence[Contender], left: Mapping[str, LeftSetting]) -> Outcome:
        """Rank what the final block does not tell apart, with the smallest in memory first. `answer`: in the order of
        what they take."""
        standing = self.blocks[-1]
        sizes = {each.digest: standing.cells[each.digest].peak_memory_bytes or 0 for each in answer}
        smallest = min(sizes.values())
        # sizes that differ by less than MIN_MEMORY count as the same
        ordered = sorted(answer, key=lambda each: (sizes[each.digest] - smallest) // MIN_MEMORY)
        first = ordered[0].digest
        costs = {
            each.digest: cost for each in self.contenders if (cost := standing.compare_cost(each.digest, of=first))
        }
        among = [costs[each.digest] for each in ordered if each.digest in costs]
        waiting = len(ordered) - 1 - len(among)
        is_late = any(setting.why == "no time" for setting in left.values())
        return Outcome(
            "undecided" if waiting or is_late else "close" if len(ordered) > 1 or self.close else "decided",
            ordered,
            left=left,
            costs=costs,
            waiting=waiting,
            resolution=max((max(cost.high, 1.0 / cost.low) - 1.0 for cost in among), default=None),
            is_final=True,
            is_by_processor=standing.is_by_processor,
        )

    def _split_proven(self) -> tuple[list[Contender], list[Contender]]:
        """Split what remains by whether its outputs are accurate enough, as far as anybody can say."""
        remaining = self._list_remaining()
        unproven = [contender for contender in remaining if self._explain_unproven(contender)]
        return [contender for contender in remaining if contender not in unproven], unproven

    def _list_remaining(self) -> list[Contender]:
        return [contender for contender in self.contenders if contender.digest not in self.left]

    def _explain_unproven(self, contender: Contender) -> str:
        cell = self.cells.get(contender.digest)
        return "" if cell is None else self.limits.explain_unproven(cell)

    def _find_leader(self, group: Sequence[Contender]) -> Contender | None:
        if self._is_screening:
            return next((each for each in self._sort(group) if each.digest in self.cells), None)
        digest = self.blocks[-1].find_leader([each.digest for each in group]) if self.blocks else None
        return next((each for each in group if each.digest == digest), None)

    def _is_first_and_runs(self, contender: Contender) -> bool:
        left = self.left.get(contender.digest)
        return contender is self.contenders[0] and (left is None or left.why != "failed")

    def _sort(self, group: Sequence[Contender]) -> list[Contender]:
        """Sort by about what they take; those of which nothing is known come last."""
        return sorted(group, key=lambda contender: self.estimates.get(contender.digest, inf))
