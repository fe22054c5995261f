"""The scales of axes, as arguments for `theme.make_axis`: the range, and ticks at round numbers.

A linear axis ends with a tick at or beyond the outermost value, so that no whisker leaves the chart.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import count
from math import ceil, floor, inf, isfinite, log10

from dashboard.figures.theme import Json
from farm.rules.wording import numbers
from farm.rules.wording.numbers import is_written_as_factor

# more labels would overlap in a narrow window
MAX_STEPS = 6
# free space beyond the outermost ticks, as a share of the axis, so that a point on the last tick is drawn whole
ROOM = 0.02
# the free space where a number is written after each bar
FOR_LABELS = 0.12
# an axis is logarithmic where the largest value is so many times the smallest
LOG_FROM = 6.0
# an axis of points does not begin at zero where the largest value is at most so many times the smallest
CLOSE = 2.0
# an axis is cut where the largest value is so many times the 99th percentile
OUTLYING = 3
# the smallest distance between two ticks of an axis around 1, as a share of the axis
APART = 1 / 7
# round changes away from 1, by how far they lie from it
SLOWER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FASTER = (0.98, 0.95, 0.9, 0.8, 0.67, 0.5, 0.33, 0.2, 0.1, 0.05, 0.02, 0.01)
# the first digits of a logarithmic axis's ticks, by how many decades the axis has at most
DIGITS_OF_TICKS: tuple[tuple[float, tuple[int, ...]], ...] = ((1.5, (1, 2, 5)), (3.0, (1, 3)), (inf, (1,)))
# hours between the ticks of a time axis: from a minute to ten years
HOURS_BETWEEN_TICKS = (1 / 60, 1 / 6, 1, 3, 6, 12, 24, 48, 168, 672, 2184, 8760, 17520, 87600)


def list_reached(intervals: Iterable[tuple[float | None, ...] | None], *values: float | None) -> list[float]:
    """List the numbers that an axis must include: the ends of the intervals, then the values. None and numbers that are
    not finite are left out."""
    ends = [end for interval in intervals if interval is not None for end in interval]
    return [number for number in (*ends, *values) if number is not None and isfinite(number)]


def choose_scale(values: Sequence[float], reached: Sequence[float]) -> Json:
    """Make a scale for points: linear from zero, or logarithmic where the largest value is more than LOG_FROM times the
    smallest and nothing reaches zero. Where all is within a factor of CLOSE, it does not begin at zero, so that
    differences and whiskers can be seen. `values`: at least one, all above 0; `reached`: the values and the ends of
    their whiskers."""
    lowest, highest = min(reached), max(reached)
    if max(values) / min(values) > LOG_FROM and lowest > 0:
        return make_logarithmic(reached)
    return make_linear(reached, from_zero=not lowest < highest < CLOSE * lowest)


def make_linear(values: Sequence[float], *, from_zero: bool = True, room: float = ROOM, is_share: bool = False) -> Json:
    """Make a linear scale, which starts at zero unless `from_zero` is False. Without values it has a length of 1.
    `room`: the free part beyond the last tick, as a share of the axis; `is_share`: the values are fractions, so ticks
    are written in percent."""
    low = 0.0 if from_zero else min(values, default=0.0)
    high = max([*values, low])
    if high <= low:
        # all values are equal, or there is none
        low, high = (low, low + 1.0) if from_zero else (low - 0.5, low + 0.5)
    step = _find_step(high - low)
    ticks = _list_multiples(step, floor(round(low / step, 6)), ceil(round(high / step, 6)))
    labels = [f"{label} %" for label in format_ticks([100 * tick for tick in ticks])] if is_share else None
    beyond = room * (ticks[-1] - ticks[0])
    ends = [ticks[0] if from_zero else ticks[0] - beyond, ticks[-1] + beyond]
    return {"range": ends, "tickvals": ticks, "ticktext": labels or format_ticks(ticks)}


def make_logarithmic(values: Sequence[float]) -> Json:
    """Make a logarithmic scale with ticks at round numbers, the first and last of which enclose the values. `values`:
    at least one, all above 0."""
    lowest, highest = min(values), max(values)
    decades = log10(highest / lowest)
    digits = next(digits for most, digits in DIGITS_OF_TICKS if decades <= most)
    powers = range(floor(log10(lowest)) - 1, ceil(log10(highest)) + 2)
    round_numbers = [float(f"{digit}e{power}") for power in powers for digit in digits]
    low = max(number for number in round_numbers if number <= lowest * (1 + 1e-9))
    high = min(number for number in round_numbers if number >= highest * (1 - 1e-9))
    ticks = [number for number in round_numbers if low <= number <= high]
    labels = [numbers.fixed(tick, max(0, -floor(log10(tick)))) for tick in ticks]
    return {"type": "log", "range": _add_room(log10(low), log10(high)), "tickvals": ticks, "ticktext": labels}


def make_ratio(ratios: Sequence[float]) -> Json:
    """Make a logarithmic scale for ratios around 1. It has ticks at 1 and at both ends. Ratios must be above 0; without
    any, or where all are 1, the scale is from 0.98 to 1.02."""
    down, up = -log10(min([1.0, *ratios])), log10(max([1.0, *ratios]))
    # each end is a round change that is far enough from 1 for the labels not to overlap
    nearest = max(down, up) * APART * 1.5
    first = _find_change_beyond(max(down, nearest), FASTER) if down > 0 else 1.0
    last = _find_change_beyond(max(up, nearest), SLOWER) if up > 0 else 1.0
    if first == last:
        first, last = FASTER[0], SLOWER[0]
    width = log10(last / first)
    ticks: list[float] = []
    for tick in (1.0, first, last, *FASTER, *SLOWER):
        if first <= tick <= last and all(abs(log10(tick / other)) >= width * APART for other in ticks):
            ticks.append(tick)
    ticks.sort()
    labels = [_format_change(tick) for tick in ticks]
    return {"type": "log", "range": _add_room(log10(first), log10(last)), "tickvals": ticks, "ticktext": labels}


def make_time(moments: Sequence[datetime]) -> Json:
    """Make a time scale with ticks at round moments in the time zone of `moments`, of which there must be at least one.
    Raises StopIteration where they span more than 60 years."""
    first, last = min(moments), max(moments)
    steps = (timedelta(hours=hours) for hours in HOURS_BETWEEN_TICKS)
    step = next(step for step in steps if last - first <= MAX_STEPS * step)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    places = range(ceil((first - midnight) / step), floor((last - midnight) / step) + 1)
    ticks = [midnight + place * step for place in places]
    room = ROOM * (last - first) or timedelta(hours=12)
    form = "%m-%d %H:%M" if step < timedelta(days=1) else "%Y-%m-%d"
    return {
        "type": "date",
        "range": [_format_moment(first - room), _format_moment(last + room)],
        "tickvals": [_format_moment(tick) for tick in ticks],
        "ticktext": [f"{tick:{form}}" for tick in ticks],
    }


def make_categories(names: Sequence[str]) -> Json:
    return {"type": "category", "categoryarray": [*names], "range": [-0.5, len(names) - 0.5]}


def find_axis_end(values_ms: Sequence[float]) -> tuple[float, str]:
    """Find where an axis of ms should end so that a few outliers do not flatten the other values. The second value is a
    sentence with a leading space that says how many values are beyond the end, empty where none is. There must be a
    value."""
    ordered = sorted(values_ms)
    usual = ordered[int(0.99 * (len(ordered) - 1))]
    end = ordered[-1] if ordered[-1] <= OUTLYING * usual else 1.5 * usual
    beyond = [value for value in ordered if value > end]
    return end, f" Above the axis: {len(beyond)}, up to {numbers.plain(ordered[-1])} ms." if beyond else ""


def list_round_numbers(low: float, high: float) -> list[float]:
    """List equally spaced round numbers from `low` to `high`, for at most MAX_STEPS steps. `high` must be above
    `low`."""
    step = _find_step(high - low)
    return _list_multiples(step, ceil(round(low / step, 6)), floor(round(high / step, 6)))


def format_ticks(ticks: Sequence[float]) -> list[str]:
    """Write all ticks with the same number of decimals, the fewest that keep their values."""
    decimals = next((some for some in range(12) if all(abs(round(t, some) - t) <= 1e-6 * abs(t) for t in ticks)), 12)
    return [numbers.fixed(tick, decimals) for tick in ticks]


def _find_step(width: float) -> float:
    power = floor(log10(width / MAX_STEPS))
    return next(step for digit in (1, 2, 2.5, 5, 10) if (step := float(f"{digit}e{power}")) >= width / MAX_STEPS)


def _list_multiples(step: float, first: int, last: int) -> list[float]:
    return [float(f"{place * step:.6g}") for place in range(first, last + 1)]


def _find_change_beyond(distance: float, changes: Sequence[float]) -> float:
    """Find the first of `changes` at least `distance` powers of ten from 1, else a power of ten beyond them."""
    known = next((change for change in changes if abs(log10(change)) >= distance - 1e-9), None)
    if known is not None:
        return known
    power = next(power for power in count(3) if power >= distance - 1e-9)
    return float(10**power) if changes[0] > 1 else 10.0**-power


def _add_room(low: float, high: float) -> list[float]:
    room = ROOM * (high - low) or ROOM
    return [low - room, high + room]


def _format_change(ratio: float) -> str:
    """Write a round change in the form that tables use: `+25 %`, `×3`, `÷2`."""
    if not is_written_as_factor(ratio):
        return numbers.signed_percent(ratio - 1, 0)
    return f"×{ratio:g}" if ratio > 1 else f"÷{1 / ratio:.0f}"


def _format_moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"
