"""Compares the costs of the settings of one block, and finds those that are shown to be higher.

A cost is what the goal minimises: latency, processor time, memory, or the time of an item.

In short blocks the spread is pooled over all pairs: the mean of their variances has (arms − 1)(rounds − 1) degrees of
freedom, where a pair alone has rounds − 1. A cost is shown to be higher if its interval by that spread, at a level that
holds for all arms together (Bonferroni), lies above the margin, and if each of its two rounds shows it too.
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
from farm.rules.presenting.lines import is_disturbed
from farm.rules.wording.numbers import TIMES, change
from farm.rules.wording.vocabulary import is_change

MEMORY = "peak_memory_bytes"
# goals that are judged by another metric than the headline
OF_METRICS: Mapping[Goal, str] = {"memory": MEMORY, "processor-time": "cpu_p50_ms"}
# computes the cost of a single cell; None if it was not measured
AMOUNTS: Mapping[Goal, Callable[[Cell], float | None]] = {
    "latency": lambda cell: cell.p50_ms,
    "throughput": lambda cell: 1.0 / cell.throughput if cell.throughput else None,
    "processor-time": lambda cell: cell.cpu_p50_ms,
    "memory": lambda cell: cell.peak_memory_bytes,
}
# a single launch may be slower than the others of its setting by this factor
MAX_OUTLIER = 1.3
# the share of the machine that other programs may take just before a block
MAX_BUSY = 0.1
_UPPER = (1.0 + INTERVAL_LEVEL) / 2.0


class Cost(NamedTuple):
    """The cost of a setting as a ratio to the cost of another, with its 95 % interval. A ratio above 1 is worse.

    `is_different` says that the verdict of the comparison is a change.
    """

    ratio: float
    low: float
    high: float
    rounds: int
    is_different: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of a single round's log ratio, derived from the interval, of two rounds or more."""
        return log(self.high / self.low) / 2.0 * sqrt(self.rounds) / float(special.stdtrit(self.rounds - 1, _UPPER))

    def format(self, goal: Goal) -> str:
        return format_ratio(goal, self.ratio, self.low, self.high)


