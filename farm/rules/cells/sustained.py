"""Sustained mode: how long its points are, and when a curve throttles. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.rules.wording.numbers import change, percent

POINT_S = 60.0
# curves too short for points of a minute have so many
MIN_POINTS = 6
# slower than the first point by more than this, and to the end, is throttled …
THROTTLED = 0.05
# … in so many points at least: one slow minute at the end is no level
LASTING_POINTS = 2


@dataclass(frozen=True, slots=True)
class Throttling:
    """`after_s`: seconds from the begin until latency left the first point's level for good; None: it did not.

    `change`: of the last points' median against the first point, as a fraction.
    """

    after_s: float | None
    change: float
    lowest: float
    highest: float


def point_seconds(total_s: float) -> float:
    return min(POINT_S, total_s / MIN_POINTS)


def find_throttling(starts_s: Sequence[float], p50s: Sequence[float]) -> Throttling | None:
    """Whether and when latency rose for good; None for fewer than three points, which show no level."""
    if len(p50s) <= LASTING_POINTS:
        return None
    changes = [p50 / p50s[0] - 1.0 for p50 in p50s]
    # the points at the end that are all above the first one's level
    slow_from = len(changes)
    while slow_from > 0 and changes[slow_from - 1] > THROTTLED:
        slow_from -= 1
    is_lasting = len(changes) - slow_from >= LASTING_POINTS
    last = changes[slow_from:] if is_lasting else changes[1:]
    return Throttling(
        after_s=starts_s[slow_from] if is_lasting else None,
        change=sorted(last)[len(last) // 2],
        lowest=min(changes),
        highest=max(changes),
    )


def sentence(found: Throttling | None, *, total_s: float) -> str:
    """What a curve says, in one sentence."""
    span = _duration(total_s)
    if found is None:
        return f"Too few points in {span} to tell a level: sustain it for longer."
    if found.after_s is not None:
        rise = percent(round(found.change, 2))
        return f"Throttles after {_duration(found.after_s)}: p50 stays {rise} above its first point."
    if max(abs(found.lowest), abs(found.highest)) <= THROTTLED:
        return f"Steady for {span}: p50 stays within {percent(THROTTLED)} of its first point."
    low, high = change(1.0 + found.lowest), change(1.0 + found.highest)
    return f"No lasting slowdown in {span}: p50 was {low} to {high} than at its first point."


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"
