"""Pools rounds: if a budget has more rounds than the planned looks need, several rounds count as one pair."""

from collections.abc import Callable, Iterable, Sequence
from statistics import geometric_mean
from typing import TypeVar

Pair = tuple[float, float]
Judgement = TypeVar("Judgement")
MIN_PAIRS = 2


def pool_rounds(
    pairs: Sequence[Pair], *, per_pair: int, mean: Callable[[Iterable[float]], float] = geometric_mean
) -> list[Pair]:
    """Replace every `per_pair` rounds by one pair of their means, geometric ones by default.

    Rounds at the end that do not fill a pair are left out.
    """
    chunks = [pairs[start : start + per_pair] for start in range(0, len(pairs) - per_pair + 1, per_pair)]
    return [(mean(old for old, _ in chunk), mean(new for _, new in chunk)) for chunk in chunks]


def judge_enough(
    blocks: Sequence[Sequence[Pair]], judge_many: Callable[[Sequence[Sequence[Pair]]], Iterable[Judgement]]
) -> list[Judgement | None]:
    """Judge the blocks that have at least MIN_PAIRS pairs, all at once; the result of each other block is None."""
    judged = iter(judge_many([pairs for pairs in blocks if len(pairs) >= MIN_PAIRS]))
    return [next(judged) if len(pairs) >= MIN_PAIRS else None for pairs in blocks]
