"""Judges the curves of `sustained`, p50 over time: how long each point is, and when a curve shows throttling.

A point is a minute long, or shorter where the curve would have fewer than six.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from farm.rules.wording.numbers import change, percent

POINT_S = 60.0
# A curve has at least this many points. In short curves they are therefore shorter than POINT_S.
MIN_POINTS = 6
# a curve throttles where, from some moment to its end, every point is slower than the first by more than this fraction
THROTTLED = 0.05
# at least this many points must stay slow, since a single slow point at the end may be chance
LASTING_POINTS = 2


@dataclass(frozen=True, slots=True)
class Throttling:
    """How latency changed along a curve. Changes are fractions of the first point's p50: 0.1 is 10 % slower."""

    # seconds until latency rose for good; None where it did not
    after_s: float | None
    # the median change of the points from there on, or of all points after the first
    change: float
    # the smallest and the largest change of the whole curve
    lowest: float
    highest: float


def point_seconds(total_s: float) -> float:
    return min(POINT_S, total_s / MIN_POINTS)


def find_throttling(starts_s: Sequence[float], p50s: Sequence[float]) -> Throttling | None:
    """Find whether and when latency rose for good; None for fewer than three points, which show no level.

    It did where every point from there to the end, at least two of them, is more than 5 % above the first one.
    `starts_s` has the second at which each point begins, and `p50s` its p50 in any unit.
    """
    if len(p50s) <= LASTING_POINTS:
        return None
    changes = [p50 / p50s[0] - 1.0 for p50 in p50s]
    # from here on every point is above the first one's level
    slow_from = len(changes)
    while slow_from > 0 and changes[slow_from - 1] > THROTTLED:
        slow_from -= 1
    is_lasting = len(changes) - slow_from >= LASTING_POINTS
    settled_changes = changes[slow_from:] if is_lasting else changes[1:]
    return Throttling(
        after_s=starts_s[slow_from] if is_lasting else None,
        change=median(settled_changes),
        lowest=min(changes),
        highest=max(changes),
    )


def describe_curve(throttling: Throttling | None, *, total_s: float) -> str:
    """Say in one sentence whether a curve of `total_s` seconds throttles; `throttling` is None for too few points."""
    span = _format_duration(total_s)
    if throttling is None:
        return f"Too few points in {span} to tell a level: sustain it for longer."
    if throttling.after_s is not None:
        rise = percent(round(throttling.change, 2))
        return f"Throttles after {_format_duration(throttling.after_s)}: p50 stays {rise} above its first point."
    if max(abs(throttling.lowest), abs(throttling.highest)) <= THROTTLED:
        return f"Steady for {span}: p50 stays within {percent(THROTTLED)} of its first point."
    low, high = change(1.0 + throttling.lowest), change(1.0 + throttling.highest)
    return f"No lasting slowdown in {span}: p50 was {low} to {high} than at its first point."


def _format_duration(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"
