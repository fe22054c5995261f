"""Computes accuracy on labelled data with intervals, and tests whether a variant changed it on the same samples.

Sources. Interval of a share: Wilson (JASA 22, 1927). Paired difference of shares: Newcombe's method 10 (Statistics in
Medicine 17, 1998). Test: McNemar's, exact. Difference of mean errors: paired t. scipy.stats would compute the same, but
take 50 MB of every web process, so that only scipy.special is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import le
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from farm.contract.evaluation import ACCURACY_LEVEL
from farm.rules.comparing import special

LEVEL = ACCURACY_LEVEL
Correct = Sequence[bool] | NDArray[np.bool_]
Errors = Sequence[float] | NDArray[np.float64]
Change = Literal["lower", "higher", "no difference shown"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share of samples, 0–1, or a mean error, with its interval at LEVEL."""

    value: float
    ci_low: float
    ci_high: float
    # how many samples it is estimated from
    n: int


@dataclass(frozen=True, slots=True)
class Difference:
    """New minus old, in the unit of the metric, with its interval at LEVEL and the p of the paired test.

    `only_old` and `only_new` count the samples that only one of the two got right; both are None for mean errors.
    """

    value: float
    ci_low: float
    ci_high: float
    p: float
    n: int
    only_old: int | None = None
    only_new: int | None = None

    @property
    def change(self) -> Change:
        """Which way the value changed significantly; whether lower is worse depends on the metric."""
        if self.p >= 1 - LEVEL:
            return "no difference shown"
        return "lower" if self.value < 0 else "higher"


def estimate_share(correct: Correct) -> Estimate:
    """Estimate the share of samples that are right, with its Wilson interval. Raises ValueError without samples."""
    right = np.asarray(correct, dtype=bool)
    if right.size == 0:
        raise ValueError("There are no samples to judge: give labelled data.")
    low, high = _compute_wilson(int(right.sum()), right.size)
    return Estimate(value=float(right.mean()), ci_low=low, ci_high=high, n=right.size)


def estimate_mean_error(errors: Errors) -> Estimate:
    """Estimate the mean error of the samples with its t interval; that of a single sample has no width.

    Raises ValueError without samples.
    """
    values = np.asarray(errors, dtype=np.float64)
    if values.size == 0:
        raise ValueError("There are no samples to judge: give labelled data.")
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    half = float(special.stdtrit(values.size - 1, (1 + LEVEL) / 2)) * spread / np.sqrt(values.size) if spread else 0.0
    return Estimate(value=mean, ci_low=mean - float(half), ci_high=mean + float(half), n=values.size)


def compare_shares(old: Correct, new: Correct) -> Difference:
    """Test the difference, new minus old, of two shares on the same samples in the same order.

    Raises ValueError without samples, or where their numbers differ.
    """
    before, after = np.asarray(old, dtype=bool), np.asarray(new, dtype=bool)
    _check_paired(before.shape, after.shape)
    both, neither = int((before & after).sum()), int((~before & ~after).sum())
    only_old, only_new = int((before & ~after).sum()), int((~before & after).sum())
    low, high = _compute_newcombe(both=both, only_old=only_old, only_new=only_new, neither=neither)
    changed = only_old + only_new
    p = min(1.0, 2.0 * float(special.bdtr(min(only_old, only_new), changed, 0.5))) if changed else 1.0
    value = (only_new - only_old) / before.size
    return Difference(value=value, ci_low=low, ci_high=high, p=p, n=before.size, only_old=only_old, only_new=only_new)


def compare_errors(old: Errors, new: Errors) -> Difference:
    """Test the difference, new minus old, of two mean errors on the same samples in the same order.

    Raises ValueError where the numbers of samples differ, or where there are fewer than two.
    """
    before, after = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    _check_paired(before.shape, after.shape)
    if before.size < 2:
        raise ValueError("One sample shows no spread: give at least two.")
    gaps = after - before
    mean, spread = float(gaps.mean()), float(gaps.std(ddof=1))
    if spread == 0:
        return Difference(value=mean, ci_low=mean, ci_high=mean, p=1.0 if mean == 0 else 0.0, n=before.size)
    half = float(special.stdtrit(before.size - 1, (1 + LEVEL) / 2)) * spread / np.sqrt(before.size)
    p = 2.0 * float(special.stdtr(before.size - 1, -abs(mean) * np.sqrt(before.size) / spread))
    return Difference(value=mean, ci_low=mean - half, ci_high=mean + half, p=p, n=before.size)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the (cost, accuracy) points that no other equals or beats in accuracy at no higher cost.

    They are sorted from the cheapest on. Of equal points only the first stays.
    """
    front: list[int] = []
    best_accuracy = -np.inf
    for index in sorted(range(len(points)), key=lambda index: (points[index][0], -points[index][1])):
        accuracy = points[index][1]
        if accuracy > best_accuracy:
            front.append(index)
            best_accuracy = accuracy
    return front


def find_undominated(points: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the indices of the points that no other point dominates, in order; of equal points all stay.

    Every coordinate is a cost: negate the values that should be high. A point dominates another where none of
    its costs is higher and at least one is lower.
    """
    return [
        index
        for index, point in enumerate(points)
        if not any(other != point and all(map(le, other, point)) for other in points)
    ]


def _check_paired(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    if old != new or len(old) != 1 or old[0] == 0:
        raise ValueError(f"Samples of the shapes {old} and {new} cannot be paired: judge both on the same data.")


def _compute_wilson(right: int, n: int) -> tuple[float, float]:
    z = float(special.ndtri((1 + LEVEL) / 2))
    centre = (right + z**2 / 2) / (n + z**2)
    half = z * np.sqrt(right * (n - right) / n + z**2 / 4) / (n + z**2)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _compute_newcombe(*, both: int, only_old: int, only_new: int, neither: int) -> tuple[float, float]:
    n = both + only_old + only_new + neither
    old, new = (both + only_old) / n, (both + only_new) / n
    (old_low, old_high), (new_low, new_high) = _compute_wilson(both + only_old, n), _compute_wilson(both + only_new, n)
    margins = (both + only_old) * (only_new + neither) * (both + only_new) * (only_old + neither)
    # the continuity correction of method 10
    product = both * neither - only_old * only_new
    shifted = max(product - n / 2, 0) if product > 0 else product
    phi = shifted / np.sqrt(margins) if margins else 0.0
    down = (new - new_low) ** 2 - 2 * phi * (new - new_low) * (old_high - old) + (old_high - old) ** 2
    up = (new_high - new) ** 2 - 2 * phi * (new_high - new) * (old - old_low) + (old - old_low) ** 2
    value = new - old
    return float(value - np.sqrt(max(down, 0))), float(value + np.sqrt(max(up, 0)))
