"""Verdicts on metrics that come out alike at every launch, such as memory: a repeat decides, and no test is needed.

Two launches of one thing differ by less than what is of consequence, so that a difference beyond it that every round
shows is one. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

# what the candidate has, against the baseline
Way = Literal["more", "less", "equal", "undecided"]
MIN_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Repeated:
    """Two arms in one metric: medians, their ratio, and the least and largest ratio of a round.

    `margin`: as a fraction of the baseline, what is of no consequence.
    """

    way: Way
    baseline: float
    candidate: float
    ratio: float
    low: float
    high: float
    margin: float
    rounds: int


def judge(pairs: Sequence[tuple[float, float]], *, least: float) -> Repeated | None:
    """More or less by at least `least` in every round, nowhere so much, or undecided, as one round alone is.

    `pairs`: (baseline, candidate) by round, above zero, in the unit of `least`. None without any.
    """
    if not pairs:
        return None
    baseline, candidate = (median(side) for side in zip(*pairs, strict=True))
    ratios = [new / old for old, new in pairs]
    return Repeated(
        way=_way([new - old for old, new in pairs], least=least) if len(pairs) >= MIN_ROUNDS else "undecided",
        baseline=baseline,
        candidate=candidate,
        ratio=candidate / baseline,
        low=min(ratios),
        high=max(ratios),
        margin=least / baseline,
        rounds=len(pairs),
    )


def _way(differences: Sequence[float], *, least: float) -> Way:
    if min(differences) >= least:
        return "more"
    if max(differences) <= -least:
        return "less"
    return "equal" if max(map(abs, differences)) < least else "undecided"
