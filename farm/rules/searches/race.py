"""A race: which of many settings takes least and keeps its budgets, by blocks of fewer and fewer of them.

Short blocks come first, of at most 16 settings in interleaved rounds: the first setting of all, which is in use today,
and the leader so far stand in each. A setting leaves where it breaks a budget or the leader shuts it out. What is left
runs a final block, and what is told of the answer comes from that alone. Settings whose outputs nobody can judge race
among themselves, and are never the answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

# rounds of the short blocks; of more settings than these a second one costs less than the final block would
ROUNDS = (2, 4)
FEW = 3
# so much of the time stays for the final block
FINAL_SHARE = 0.5
LATE = "The time was over before it was measured: give more --minutes."

Why = Literal["failed", "budget", "slower", "undecided", "no time"]
State = Literal["decided", "close", "undecided", "nothing"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A setting: the digest of its cell, and its point of the matrix with the runtime."""

    digest: str
    values: Selector
    label: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A setting that is no answer: why, because of which budget, and in words."""

    contender: Contender
    why: Why
    text: str
    budget: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`found`: the answer, its first in front, or the best so far; `costs`: against that first. `waiting`: how many of
    them nothing compares with it; `close`: as near by short rounds, without a place in the final block. `apart`: why
    nobody can judge them, by their digests. `resolution`: what the rounds leave open among `found`, as a fraction."""

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
    """`matrix`: what stands beside the axes. `room`: settings of a short block at most. `fits`: whether a matrix is one
    block that ends in the time that is left; `left`: the share of the time that is."""

    matrix: Matrix
    contenders: Sequence[Contender]
    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    room: int = MAX_ARMS
    fits: Callable[[Matrix], bool] = lambda matrix: True
    left: Callable[[], float] = lambda: 1.0
    cells: dict[str, Cell] = field(default_factory=dict, init=False)
    gone: dict[str, Gone] = field(default_factory=dict, init=False)
    blocks: list[Standing] = field(default_factory=list, init=False)
    close: list[Contender] = field(default_factory=list, init=False)
    is_final: bool = field(default=False, init=False)
    _queue: list[Contender] = field(init=False)
    _heat: int = field(default=0, init=False)
    against_first: dict[str, float] = field(init=False)
    _pending: Experiment | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._queue = list(self.contenders)
        self.against_first = {self.contenders[0].digest: 1.0}

    # what is measured next

    def next(self) -> Experiment | None:
        if self._pending is None and not self.is_final:
            self._pending = self._short() or self._final()
        return self._pending

    def _short(self) -> Experiment | None:
        if not self._classes()[0]:
            return None
        if self.blocks and self.left() < FINAL_SHARE:
            self._leave(self._queue, "no time", LATE)
            self._queue = []
        elif not self._queue and self._heat + 1 < len(ROUNDS) and len(self._alive) > FEW:
            self._heat += 1
            self._queue = list(self._alive)
        if not self._queue:
            return None
        leaders = [leader for some in self._classes() if (leader := self._leader(some)) is not None]
        beside = [each for each in self.contenders if each.digest in leaders or self._is_first(each)]
        asked = [*beside, *(each for each in self._queue if each not in beside)][: max(self.room, len(beside) + 1)]
        return self._experiment(asked, Budget.QUICK, ROUNDS[self._heat])

    def _final(self) -> Experiment | None:
        proven, unproven = (self._in_order(some) for some in self._classes())
        if not proven or self.left() <= 0.0:
            return None
        beside = [each for each in self.contenders if self._is_first(each)] + unproven[:1]
        others = [each for each in proven if each not in beside]
        room = min(len(others), MAX_ARMS - len(beside))
        while room > 1 and not self.fits(self.among([*beside, *others[:room]], Budget.STANDARD)):
            room -= 1
        self.close = others[room:]
        return self._experiment([*beside, *others[:room]], Budget.STANDARD, None)

    def _experiment(self, asked: Sequence[Contender], budget: Budget, rounds: int | None) -> Experiment:
        title = (
            f"{len(asked)} of {len(self.contenders)} settings, {f'{rounds} rounds' if rounds else 'the final block'}"
        )
        settings = [each.digest for each in asked]
        return Experiment(self.among(asked, budget), title, {"rounds": rounds, "settings": settings})

    def among(self, some: Sequence[Contender], budget: Budget = Budget.QUICK) -> Matrix:
        return replace(self.matrix, axes={}, exclude=(), include=tuple(each.values for each in some), budget=budget)

    # what was measured

    def record(self, outcome: Measured) -> None:
        asked = self.next()
        standing = Standing.of(outcome.document, self.goal)
        self.blocks.append(standing)
        self._pending = None
        if asked is None or asked.asked["rounds"] is None:
            self.is_final = True
        cells = {cell.digest: cell for cell in outcome.document.cells if cell.twin_of is None}
        for each in self.contenders:
            if each.digest in cells:
                self._note(each, cells[each.digest], standing)
        self._queue = [each for each in self._queue if each.digest not in cells and each.digest not in self.gone]
        if not self.is_final:
            self._shut_out(standing)

    def interrupt(self, document: Document) -> None:
        """Note what was measured of a block that was stopped. Single rounds say less than a whole block before."""
        standing = Standing.of(document, self.goal)
        if standing.freedom or (standing.cells and not self.blocks):
            self.blocks.append(standing)
            done = {each.digest: each for each in self.contenders if each.digest in standing.cells}
            for digest, contender in done.items():
                self._note(contender, standing.cells[digest], standing)

    def _note(self, contender: Contender, cell: Cell, standing: Standing) -> None:
        before = self.cells.get(contender.digest)
        if before is not None and before.accuracy is not None and before.accuracy.difference is not None:
            # the block may lack what it was held against
            cell = cell.model_copy(update={"accuracy": before.accuracy})
        self.cells[contender.digest] = cell
        if cell.status is not CellStatus.DONE:
            self._leave([contender], "failed", cell.reason.text if cell.reason else cell.status.value)
        elif (broken := self.limits.broken(cell, is_busy=standing.is_busy)) is not None:
            self._leave([contender], "budget", broken.words, broken.budget)
        if (cost := standing.cost(contender.digest, of=self.contenders[0].digest)) is not None:
            self.against_first[contender.digest] = cost.ratio

    def _shut_out(self, standing: Standing) -> None:
        proven, unproven = self._classes()
        for some, judged_by in ((proven, proven), (unproven, unproven), (unproven, proven)):
            leader = self._leader(judged_by)
            if leader is None:
                continue
            name = next(other.label for other in self.contenders if other.digest == leader)
            for each in some:
                if (cost := standing.shut_out(each.digest, by=leader)) is not None:
                    self._leave([each], "slower", f"{format_cost(cost, self.goal)} than {name} in short rounds")

    def _leave(self, some: Sequence[Contender], why: Why, text: str, budget: str = "") -> None:
        for each in some:
            self.gone.setdefault(each.digest, Gone(each, why, text, budget))

    # what is known

    @property
    def _alive(self) -> list[Contender]:
        return [each for each in self.contenders if each.digest not in self.gone]

    def _classes(self) -> tuple[list[Contender], list[Contender]]:
        unproven = [each for each in self._alive if self._unproven(each)]
        return [each for each in self._alive if each not in unproven], unproven

    def _unproven(self, contender: Contender) -> str:
        cell = self.cells.get(contender.digest)
        return "" if cell is None else self.limits.unproven(cell)

    def _leader(self, among: Sequence[Contender]) -> str | None:
        return self.blocks[-1].leader([each.digest for each in among]) if self.blocks else None

    def _is_first(self, contender: Contender) -> bool:
        gone = self.gone.get(contender.digest)
        return contender is self.contenders[0] and (gone is None or gone.why != "failed")

    def _in_order(self, some: Sequence[Contender]) -> list[Contender]:
        """By what they take against the first setting of all; what nothing compares with it comes last."""
        known = [each for each in some if each.digest in self.against_first]
        ordered = sorted(known, key=lambda each: self.against_first[each.digest])
        return [*ordered, *(each for each in some if each not in known)]

    def answer(self) -> Outcome:
        proven, unproven = self._classes()
        apart = {each.digest: self._unproven(each) for each in unproven}
        if self.is_final:
            return replace(self._decided(proven), apart=apart, close=self.close)
        leader = self._leader(proven)
        measured = [each for each in self._in_order(proven) if each.digest in self.cells]
        measured.sort(key=lambda each: each.digest != leader)
        state: State = "undecided" if proven else "nothing"
        return Outcome(state, measured, apart, gone=[*self.gone.values()])

    def _decided(self, proven: Sequence[Contender]) -> Outcome:
        """By the final block."""
        standing = self.blocks[-1]
        raced = [each for each in proven if each.digest in standing.cells]
        gone = [*self.gone.values(), *(lost for each in raced for lost in self._over_budget(each, standing))]
        kept = [each for each in raced if each.digest not in {lost.contender.digest for lost in gone}]
        if not kept:
            undecided = [lost.contender for lost in gone if lost.why == "undecided"]
            found = self._in_order(undecided)
            return Outcome("undecided" if found else "nothing", found, gone=gone, is_final=True)
        leader = standing.leader([each.digest for each in kept]) or kept[0].digest
        slower = {each.digest: cost for each in kept if (cost := standing.slower(each.digest, than=leader)) is not None}
        labels = {each.digest: each.label for each in kept}
        gone += [
            Gone(each, "slower", f"{format_cost(slower[each.digest], self.goal)} than {labels[leader]}")
            for each in kept
            if each.digest in slower
        ]
        return self._answered([each for each in kept if each.digest not in slower], standing, gone)

    def _answered(self, found: Sequence[Contender], standing: Standing, gone: Sequence[Gone]) -> Outcome:
        sizes = {each.digest: standing.cells[each.digest].peak_memory_bytes or 0 for each in found}
        least = min(sizes.values())
        order = {each.digest: place for place, each in enumerate(self._in_order(found))}
        # what differs by less has the same memory
        ordered = sorted(found, key=lambda each: ((sizes[each.digest] - least) // MIN_MEMORY, order[each.digest]))
        first = ordered[0].digest
        costs = {each.digest: cost for each in self.contenders if (cost := standing.cost(each.digest, of=first))}
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

    def _over_budget(self, contender: Contender, standing: Standing) -> Iterator[Gone]:
        """The first budget that the final block shows to be broken, or does not show to be kept."""
        judged = self.limits.judged(self.cells[contender.digest], is_busy=standing.is_busy)
        for keeping, why in (("broken", "budget"), ("open", "undecided")):
            lost = next((found for found in judged if found.keeping == keeping), None)
            if lost is not None:
                yield Gone(contender, why, lost.words, lost.budget)  # type: ignore[arg-type]
                return
