"""Verdicts on metrics that may be zero or negative, such as growth, by the differences of pairs.

The ratio of such figures is meaningless. The rule for ratios therefore judges exp(difference / scale), whose logarithms
are the scaled differences: by the same tests, looks and intervals, with the margin in the metric's own unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p

from farm.rules.comparing import verdicts
from farm.rules.comparing.comparisons import MARGIN, Comparison

# Larger differences are cut off at this many margins, because the rule takes samples up to 1e100.
MAX_MARGINS = 10_000.0


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference new − old with its interval, in the metric's own unit, and the comparison with its verdict.

    The difference is an estimate over the pairs, each of which is cut off at 10,000 margins.
    The ratio of `comparison`, and what follows from it, is that of the scaled differences and means nothing here.
    """

    comparison: Comparison
    change: float
    low: float
    high: float


def judge_many(blocks: Sequence[Sequence[tuple[float, float]]], *, margin: float) -> list[Difference]:
    """Judge the (old, new) pairs of each block, in the order of blocks; `margin` is in their unit and above zero.

    Pairs are in time order. Raises ValueError when a block has fewer than two pairs.
    """
    scale = margin / log1p(MARGIN)
    limit = MAX_MARGINS * margin
    pairs = [[(1.0, exp(max(-limit, min(limit, new - old)) / scale)) for old, new in block] for block in blocks]
    judged = verdicts.judge_many(pairs, margin=MARGIN)
    return [
        Difference(judgement, *(scale * log(edge) for edge in (judgement.ratio, judgement.ci_low, judgement.ci_high)))
        for judgement in judged
    ]
