"""How the settings of one block compare in what the goal minimises, and which of them are shown to take more.

In short blocks the spread is pooled over all pairs: the mean of their variances has (arms − 1)(rounds − 1) degrees of
freedom, where a pair alone has rounds − 1. A setting is shut out where the interval of that spread, at a level that
holds for all arms together (Bonferroni), lies above the margin, and where each of its two rounds shows it too.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from typing import NamedTuple

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.document_find import Goal
from farm.contract.reasons import CellStatus
from farm.rules.comparing import special
from farm.rules.comparing.comparisons import INTERVAL_LEVEL, MARGIN
from farm.rules.comparing.look_levels import LOOKS
from farm.rules.comparing.sides import BySides, comparison_between, index_by_sides
from farm.rules.presenting import metric_changes
from farm.rules.searches.limits import is_disturbed
from farm.rules.wording.numbers import TIMES, change
from farm.rules.wording.vocabulary import is_change

MEMORY = "peak_memory_bytes"
# goals that are judged by a metric beside the headline
OF_METRICS: Mapping[Goal, str] = {"memory": MEMORY, "processor-time": "cpu_p50_ms"}
# what a single cell takes of what the goal minimises
AMOUNTS: Mapping[Goal, Callable[[Cell], float | None]] = {
    "latency": lambda cell: cell.p50_ms,
    "throughput": lambda cell: 1.0 / cell.throughput if cell.throughput else None,
    "processor-time": lambda cell: cell.cpu_p50_ms,
    "memory": lambda cell: cell.peak_memory_bytes,
}
# a single launch may take so much longer than the others of its setting
MAX_OUTLIER = 1.3
# the share of the machine that other programs may take just before a block
MAX_BUSY = 0.1
_UPPER = (1.0 + INTERVAL_LEVEL) / 2.0


class Cost(NamedTuple):
    """What a setting takes of what the goal minimises, as a ratio to another setting with its 95 % interval.

    `is_different`: whether the verdict of the comparison is that the two differ.
    """

    ratio: float
    low: float
    high: float
    rounds: int
    is_different: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of a single round's log ratio, by Student's t from the interval of two rounds or
        more."""
        return log(self.high / self.low) / 2.0 * sqrt(self.rounds) / float(special.stdtrit(self.rounds - 1, _UPPER))

    def format(self, goal: Goal) -> str:
        return format_ratio(goal, self.ratio, self.low, self.high)


def read_cost(pair: Comparison, goal: Goal) -> Cost | None:
    """Read off a comparison what its candidate takes against its baseline; None where the goal's metric was not
    compared, where the sides are not comparable, or where there is no interval."""
    side = metric_changes.find_metric(OF_METRICS[goal], pair) if goal in OF_METRICS else pair
    if side is None or pair.verdict == "not comparable":
        return None
    ratio, low, high, is_different = side.ratio, side.ci_low, side.ci_high, is_change(side.verdict)
    if goal == "throughput" and pair.items_verdict is not None:
        inverted = (pair.items_ratio, pair.items_ci_high, pair.items_ci_low)
        ratio, low, high = (1.0 / end if end else None for end in inverted)
        is_different = is_change(pair.items_verdict)
    return Cost(ratio, low, high, side.rounds, is_different) if ratio and low and high else None


