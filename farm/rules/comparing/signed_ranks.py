"""Computes the interval of a median by signed ranks, without numpy, because clients that read documents use it."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate

INTERVAL_LEVEL = 0.95
# With five values the widest interval has a level of only 93.75 %.
MIN_FOR_INTERVAL = 6
AT_LEAST = f"an interval takes at least {MIN_FOR_INTERVAL}"


def median_interval(values: Sequence[float], *, level: float = INTERVAL_LEVEL) -> tuple[float, float] | None:
    """Compute the interval of the median by inverting the signed-rank test; None for fewer than six values."""
    if len(values) < MIN_FOR_INTERVAL:
        return None
    averages = sorted((first + second) / 2 for place, first in enumerate(values) for second in values[place:])
    rank, _ = interval_rank(len(values), level)
    return averages[rank - 1], averages[-rank]


def explain_too_few_launches(launches: int) -> str:
    decide = "1 launch decides" if launches == 1 else f"{launches} launches decide"
    return f"{decide} nothing: {AT_LEAST}."


@cache
def interval_rank(rounds: int, level: float) -> tuple[int, float]:
    """Find which of the sorted Walsh averages bound an interval: (k, level), the k-th from either end, counted from 1.

    The level is the one asked for, or that of the widest interval where so few rounds cannot give it.
    """
    # ways[s]: in how many of the 2ⁿ choices of signs the ranks of the positive values sum to s
    ways = [1]
    for rank in range(1, rounds + 1):
        ways = [sum(pair) for pair in zip([*ways, *[0] * rank], [*[0] * rank, *ways], strict=True)]
    tails = [2 * ways_until / 2**rounds for ways_until in accumulate(ways)]
    k = sum(tail <= 1.0 - level for tail in tails)
    return (k, level) if k >= 1 else (1, max(0.0, 1.0 - tails[0]))
