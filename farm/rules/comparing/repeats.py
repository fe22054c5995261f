"""Verdicts on metrics that every launch repeats almost exactly, such as memory, where no statistical test is needed.

Two launches of the same cell differ by less than what matters, so a larger difference in every round is real.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

# whether the candidate has more or less than the baseline
Direction = Literal["more", "less", "equal", "undecided"]
MIN_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Repeated:
    """Two arms in one metric: their medians, the ratio of these, and the smallest and largest ratio of a round.

    `margin` is the change that does not matter, as a fraction of the baseline's median.
    """

    direction: Direction
    baseline: float
    candidate: float
    ratio: float
    low: float
    high: float
    margin: float
    rounds: int


def judge(pairs: Sequence[tuple[float, float]], *, margin: float) -> Repeated | None:
    """Judge (baseline, candidate) pairs, one of each round, above zero and in the unit of `margin`; None without any.

    The direction is `more` or `less` if every round differs by the margin or more in that direction, and `equal` if no
    round differs by so much. Anything else, and a single round, is undecided.
    """
    if not pairs:
        return None
    baseline, candidate = (median(side) for side in zip(*pairs, strict=True))
    ratios = [new / old for old, new in pairs]
    return Repeated(
        direction=_find_direction([new - old for old, new in pairs], margin),
        baseline=baseline,
        candidate=candidate,
        ratio=candidate / baseline,
        low=min(ratios),
        high=max(ratios),
        margin=margin / baseline,
        rounds=len(pairs),
    )


def _find_direction(differences: Sequence[float], margin: float) -> Direction:
    if len(differences) < MIN_ROUNDS:
        return "undecided"
    if min(differences) >= margin:
        return "more"
    if max(differences) <= -margin:
        return "less"
    return "equal" if max(map(abs, differences)) < margin else "undecided"
