"""Whether a series jumps at a given index, or only slopes, bends or varies there.

Around the place a level shift, with or without a common slope, competes with shapes that do not jump: a line, a bent
line, a parabola, and ramps of several widths. Each is fitted by least squares after first-order autocorrelation is
taken out (Prais and Winsten, 1954), and the smallest Bayesian information criterion (Schwarz, 1978) wins.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from operator import attrgetter

import numpy as np

from farm.rules.comparing import special
from farm.rules.comparing.statistics import Floats

# So many values on either side are fitted: few enough for a drift to be straight, enough for noise to show.
REACH = 50
# A ramp climbs from one level to the next within twice so many values.
RAMPS = (4.0, 8.0, 16.0)
# Segments of at least this length are used to estimate the autocorrelation, which is limited below one.
MIN_FOR_MEMORY = 8
MAX_MEMORY = 0.9
# The square of a difference that no clock shows, on the log scale.
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
    criterion: float
    second: float
    p: float


def judge_jump(series: Floats, *, start: int, place: int, stop: int, memory: float) -> Jump:
    """Judge the jump from series[start:place] to series[place:stop]. `memory`: the first-order autocorrelation."""
    start, stop = max(start, place - REACH), min(stop, place + REACH)
    values = _remove_memory(series[start:stop], memory)
    along = np.arange(start, stop) - place + 0.5
    level, slope = np.ones(stop - start), along / (stop - start)
    step = (along > 0.0).astype(np.float64)
    smooth: list[tuple[Floats, ...]] = [
        (level, slope),
        (level, np.minimum(slope, 0.0), np.maximum(slope, 0.0)),
        (level, slope, slope**2),
    ]
    room = max(-along[0], along[-1])
    smooth += [(level, np.clip(along / width, -1.0, 1.0)) for width in RAMPS if width < room]
    criterion = attrgetter("criterion")
    best = min((_fit(values, shape, memory) for shape in ((level, step), (level, step, slope))), key=criterion)
    rival = min((_fit(values, shape, memory) for shape in smooth), key=criterion)
    return Jump(best.second, best.p if best.criterion < rival.criterion else 1.0)


def estimate_memory(series: Floats, cuts: list[int]) -> float:
    """Estimate the autocorrelation of neighbouring values about a straight line in each segment between the cuts.

    It is corrected for the bias of short segments, limited to 0 … 0.9, and 0 when no segment is long enough.
    """
    products = squares = 0.0
    segments = points = 0
    for start, stop in pairwise([0, *cuts, len(series)]):
        if stop - start < MIN_FOR_MEMORY:
            continue
        along = np.arange(stop - start) - (stop - start - 1) / 2.0
        residuals = series[start:stop] - series[start:stop].mean()
        residuals = residuals - along * (along @ residuals) / (along @ along)
        products += float(residuals[1:] @ residuals[:-1])
        squares += float(residuals @ residuals)
        segments += 1
        points += stop - start
    if squares <= FLOOR * points:
        return 0.0
    # With a line taken out of n values the estimate falls short by about (2 + 4 memory) / n.
    share = segments / points
    return min(MAX_MEMORY, max(0.0, (products / squares + 2.0 * share) / (1.0 - 4.0 * share)))


def _remove_memory(values: Floats, memory: float) -> Floats:
    fresh = values.copy()
    fresh[1:] -= memory * values[:-1]
    fresh[0] *= sqrt(1.0 - memory**2)
    return fresh


def _fit(values: Floats, shape: tuple[Floats, ...], memory: float) -> _Fit:
    """Fit the columns of a shape by least squares; `second` and its p are those of the second column."""
    columns = np.stack([_remove_memory(column, memory) for column in shape], axis=1)
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
