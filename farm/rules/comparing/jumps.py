"""Decides whether a series jumps at a given index, or only slopes, bends or varies there.

A level shift, with or without a common slope, competes with shapes that do not jump: a line, a bent line, a parabola,
and ramps of several widths. Each is fitted by least squares after first-order autocorrelation is removed (Prais and
Winsten, 1954), and the smallest Bayesian information criterion (Schwarz, 1978) wins.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from operator import attrgetter

import numpy as np

from farm.rules.comparing import special
from farm.rules.comparing.statistics import Floats
from farm.rules.comparing.steps import Cut

# At most this many values on either side are fitted: few enough for a drift to be straight, enough for noise to show.
REACH = 50
# A ramp climbs from one level to the next within twice this many values.
RAMPS = (4.0, 8.0, 16.0)
# Segments of at least this length are used to estimate the autocorrelation, which is limited below one.
MIN_FOR_AUTOCORRELATION = 8
MAX_AUTOCORRELATION = 0.9
# The square of a difference that is too small for any clock, on the log scale.
FLOOR = 1e-24


@dataclass(frozen=True, slots=True)
class Jump:
    """How far the level moves, on the scale of the values, and the two-sided p of the t test of that size.

    p is 1 when a shape without a jump explains the values better.
    """

    size: float
    p: float


@dataclass(frozen=True, slots=True)
class _Fit:
    # the Bayesian information criterion
    criterion: float
    # the weight of the second column, and its p
    weight: float
    p: float


def judge_jump(series: Floats, cut: Cut, *, autocorrelation: float) -> Jump:
    """Judge the jump between the values on both sides of a cut, of each side at most the 50 values next to it.

    `autocorrelation` is that of neighbouring values.
    """
    start, stop = max(cut.start, cut.at - REACH), min(cut.stop, cut.at + REACH)
    values = _remove_autocorrelation(series[start:stop], autocorrelation)
    offsets = np.arange(start, stop) - cut.at + 0.5

    level, slope = np.ones(stop - start), offsets / (stop - start)
    step = (offsets > 0.0).astype(np.float64)
    with_jump = [(level, step), (level, step, slope)]
    without_jump: list[tuple[Floats, ...]] = [
        (level, slope),
        (level, np.minimum(slope, 0.0), np.maximum(slope, 0.0)),
        (level, slope, slope**2),
    ]
    longest_side = max(-offsets[0], offsets[-1])
    without_jump += [(level, np.clip(offsets / width, -1.0, 1.0)) for width in RAMPS if width < longest_side]

    criterion = attrgetter("criterion")
    best = min((_fit(values, shape, autocorrelation) for shape in with_jump), key=criterion)
    rival = min((_fit(values, shape, autocorrelation) for shape in without_jump), key=criterion)
    return Jump(best.weight, best.p if best.criterion < rival.criterion else 1.0)


def estimate_autocorrelation(series: Floats, cuts: list[int]) -> float:
    """Estimate the autocorrelation of neighbouring values about a straight line in each segment between the cuts.

    It is corrected for the bias of short segments, limited to 0 … 0.9, and 0 when no segment is long enough.
    """
    products = squares = 0.0
    segments = points = 0
    for start, stop in pairwise([0, *cuts, len(series)]):
        if stop - start < MIN_FOR_AUTOCORRELATION:
            continue
        offsets = np.arange(stop - start) - (stop - start - 1) / 2.0
        residuals = series[start:stop] - series[start:stop].mean()
        residuals = residuals - offsets * (offsets @ residuals) / (offsets @ offsets)
        products += float(residuals[1:] @ residuals[:-1])
        squares += float(residuals @ residuals)
        segments += 1
        points += stop - start
    if squares <= FLOOR * points:
        return 0.0
    # With a line removed from n values the estimate is too low by about (2 + 4 autocorrelation) / n.
    share = segments / points
    return min(MAX_AUTOCORRELATION, max(0.0, (products / squares + 2.0 * share) / (1.0 - 4.0 * share)))


def _remove_autocorrelation(values: Floats, autocorrelation: float) -> Floats:
    innovations = values.copy()
    innovations[1:] -= autocorrelation * values[:-1]
    innovations[0] *= sqrt(1.0 - autocorrelation**2)
    return innovations


def _fit(values: Floats, shape: tuple[Floats, ...], autocorrelation: float) -> _Fit:
    """Fit the columns of a shape by least squares."""
    columns = np.stack([_remove_autocorrelation(column, autocorrelation) for column in shape], axis=1)
    count, parameters = columns.shape
    orthogonal, triangle = np.linalg.qr(columns)
    inverse = np.linalg.inv(triangle)
    weights = inverse @ (orthogonal.T @ values)
    residuals = values - columns @ weights
    squares = float(residuals @ residuals) + count * FLOOR
    error = sqrt(squares / (count - parameters) * float(inverse[1] @ inverse[1]))
    t = abs(float(weights[1])) / error
    criterion = count * log(squares / count) + parameters * log(count)
    return _Fit(criterion, float(weights[1]), 2.0 * float(special.stdtr(count - parameters, -t)))
