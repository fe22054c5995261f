"""Verdicts on metrics that may be zero or below, such as growth: the pairs' differences by the rule of their ratios.

A ratio of such figures means nothing, so the rule is asked about exp(difference / scale), whose logarithms are the
differences: the same tests, looks and intervals, with the margin in the metric's own unit. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p

from farm.rules.comparing import verdicts
from farm.rules.comparing.comparisons import MARGIN, Comparison

# beyond so many margins a difference is as good as any: the rule takes samples up to 1e100
MAX_MARGINS = 10_000.0


@dataclass(frozen=True, slots=True)
class Difference:
    """What the rule says, and the difference new − old with its interval, in the metric's own unit."""

    said: Comparison
    change: float
    low: float
    high: float


def judge_many(blocks: Sequence[Sequence[tuple[float, float]]], *, margin: float) -> list[Difference]:
    """The verdict on each block's (old, new) in time order; `margin` above zero, in their unit.

    Raises ValueError when a block has fewer than two pairs.
    """
    scale = margin / log1p(MARGIN)
    most = MAX_MARGINS * margin
    pairs = [[(1.0, exp(max(-most, min(most, new - old)) / scale)) for old, new in some] for some in blocks]
    judged = verdicts.judge_many(pairs, margin=MARGIN)
    return [
        Difference(judgement, *(scale * log(edge) for edge in (judgement.ratio, judgement.ci_low, judgement.ci_high)))
        for judgement in judged
    ]
