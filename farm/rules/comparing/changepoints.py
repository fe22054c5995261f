"""Finds where a series changes its level for good, and ignores spikes, drifts and autocorrelated noise.

1. Take the logarithms of the values, unless one is zero or below.
2. Replace spikes, excursions of one or two values from the running median, by that median.
3. Propose cuts by optimal partitioning (Jackson and others, 2005; pruned as in PELT, Killick and others, 2012), more
   than there are level shifts.
4. Drop the least likely cut and judge its neighbours again by `farm.rules.comparing.jumps`, until every cut is a jump
   with p ≤ 1e-5 and at least the smallest magnitude. Where constant stretches wander, a jump must also be larger than
   the other steps explain (`farm.rules.comparing.steps`).

Nothing is random: the same values give the same result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, inf, log

import numpy as np

from farm.rules.comparing import jumps, steps
from farm.rules.comparing.jumps import Jump
from farm.rules.comparing.statistics import Floats
from farm.rules.comparing.steps import FLOOR, Cut

P_LEVEL = 1e-5
MIN_MAGNITUDE = 0.02
MIN_SEGMENT = 3

# A spike stands this many robust standard deviations off the median of itself and two neighbours on either side.
SPIKE_SIGMAS = 4.5
SPIKE_REACH = 2
# A cut must save at least this many variances × ln n. The penalty is small, because each jump is tested afterwards.
PENALTY = 3.0
# The median size of normal noise times this is a robust estimate of its standard deviation.
SIGMA_OF_SIZES = 1.4826


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level shift: the 0-based index of the new level's first value, new / old − 1, and the p of the jump.

    `magnitude` is None when the old level is 0.
    """

    index: int
    magnitude: float | None
    p: float


@dataclass(frozen=True, slots=True)
class _Series:
    """The series that is searched: `values` are logarithms if `is_log`, else scaled to at most 1."""

    values: Floats
    is_log: bool
    wandering: steps.Wandering

    def magnitude(self, jump: Jump, cut: Cut) -> float | None:
        """Compute new / old − 1; None where the old level, on a linear scale the mean of its values, is 0."""
        if self.is_log:
            return expm1(jump.size)
        old = float(self.values[cut.start : cut.at].mean())
        return None if abs(old) <= FLOOR else jump.size / old

    def judge_cut(self, cut: Cut, *, autocorrelation: float) -> ChangePoint:
        jump = jumps.judge_jump(self.values, cut, autocorrelation=autocorrelation)
        p = max(jump.p, self.wandering.p_of_jump(jump.size, cut))
        return ChangePoint(cut.at, self.magnitude(jump, cut), p)


def find_changepoints(values: Sequence[float], *, min_magnitude: float = MIN_MAGNITUDE) -> list[ChangePoint]:
    """Find the level shifts of a series, in order, between levels of three values or more each.

    `min_magnitude` is the smallest shift to report, as a fraction; a shift from a level of 0 is reported whatever its
    size. Raises ValueError when a value is not finite.
    """
    raw = np.asarray(values, dtype=np.float64)
    if not np.isfinite(raw).all():
        raise ValueError("A value of the series is not a finite number.")
    if len(raw) < 2 * MIN_SEGMENT:
        return []
    is_log = bool((raw > 0.0).all())
    scaled = np.log(raw) if is_log else raw / max(FLOOR, float(np.abs(raw).max()))
    cleaned = _remove_spikes(scaled)
    series = _Series(cleaned, is_log, steps.Wandering(cleaned))
    cuts = _find_best_cuts(series.values)
    while True:
        # Autocorrelation is estimated between the remaining cuts, and decides which remain; dropped cuts never return.
        points = _select_surviving(series, cuts, min_magnitude=min_magnitude)
        if len(points) == len(cuts):
            return points
        cuts = [point.index for point in points]


def _remove_spikes(values: Floats) -> Floats:
    edge = np.full(SPIKE_REACH, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([edge, values, edge]), 2 * SPIKE_REACH + 1)
    medians = np.nanmedian(windows, axis=1)
    sizes = np.abs(values - medians)
    noise = sizes[sizes > FLOOR]
    if not len(noise):
        return values
    return np.where(sizes > SPIKE_SIGMAS * SIGMA_OF_SIZES * np.median(noise), medians, values)


def _find_best_cuts(values: Floats) -> list[int]:
    """Find the cuts into constant levels with the lowest cost: squared differences, and a penalty for each cut."""
    count = len(values)
    sigma = steps.estimate_noise(values)
    if sigma <= FLOOR:
        return []
    penalty = PENALTY * log(count) * sigma**2
    centred = values - values.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    cost = np.full(count + 1, inf)
    cost[0] = -penalty
    last = np.zeros(count + 1, dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    for stop in range(MIN_SEGMENT, count + 1):
        spread = squares[stop] - squares[starts] - (sums[stop] - sums[starts]) ** 2 / (stop - starts)
        totals = cost[starts] + spread
        best = int(np.argmin(totals))
        cost[stop], last[stop] = totals[best] + penalty, starts[best]
        starts = starts[totals <= cost[stop]]
        if stop + 1 >= 2 * MIN_SEGMENT:
            starts = np.append(starts, stop + 1 - MIN_SEGMENT)
    return _trace_cuts(count, last.tolist())


def _trace_cuts(count: int, last: list[int]) -> list[int]:
    cuts: list[int] = []
    start = last[count]
    while start > 0:
        cuts.append(start)
        start = last[start]
    return cuts[::-1]


def _select_surviving(series: _Series, cuts: list[int], *, min_magnitude: float) -> list[ChangePoint]:
    """Drop the weakest cut until all others hold: first the smallest of those too small, then the least significant."""
    autocorrelation = jumps.estimate_autocorrelation(series.values, cuts)
    judged: dict[Cut, ChangePoint] = {}
    remaining = list(cuts)
    while True:
        bounds = [0, *remaining, len(series.values)]
        spans = [Cut(*span) for span in zip(bounds, bounds[1:], bounds[2:], strict=False)]
        for cut in spans:
            if cut not in judged:
                judged[cut] = series.judge_cut(cut, autocorrelation=autocorrelation)
        points = [judged[cut] for cut in spans]

        weak = [point for point in points if point.p > P_LEVEL or _size(point) < min_magnitude]
        if not weak:
            return points
        small = [point for point in weak if _size(point) < min_magnitude]
        weakest = min(small, key=_size) if small else max(weak, key=lambda point: point.p)
        remaining.remove(weakest.index)


def _size(point: ChangePoint) -> float:
    return inf if point.magnitude is None else abs(point.magnitude)
