"""Axes that end on ticks: each reaches the furthest whisker, and its outermost ticks lie at or beyond the values."""

from collections.abc import Iterable, Sequence
from itertools import count
from math import ceil, floor, isfinite, log10

from dashboard.figures.theme import Json
from farm.rules.wording import numbers
from farm.rules.wording.numbers import is_factor

# so many steps at most, so that labels of a narrow window stand apart
MAX_STEPS = 6
# beyond the outermost ticks, as a part of the axis: a point on the last tick is drawn whole
ROOM = 0.02
# beyond the last tick where bars have their number behind them
FOR_LABELS = 0.12
# beyond this spread small values would be invisible on a linear axis
LOG_FROM = 6.0
# two ticks of a logarithmic axis around 1 lie at least such a part of it apart
APART = 1 / 7
# round changes away from 1, by how far they lie from it
SLOWER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FASTER = (0.98, 0.95, 0.9, 0.8, 0.67, 0.5, 0.33, 0.2, 0.1, 0.05, 0.02, 0.01)


def ends(intervals: Iterable[tuple[float | None, ...] | None], *values: float | None) -> list[float]:
    """All numbers that an axis has to reach: the ends of the intervals that are known, and the values."""
    reached = [end for interval in intervals if interval is not None for end in interval]
    return [number for number in (*reached, *values) if number is not None and isfinite(number)]


def linear(values: Sequence[float], *, from_zero: bool = True, room: float = ROOM) -> Json:
    """Equal steps, from zero on where bars or sizes are compared; `room`: what is left free beyond, as a part of it."""
    low = 0.0 if from_zero else min(values, default=0.0)
    high = max([*values, *([0.0] if from_zero else [])], default=1.0)
    low, high = (low, high) if high > low else (low - (0.0 if from_zero else 0.5), low + (1.0 if from_zero else 0.5))
    step = _step(high - low)
    first, last = floor(round(low / step, 6)), ceil(round(high / step, 6))
    shown = [float(f"{place * step:.6g}") for place in range(first, last + 1)]
    beyond = room * (shown[-1] - shown[0])
    return {"range": [shown[0] - (0.0 if from_zero else beyond), shown[-1] + beyond], "tickvals": shown}


def spread(values: Sequence[float], reached: Sequence[float]) -> Json:
    """From zero on, or logarithmic where values lie too far apart for that. `reached`: with the ends of whiskers."""
    is_wide = max(values) / min(values) > LOG_FROM and min(reached) > 0
    return logarithmic(reached) if is_wide else linear(reached)


def logarithmic(values: Sequence[float]) -> Json:
    """Round numbers of each power of ten, the fewer the more powers there are. `values` are above zero."""
    digits = _digits(log10(max(values) / min(values)))
    powers = range(floor(log10(min(values))) - 1, ceil(log10(max(values))) + 2)
    steps = [float(f"{digit}e{power}") for power in powers for digit in digits]
    low = max(step for step in steps if step <= min(values) * (1 + 1e-9))
    high = min(step for step in steps if step >= max(values) * (1 - 1e-9))
    shown = [step for step in steps if low <= step <= high]
    text = [numbers.fixed(step, max(0, -floor(log10(step)))) for step in shown]
    return {"type": "log", "range": _with_room(log10(low), log10(high)), "tickvals": shown, "ticktext": text}


def ratio(values: Sequence[float]) -> Json:
    """Changes around 1, which is a tick, as is the end of each side that has values."""
    low, high = min([1.0, *values]), max([1.0, *values])
    down, up = -log10(low), log10(high)
    # a side ends on a round change that is far enough from 1 for a label of its own
    least = max(down, up) * APART * 1.5
    first = _beyond(max(down, least), FASTER) if down > 0 else 1.0
    last = _beyond(max(up, least), SLOWER) if up > 0 else 1.0
    if first == last:
        first, last = FASTER[0], SLOWER[0]
    reach = log10(last / first)
    shown: list[float] = []
    for tick in (1.0, first, last, *FASTER, *SLOWER):
        if first <= tick <= last and all(abs(log10(tick / other)) >= reach * APART for other in shown):
            shown.append(tick)
    shown.sort()
    text = [_change(tick) for tick in shown]
    return {"type": "log", "range": _with_room(log10(first), log10(last)), "tickvals": shown, "ticktext": text}


def _step(width: float) -> float:
    """The smallest round step that covers the width in MAX_STEPS."""
    power = floor(log10(width / MAX_STEPS))
    return next(step for digit in (1, 2, 2.5, 5, 10) if (step := float(f"{digit}e{power}")) >= width / MAX_STEPS)


def _digits(powers: float) -> Sequence[int]:
    return (1, 2, 5) if powers <= 1.5 else (1, 3) if powers <= 3 else (1,)


def _beyond(reach: float, changes: Sequence[float]) -> float:
    """The first round change at least this far from 1, in powers of ten."""
    known = next((change for change in changes if abs(log10(change)) >= reach - 1e-9), None)
    if known is not None:
        return known
    power = next(power for power in count(3) if power >= reach - 1e-9)
    return float(10**power) if changes[0] > 1 else 10.0**-power


def _with_room(low: float, high: float) -> list[float]:
    room = ROOM * (high - low) or ROOM
    return [low - room, high + room]


def _change(tick: float) -> str:
    """A round change, written as the changes of tables are."""
    if not is_factor(tick):
        return numbers.signed_percent(tick - 1, 0)
    return f"×{tick:g}" if tick > 1 else f"÷{1 / tick:.0f}"
