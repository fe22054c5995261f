"""How the settings of one block stand to each other in what is to be small, and which of them are shut out.

In short blocks the spread is pooled over all pairs: the mean of their variances has (arms − 1)(rounds − 1) degrees of
freedom, where a pair alone has rounds − 1. A setting is shut out where that interval says so and, of two rounds, each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log, log1p, sqrt
from typing import NamedTuple

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.document_find import Goal
from farm.contract.reasons import CellStatus
from farm.rules.comparing import special
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, MARGIN
from farm.rules.comparing.look_levels import LOOKS
from farm.rules.comparing.sides import BySides, between, by_sides
from farm.rules.presenting import metric_changes
from farm.rules.searches.limits import is_disturbed
from farm.rules.wording.numbers import TIMES, change
from farm.rules.wording.vocabulary import is_change

MEMORY = "peak_memory_bytes"
# goals that are judged by a metric beside the headline
OF_METRICS: Mapping[Goal, str] = {"memory": MEMORY, "processor-time": "cpu_p50_ms"}
# of the machine just before a block, by other programs
MAX_BUSY = 0.1
_UPPER = (1.0 + INTERVAL_LEVEL) / 2.0


class Cost(NamedTuple):
    """What a setting takes of what is to be small, as a factor of another's, with its 95 % interval."""

    ratio: float
    low: float
    high: float
    rounds: int
    is_told_apart: bool

    @property
    def deviation(self) -> float:
        """Of single rounds, from the interval by Student's t of few rounds, but at least two."""
        return log(self.high / self.low) / 2.0 * sqrt(self.rounds) / _t(self.rounds - 1)


def cost_of(pair: Comparison, goal: Goal) -> Cost | None:
    """Of the candidate; None where nothing says it, as of several threads on a busy machine."""
    found: tuple[float | None, float | None, float | None, int, str] | None
    if goal in OF_METRICS:
        change = metric_changes.of(OF_METRICS[goal], pair)
        found = None if change is None else (change.ratio, change.ci_low, change.ci_high, change.rounds, change.verdict)
    elif goal == "throughput" and pair.items_verdict is not None:
        ends = (pair.items_ratio, pair.items_ci_high, pair.items_ci_low)
        ratio, low, high = (1.0 / end if end else None for end in ends)
        found = (ratio, low, high, pair.rounds, pair.items_verdict)
    else:
        found = (pair.ratio, pair.ci_low, pair.ci_high, pair.rounds, pair.verdict)
    if found is None or pair.verdict == "not comparable":
        return None
    ratio, low, high, rounds, verdict = found
    return Cost(ratio, low, high, rounds, is_change(verdict)) if ratio and low and high else None


@dataclass(frozen=True, slots=True)
class Standing:
    """One block. `cells`: those that are done, by their digests. `is_busy`: other programs took so much of the machine
    that elapsed times of several threads, which nobody gates, say nothing."""

    goal: Goal
    cells: Mapping[str, Cell]
    pairs: BySides
    is_busy: bool
    # of the pairs of its cells, pooled, and the degrees of freedom
    deviation: float
    freedom: int

    @classmethod
    def of(cls, document: Document, goal: Goal) -> "Standing":
        done = [cell for cell in document.cells if cell.twin_of is None and cell.status is CellStatus.DONE]
        shares = [facts.busy_share or 0.0 for facts in document.blocks]
        is_busy = max(shares, default=0.0) > MAX_BUSY or any(map(is_disturbed, done))
        blind = {cell.id for cell in done if is_busy and goal != "memory" and cell.threads > 1}
        names = {cell.id for cell in done} - blind
        pairs = [pair for pair in document.comparisons if {pair.baseline, pair.candidate} <= names]
        costs = {(pair.baseline, pair.candidate): cost_of(pair, goal) for pair in pairs}
        known = {sides: cost for sides, cost in costs.items() if cost is not None and cost.rounds > 1}
        variance = sum(cost.deviation**2 for cost in known.values()) / len(known) if known else 0.0
        arms = {side for sides in known for side in sides}
        freedom = (len(arms) - 1) * (min(cost.rounds for cost in known.values()) - 1) if known else 0
        return cls(goal, {cell.digest: cell for cell in done}, by_sides(pairs), is_busy, sqrt(variance), freedom)

    def cost(self, setting: str, *, of: str) -> Cost | None:
        """What a setting takes against another, by their digests."""
        if not {setting, of} <= self.cells.keys():
            return None
        pair = between(self.pairs, self.cells[of].id, self.cells[setting].id)
        return None if pair is None else cost_of(pair, self.goal)

    def leader(self, among: Iterable[str]) -> str | None:
        """Of these the one that takes least, by the pairs that are known: what nothing compares leads only alone."""
        present = [setting for setting in among if setting in self.cells]
        worst: dict[str, float] = {}
        for setting in present:
            costs = [cost.ratio for other in present if other != setting and (cost := self.cost(setting, of=other))]
            if costs or len(present) == 1:
                worst[setting] = max(costs, default=1.0)
        return min(worst, key=worst.__getitem__, default=None)

    def shut_out(self, setting: str, *, by: str) -> Cost | None:
        """What a setting takes against another, where the rounds of a short block show that it is more than the margin;
        None where they do not."""
        cost = self.cost(setting, of=by)
        if cost is None or cost.rounds < 2:
            return None
        if self.goal == "memory":
            return cost if cost.is_told_apart and cost.ratio > 1.0 else None
        reach = _t(self.freedom) * self.deviation / sqrt(cost.rounds)
        return cost if log(cost.ratio) - max(reach, cost.deviation / sqrt(2.0)) > log1p(MARGIN) else None

    def slower(self, setting: str, *, than: str) -> Cost | None:
        """The same by a whole block, whose verdict says it; where time cut it short, as in a short one."""
        cost = self.cost(setting, of=than)
        if cost is None or cost.rounds < LOOKS[0]:
            return self.shut_out(setting, by=than)
        return cost if cost.is_told_apart and cost.ratio > 1.0 else None


def format_cost(cost: Cost, goal: Goal) -> str:
    """`12 % slower`, `12 % fewer items/s`, `12 % bigger`."""
    ratio, low, high = cost[:3]
    if goal == "throughput":
        return change(1.0 / ratio, 1.0 / high, 1.0 / low, words=("more items/s", "fewer items/s"))
    return change(ratio, low, high, words=("bigger", "smaller") if goal == "memory" else TIMES)


def _t(freedom: int) -> float:
    return float(special.stdtrit(freedom, _UPPER))
