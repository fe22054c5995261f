"""Pools of rounds: where a budget has more rounds than the planned looks need, several rounds count as one pair."""

from collections.abc import Sequence
from statistics import geometric_mean


def pool_rounds(pairs: Sequence[tuple[float, float]], *, per_pair: int) -> list[tuple[float, float]]:
    """Replace each `per_pair` rounds by one pair of their geometric means.

    Rounds at the end that fill no pair are left out.
    """
    starts = range(0, len(pairs) - per_pair + 1, per_pair)
    chunks = [pairs[start : start + per_pair] for start in starts]
    return [(geometric_mean(old for old, _ in chunk), geometric_mean(new for _, new in chunk)) for chunk in chunks]