def read_cost(comparison: Comparison, goal: Goal) -> Cost | None:
    """Read the cost of a comparison's candidate relative to its baseline.

    None if the goal's metric was not compared, if the sides are not comparable, or without an interval.
    """
    metric = metric_changes.find_metric(OF_METRICS[goal], comparison) if goal in OF_METRICS else comparison
    if metric is None or comparison.verdict == "not comparable":
        return None
    ratio, low, high, is_different = metric.ratio, metric.ci_low, metric.ci_high, is_change(metric.verdict)
    if goal == "throughput" and comparison.items_verdict is not None:
        # the time of an item is the inverse of its rate
        inverted = (comparison.items_ratio, comparison.items_ci_high, comparison.items_ci_low)
        ratio, low, high = (1.0 / end if end else None for end in inverted)
        is_different = is_change(comparison.items_verdict)
    return Cost(ratio, low, high, metric.rounds, is_different) if ratio and low and high else None


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """One measured block. Settings are named by the digests of their cells.

    `cells` are those that are done, by digest. `is_busy` says that other programs took so much of the machine that
    elapsed times of several threads are meaningless; `pairs` then lack such cells, except for the goal `memory`.
    `deviation` is that of a round's log ratio, pooled over all pairs, with `freedom` degrees of freedom. If `freedom`
    is 0, no pair was compared in two rounds. `is_by_processor` says that a verdict rests on processor time.
    """

    goal: Goal
    cells: Mapping[str, Cell]
    pairs: BySides
    is_busy: bool
    deviation: float
    freedom: int

    @classmethod
    def from_document(cls, document: Document, goal: Goal) -> "BlockCosts":
        """Read the costs from the document of a block; A/A twins and cells that are not done are left out."""
        done = [cell for cell in document.cells if cell.twin_of is None and cell.status is CellStatus.DONE]
        busy_shares = [facts.busy_share or 0.0 for facts in document.blocks]
        is_busy = max(busy_shares, default=0.0) > MAX_BUSY or any(map(is_disturbed, done))

        # elapsed times of several threads are not compared on a busy machine
        ids = {cell.id for cell in done if not is_busy or goal == "memory" or cell.threads <= 1}
        pairs = [pair for pair in document.comparisons if {pair.baseline, pair.candidate} <= ids]

        costs = {(pair.baseline, pair.candidate): read_cost(pair, goal) for pair in pairs}
        known = {sides: cost for sides, cost in costs.items() if cost is not None and cost.rounds > 1}
        variance = sum(cost.deviation**2 for cost in known.values()) / len(known) if known else 0.0
        arms = {side for sides in known for side in sides}
        freedom = (len(arms) - 1) * (min(cost.rounds for cost in known.values()) - 1) if known else 0
        return cls(goal, {cell.digest: cell for cell in done}, index_by_sides(pairs), is_busy, sqrt(variance), freedom)

    @property
    def is_by_processor(self) -> bool:
        return any(pair.verdict_from == "processor" for pair in self.pairs.values())

    def find_cost(self, setting: str, *, relative_to: str) -> Cost | None:
        """Return the cost of one setting relative to another; None where no such cost is known."""
        if not {setting, relative_to} <= self.cells.keys():
            return None
        pair = comparison_between(self.pairs, self.cells[relative_to].id, self.cells[setting].id)
        return None if pair is None else read_cost(pair, self.goal)

    @property
    def amounts(self) -> dict[str, float]:
        """The unpaired cost of each setting by digest, in the unit of the goal; settings without a cost are left out.

        On a busy machine it is good enough only to choose what is measured next.
        """
        return {digest: amount for digest, cell in self.cells.items() if (amount := AMOUNTS[self.goal](cell))}

    def find_leader(self, among: Iterable[str]) -> str | None:
        """Return the setting whose highest cost relative to any other of these is the lowest.

        A single measured setting leads without a comparison. None if several were measured and none compared, or if
        none was measured.
        """
        present = [setting for setting in among if setting in self.cells]
        if len(present) == 1:
            return present[0]
        worst: dict[str, float] = {}
        for setting in present:
            others = [other for other in present if other != setting]
            costs = [cost.ratio for other in others if (cost := self.find_cost(setting, relative_to=other))]
            if costs:
                worst[setting] = max(costs)
        return min(worst, key=worst.__getitem__, default=None)

    def find_short_block_excess(self, setting: str, *, relative_to: str) -> Cost | None:
        """Return the cost of a setting relative to another if a short block shows it to be above the margin, else None.

        A single round shows nothing. For memory the block has to show only that it is higher.
        """
        cost = self.find_cost(setting, relative_to=relative_to)
        if cost is None or cost.rounds < 2:
            return None
        if self.goal == "memory":
            return cost if cost.is_different and cost.ratio > 1.0 else None
        reach = max(self._reach(cost.rounds), cost.deviation / sqrt(2.0))
        return cost if log(cost.ratio) - reach > log1p(MARGIN) else None

    def _reach(self, rounds: int) -> float:
        # half the interval of a log ratio; the level holds for all settings together (Bonferroni)
        level = 1.0 - (1.0 - _UPPER) / len(self.cells)
        return float(special.stdtrit(self.freedom, level)) * self.deviation / sqrt(rounds)

    def find_screening_excess(self, ratio: float) -> Cost | None:
        """Return the cost of a setting that took `ratio` times as much as another in a single round.

        None if the spread of this block or an outlier may explain that ratio.
        """
        if not self.freedom:
            return None
        reach = exp(max(self._reach(1), log(MAX_OUTLIER)))
        return Cost(ratio, ratio / reach, ratio * reach, 1, False) if ratio > reach else None

    def find_excess(self, setting: str, *, relative_to: str) -> Cost | None:
        """Return the cost of a setting relative to another if a final block decided that it is higher, else None.

        A block with too few rounds for a verdict is judged as a short block.
        """
        cost = self.find_cost(setting, relative_to=relative_to)
        if cost is None or cost.rounds < LOOKS[0]:
            return self.find_short_block_excess(setting, relative_to=relative_to)
        return cost if cost.is_different and cost.ratio > 1.0 else None


def format_ratio(goal: Goal, ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Format a relative cost in the words of the goal: `12 % slower`, `12 % fewer items/s`.

    The interval, if given, decides the number of digits.
    """
    if goal == "throughput":
        ends = (1.0 / end if end else None for end in (high, low))
        return change(1.0 / ratio, *ends, words=("more items/s", "fewer items/s"))
    return change(ratio, low, high, words=("bigger", "smaller") if goal == "memory" else TIMES)
