"""Rounds made pairs: where a budget has more rounds than the looks were made for, several rounds are one pair."""

from collections.abc import Sequence
from statistics import geometric_mean


def joined(pairs: Sequence[tuple[float, float]], *, per_pair: int) -> list[tuple[float, float]]:
    """Pairs of so many rounds each, by geometric mean, so that the looks keep their error rate on a longer budget.

    Rounds at the end that fill no pair wait for the next one.
    """
    starts = range(0, len(pairs) - per_pair + 1, per_pair)
    chunks = [pairs[start : start + per_pair] for start in starts]
    return [(geometric_mean(old for old, _ in chunk), geometric_mean(new for _, new in chunk)) for chunk in chunks]
