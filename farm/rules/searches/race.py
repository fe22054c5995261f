"""A race: which of many settings takes least and keeps its budgets, by blocks of fewer and fewer of them.

Short blocks come first, of at most 16 settings in interleaved rounds: the first setting of all, which is in use today,
and the leader so far stand in each. Of a large space one launch of each setting picks those that go on. A setting
leaves where it breaks a budget or the leader shuts it out. The best of what is left run a final block, and what is told
of the answer comes from that alone. Settings whose outputs nobody can judge race among themselves, and are never the
answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import mean
from typing import Literal

from farm.contract.blocks import MAX_ARMS
from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_find import Goal
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import MIN_MEMORY
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.product import Selector
from farm.rules.searches.limits import Limits
from farm.rules.searches.search import Experiment, Measured, Search
from farm.rules.searches.standings import Cost, Standing, format_cost
from farm.rules.wording.numbers import counted

# rounds of a short block, the fewest that show a spread
ROUNDS = 2
# more settings than these are screened by one launch each: the best go on to the short blocks
MAX_UNSCREENED = 9
# how many settings beside today's run the final block, which takes most of the launches
FINALISTS = 3
# this share of the time stays for the final block
FINAL_SHARE = 0.5
LATE = "The time was over before it was measured: give more --minutes."

Why = Literal["failed", "budget", "slower", "undecided", "no time"]
State = Literal["decided", "close", "undecided", "nothing"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A setting that races. `digest`: of its cell; `values`: its point of the matrix, with the runtime."""

    digest: str
    values: Selector
    label: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A setting that left the race: why, the budget that it broke if that is why, and the reason in words."""

    contender: Contender
    why: Why
    text: str
    budget: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a race came to, or has come to so far.

    `found`: the answer, the setting to use in front, or the best so far. `costs`: what each setting takes against that
    one, by digest. `waiting`: how many of `found` no comparison joins to it. `close`: settings that had no place in the
    final block, and that the launches before it do not show to be slower. `apart`: why the outputs of a setting cannot
    be judged, by digest. `resolution`: the largest difference that may be left among `found`, as a fraction.
    `is_by_processor`: processor time decided, because the machine was busy.
    """

    state: State
    found: Sequence[Contender] = ()
    apart: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[Gone] = ()
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
    most. `fits`: whether a matrix is one block that ends in the time that is left. `left`: the share of the time that
    is left. `against_first`: what each setting takes as a ratio to the first one, by digest. `screened`: the same of
    the one launch that screens a large space. `aside`: the settings that did not go on from there.
    """

    matrix: Matrix
    contenders: Sequence[Contender]
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    max_in_block: int = MAX_ARMS
    fits: Callable[[Matrix], bool] = lambda matrix: True
    left: Callable[[], float] = lambda: 1.0
    cells: dict[str, Cell] = field(default_factory=dict, init=False)
    gone: dict[str, Gone] = field(default_factory=dict, init=False)
    blocks: list[Standing] = field(default_factory=list, init=False)
    close: list[Contender] = field(default_factory=list, init=False)
    is_final: bool = field(default=False, init=False)
    _queue: list[Contender] = field(init=False)
    _is_screening: bool = field(init=False)
    screened: dict[str, float] = field(init=False)
    aside: list[Contender] = field(default_factory=list, init=False)
    against_first: dict[str, float] = field(init=False)
    _pending: Experiment | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._queue = list(self.contenders)
        self._is_screening = len(self.contenders) > MAX_UNSCREENED
        self.against_first = {self.contenders[0].digest: 1.0}
        self.screened = dict(self.against_first)

    # what is measured next

    def next(self) -> Experiment | None:
        """Return the block to measure next, the same until its outcome is recorded; None once the race is over."""
        if self._pending is None and not self.is_final:
            self._pending = self._next_short_block() or self._final_block()
        return self._pending

    def _next_short_block(self) -> Experiment | None:
        if not self._split_proven()[0]:
            return None
        if self.blocks and self.left() < FINAL_SHARE:
            self._drop([each for each in self._queue if each.digest not in self.cells], "no time", LATE)
            self._queue = []
        elif not self._queue and self._is_screening:
            self._is_screening = False
            self._set_aside()
            self._queue = [each for each in self._remaining if each not in self.aside]
        if not self._queue:
            return None
        leaders = [self._leader(some) for some in self._split_proven()]
        beside = [each for each in self.contenders if each.digest in leaders or self._is_first_and_runs(each)]
        asked = [*beside, *(each for each in self._queue if each not in beside)][
            : max(self.max_in_block, len(beside) + 1)
        ]
        return self._experiment(asked, Budget.QUICK, 1 if self._is_screening else ROUNDS)

    def _set_aside(self) -> None:
        """Set those aside that one launch shows behind the best. A busy machine does not show it."""
        if not any(block.is_busy for block in self.blocks):
            proven, unproven = (self._sort_by_cost(some) for some in self._split_proven())
            self.aside = [*proven[MAX_UNSCREENED:], *unproven[FINALISTS:]]

    def _final_block(self) -> Experiment | None:
        proven, unproven = (self._sort_by_cost(some) for some in self._split_proven())
        if not proven or self.left() <= 0.0:
            return None
        beside = [each for each in self.contenders if self._is_first_and_runs(each)] + unproven[:1]
        others = [each for each in proven if each not in beside and each not in self.aside]
        room = min(len(others), FINALISTS)
        while room > 1 and not self.fits(self.matrix_of([*beside, *others[:room]], Budget.STANDARD)):
            room -= 1
        self.close = others[room:] + [each for each in proven if each in self.aside and each not in beside]
        return self._experiment([*beside, *others[:room]], Budget.STANDARD, None)

    def _experiment(self, asked: Sequence[Contender], budget: Budget, rounds: int | None) -> Experiment:
        length = counted(rounds, "round") if rounds else "the final block"
        title = f"{len(asked)} of {len(self.contenders)} settings, {length}"
        settings = [each.digest for each in asked]
        return Experiment(self.matrix_of(asked, budget), title, {"rounds": rounds, "settings": settings})

    def matrix_of(self, some: Sequence[Contender], budget: Budget = Budget.QUICK) -> Matrix:
        return replace(self.matrix, axes={}, exclude=(), include=tuple(each.values for each in some), budget=budget)

    # what was measured

    def record(self, outcome: Measured) -> None:
        """Note what the pending block measured, and drop the settings that are out by it."""
        asked = self.next()
        standing = Standing.from_document(outcome.document, self.goal)
        self.blocks.append(standing)
        self._pending = None
        if asked is None or asked.asked["rounds"] is None:
            self.is_final = True
        cells = {cell.digest: cell for cell in outcome.document.cells if cell.twin_of is None}
        for each in self.contenders:
            if each.digest in cells:
                self._note(each, cells[each.digest], standing)
        self._queue = [each for each in self._queue if each.digest not in cells and each.digest not in self.gone]
        if asked is not None and asked.asked["rounds"] == 1:
            self._note_screening(standing)
        elif not self.is_final:
            self._shut_out(standing)

    def record_interrupted(self, document: Document) -> None:
        """Note what was measured of a block that was stopped, unless it says less than the blocks before it."""
        standing = Standing.from_document(document, self.goal)
        if standing.freedom or (standing.cells and not self.blocks):
            self.blocks.append(standing)
            done = {each.digest: each for each in self.contenders if each.digest in standing.cells}
            for digest, contender in done.items():
                self._note(contender, standing.cells[digest], standing)

    def _note(self, contender: Contender, cell: Cell, standing: Standing) -> None:
        before = self.cells.get(contender.digest)
        if before is not None and before.accuracy is not None and before.accuracy.difference is not None:
            # the cell that its accuracy was compared with may not be in this block
            cell = cell.model_copy(update={"accuracy": before.accuracy})
        self.cells[contender.digest] = cell
        if cell.status is not CellStatus.DONE:
            self._drop([contender], "failed", cell.reason.text if cell.reason else cell.status.value)
        elif (broken := self.limits.find_broken(cell, is_busy=standing.is_busy)) is not None:
            self._drop([contender], "budget", broken.words, broken.budget)
        if (ratio := standing.estimate_ratio(contender.digest, of=self.contenders[0].digest)) is not None:
            self.against_first[contender.digest] = ratio

    def _note_screening(self, standing: Standing) -> None:
        """Note what each takes against the first setting, by way of those that stood in a block before."""
        amounts = standing.read_amounts()
        links = [log(amount / self.screened[digest]) for digest, amount in amounts.items() if digest in self.screened]
        link = exp(mean(links)) if links else min(amounts.values(), default=1.0)
        for digest, amount in amounts.items():
            self.screened.setdefault(digest, amount / link)
        self.against_first |= self.screened

    def _shut_out(self, standing: Standing) -> None:
        proven, unproven = self._split_proven()
        for some, judged_by in ((proven, proven), (unproven, unproven), (unproven, proven)):
            leader = self._leader(judged_by)
            if leader is None:
                continue
            name = next(other.label for other in self.contenders if other.digest == leader)
            for each in some:
                if (cost := standing.find_shut_out_cost(each.digest, by=leader)) is not None:
                    self._drop([each], "slower", f"{format_cost(cost, self.goal)} than {name} in short rounds")
                elif each in self.aside and leader in self.screened:
                    ratio = self.screened[each.digest] / self.screened[leader]
                    if (cost := standing.find_screened_out_cost(ratio)) is not None:
                        self._drop([each], "slower", f"{format_cost(cost, self.goal)} than {name} in one launch")

    def _drop(self, some: Sequence[Contender], why: Why, text: str, budget: str = "") -> None:
        for each in some:
            self.gone.setdefault(each.digest, Gone(each, why, text, budget))

    # what is known

    @property
    def _remaining(self) -> list[Contender]:
        return [each for each in self.contenders if each.digest not in self.gone]

    def _split_proven(self) -> tuple[list[Contender], list[Contender]]:
        unproven = [each for each in self._remaining if self._explain_unproven(each)]
        return [each for each in self._remaining if each not in unproven], unproven

    def _explain_unproven(self, contender: Contender) -> str:
        cell = self.cells.get(contender.digest)
        return "" if cell is None else self.limits.explain_unproven(cell)

    def _leader(self, among: Sequence[Contender]) -> str | None:
        if not self.blocks:
            return None
        if self._is_screening:
            return next((each.digest for each in self._sort_by_cost(among) if each.digest in self.cells), None)
        return self.blocks[-1].find_leader([each.digest for each in among])

    def _is_first_and_runs(self, contender: Contender) -> bool:
        gone = self.gone.get(contender.digest)
        return contender is self.contenders[0] and (gone is None or gone.why != "failed")

    def _sort_by_cost(self, some: Sequence[Contender]) -> list[Contender]:
        """Sort by what they take against the first setting of all; those that were not compared with it come last."""
        known = [each for each in some if each.digest in self.against_first]
        ordered = sorted(known, key=lambda each: self.against_first[each.digest])
        return [*ordered, *(each for each in some if each not in known)]

    def answer(self) -> Outcome:
        """Return the answer of the final block, or before it the best settings so far."""
        proven, unproven = self._split_proven()
        apart = {each.digest: self._explain_unproven(each) for each in unproven}
        if self.is_final:
            return replace(self._decide(proven), apart=apart, close=self.close)
        leader = self._leader(proven)
        measured = [each for each in self._sort_by_cost(proven) if each.digest in self.cells]
        measured.sort(key=lambda each: each.digest != leader)
        state: State = "undecided" if proven else "nothing"
        return Outcome(state, measured, apart, gone=[*self.gone.values()])

    def _decide(self, proven: Sequence[Contender]) -> Outcome:
        """Return the answer of the final block."""
        standing = self.blocks[-1]
        raced = [each for each in proven if each.digest in standing.cells]
        gone = [*self.gone.values(), *(lost for each in raced for lost in self._first_budget_not_kept(each, standing))]
        kept = [each for each in raced if each.digest not in {lost.contender.digest for lost in gone}]
        if not kept:
            undecided = [lost.contender for lost in gone if lost.why == "undecided"]
            found = self._sort_by_cost(undecided)
            return Outcome("undecided" if found else "nothing", found, gone=gone, is_final=True)
        leader = standing.find_leader([each.digest for each in kept]) or kept[0].digest
        slower = {
            each.digest: cost
            for each in kept
            if (cost := standing.find_slower_cost(each.digest, than=leader)) is not None
        }
        labels = {each.digest: each.label for each in kept}
        gone += [
            Gone(each, "slower", f"{format_cost(slower[each.digest], self.goal)} than {labels[leader]}")
            for each in kept
            if each.digest in slower
        ]
        return self._rank_answer([each for each in kept if each.digest not in slower], standing, gone)

    def _rank_answer(self, found: Sequence[Contender], standing: Standing, gone: Sequence[Gone]) -> Outcome:
        sizes = {each.digest: standing.cells[each.digest].peak_memory_bytes or 0 for each in found}
        least = min(sizes.values())
        order = {each.digest: place for place, each in enumerate(self._sort_by_cost(found))}
        # sizes that differ by less than MIN_MEMORY count as the same
        ordered = sorted(found, key=lambda each: ((sizes[each.digest] - least) // MIN_MEMORY, order[each.digest]))
        first = ordered[0].digest
        costs = {
            each.digest: cost for each in self.contenders if (cost := standing.compare_cost(each.digest, of=first))
        }
        among = [costs[each.digest] for each in ordered if each.digest in costs]
        waiting = len(ordered) - 1 - len(among)
        is_late = any(lost.why == "no time" for lost in gone)
        return Outcome(
            "undecided" if waiting or is_late else "close" if len(ordered) > 1 or self.close else "decided",
            ordered,
            gone=gone,
            costs=costs,
            waiting=waiting,
            resolution=max((max(cost.high, 1.0 / cost.low) - 1.0 for cost in among), default=None),
            is_final=True,
            is_by_processor=any(pair.verdict_from == "processor" for pair in standing.pairs.values()),
        )

    def _first_budget_not_kept(self, contender: Contender, standing: Standing) -> Iterator[Gone]:
        """Yield the first budget that the final block shows to be broken, or else one that it leaves open."""
        judged = self.limits.judge_budgets(self.cells[contender.digest], is_busy=standing.is_busy)
        for keeping, why in (("broken", "budget"), ("open", "undecided")):
            lost = next((found for found in judged if found.keeping == keeping), None)
            if lost is not None:
                yield Gone(contender, why, lost.words, lost.budget)  # type: ignore[arg-type]
                return