@dataclass(frozen=True, slots=True)
class Standing:
    """One measured block. `cells`: those that are done, by their digests. `is_busy`: other programs took so much of the
    machine that elapsed times of several threads say nothing; such cells are in no pair."""

    goal: Goal
    cells: Mapping[str, Cell]
    pairs: BySides
    is_busy: bool
    # the deviation of a round, pooled over all pairs, and its degrees of freedom
    deviation: float
    freedom: int

    @classmethod
    def from_document(cls, document: Document, goal: Goal) -> "Standing":
        """Read a block's standing off its document, without pairs that say nothing because the machine was busy."""
        done = [cell for cell in document.cells if cell.twin_of is None and cell.status is CellStatus.DONE]
        shares = [facts.busy_share or 0.0 for facts in document.blocks]
        is_busy = max(shares, default=0.0) > MAX_BUSY or any(map(is_disturbed, done))
        blind = {cell.id for cell in done if is_busy and goal != "memory" and cell.threads > 1}
        names = {cell.id for cell in done} - blind
        pairs = [pair for pair in document.comparisons if {pair.baseline, pair.candidate} <= names]
        costs = {(pair.baseline, pair.candidate): read_cost(pair, goal) for pair in pairs}
        known = {sides: cost for sides, cost in costs.items() if cost is not None and cost.rounds > 1}
        variance = sum(cost.deviation**2 for cost in known.values()) / len(known) if known else 0.0
        arms = {side for sides in known for side in sides}
        freedom = (len(arms) - 1) * (min(cost.rounds for cost in known.values()) - 1) if known else 0
        return cls(goal, {cell.digest: cell for cell in done}, index_by_sides(pairs), is_busy, sqrt(variance), freedom)

    @property
    def is_by_processor(self) -> bool:
        return any(pair.verdict_from == "processor" for pair in self.pairs.values())

    def compare_cost(self, setting: str, *, of: str) -> Cost | None:
        """Return what a setting takes against another, both by their digests; None where they were not compared."""
        if not {setting, of} <= self.cells.keys():
            return None
        pair = comparison_between(self.pairs, self.cells[of].id, self.cells[setting].id)
        return None if pair is None else read_cost(pair, self.goal)

    @property
    def amounts(self) -> dict[str, float]:
        # on a busy machine they are good enough to choose what is measured next, and for nothing else
        return {digest: amount for digest, cell in self.cells.items() if (amount := AMOUNTS[self.goal](cell))}

    def find_leader(self, among: Iterable[str]) -> str | None:
        """Return the digest of the one of these settings that takes least; None where none of them was measured. A
        setting that was compared with no other one leads only where it is alone."""
        present = [setting for setting in among if setting in self.cells]
        worst: dict[str, float] = {}
        for setting in present:
            costs = [
                cost.ratio for other in present if other != setting and (cost := self.compare_cost(setting, of=other))
            ]
            if costs or len(present) == 1:
                worst[setting] = max(costs, default=1.0)
        return min(worst, key=worst.__getitem__, default=None)

    def find_shut_out_cost(self, setting: str, *, by: str) -> Cost | None:
        """Return what a setting takes against another where a short block shows that it is more by at least the margin;
        None where it does not show that."""
        cost = self.compare_cost(setting, of=by)
        if cost is None or cost.rounds < 2:
            return None
        if self.goal == "memory":
            return cost if cost.is_different and cost.ratio > 1.0 else None
        reach = max(self._reach(cost.rounds), cost.deviation / sqrt(2.0))
        return cost if log(cost.ratio) - reach > log1p(MARGIN) else None

    def _reach(self, rounds: int) -> float:
        """Return by how much a log ratio of so many rounds may be wrong, for all settings of the block together."""
        level = 1.0 - (1.0 - _UPPER) / len(self.cells)
        return float(special.stdtrit(self.freedom, level)) * self.deviation / sqrt(rounds)

    def find_screened_out_cost(self, ratio: float) -> Cost | None:
        """Return the cost of a setting that took `ratio` of another in one round, where that and the spread of this
        block show that it is more; None where they do not show it."""
        if not self.freedom:
            return None
        reach = exp(max(self._reach(1), log(MAX_OUTLIER)))
        return Cost(ratio, ratio / reach, ratio * reach, 1, False) if ratio > reach else None

    def find_slower_cost(self, setting: str, *, than: str) -> Cost | None:
        """Return what a setting takes against another where the verdict of a whole block is that it takes more, else
        None. A block that time cut short is judged as a short one."""
        cost = self.compare_cost(setting, of=than)
        if cost is None or cost.rounds < LOOKS[0]:
            return self.find_shut_out_cost(setting, by=than)
        return cost if cost.is_different and cost.ratio > 1.0 else None


def format_ratio(goal: Goal, ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Write what a setting takes against another in the words of the goal: `12 % slower`, `12 % fewer items/s`."""
    if goal == "throughput":
        ends = (1.0 / end if end else None for end in (high, low))
        return change(1.0 / ratio, *ends, words=("more items/s", "fewer items/s"))
    return change(ratio, low, high, words=("bigger", "smaller") if goal == "memory" else TIMES)
