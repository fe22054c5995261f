"""The one theme of all figures. Colours are tokens of the stylesheet, looked up in the browser when drawing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from math import ceil, floor, isfinite, log10
from typing import Any, Literal

from farm.rules.wording import numbers
from farm.rules.wording.numbers import is_factor
from farm.rules.wording.vocabulary import sign_of

SLOTS = 7
INK = "@ink"
SOFT = "@ink-soft"
LINE = "@line"
OTHER = "@series-other"
ACCENT = "@accent"
# of a verdict's sign: to the right is more
_MARKS = {"▲": "triangle-right", "▼": "triangle-left", "=": "square", "?": "circle-open", "≠": "x-thin-open"}
DASHES = ("solid", "dash", "dot", "dashdot")
# the dashes of a line of the server's drawing, and its marks around 0 0, up to 4 away, all by Plotly's names
DASH_LENGTHS: Mapping[str, str] = {"dash": "5 3", "dot": "1.5 2.5", "dashdot": "5 2 1.5 2"}
SHAPES: Mapping[str, str] = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.5-3.5h7v7h-7z",
    "diamond": "M0-4.5 4.5 0 0 4.5-4.5 0z",
    "cross": "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "triangle-up": "M0-4.5 4.5 4h-9z",
    "triangle-left": "M-4.5 0 4-4.5v9z",
    "triangle-right": "M4.5 0-4-4.5v9z",
    "star": "M0-5 1.2-1.5H5L2 .8 3.1 4.5 0 2.2-3.1 4.5-2 .8-5-1.5h3.8z",
    "x-thin-open": "M-4-4 4 4M4-4-4 4",
}
MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "star")

Json = dict[str, Any]
# more labels would overlap in a narrow window
MAX_STEPS = 6
# free space beyond the outermost ticks, as a share of the axis, so that a point on the last tick is drawn whole
ROOM = 0.02
# the same where a number follows each bar
FOR_LABELS = 0.12
# an axis is logarithmic where the largest value is so many times the smallest
LOG_FROM = 6.0
# an axis is cut where the largest value is so many times the 99th percentile
OUTLYING = 3
# the smallest distance between two ticks of an axis around 1, as a share of the axis
APART = 1 / 7
# round changes away from 1, by how far they lie from it
SLOWER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FASTER = (0.98, 0.95, 0.9, 0.8, 0.67, 0.5, 0.33, 0.2, 0.1, 0.05, 0.02, 0.01)


def verdict_colour(word: str) -> str:
    tone = sign_of(word).tone
    return SOFT if tone == "quiet" else f"@{tone}"


def verdict_mark(word: str) -> str:
    return _MARKS[sign_of(word).mark]


def axis(title: str, **more: object) -> Json:
    """An axis in the theme; `more` overrides."""
    base = {
        "title": {"text": title, "font": {"size": 12, "color": SOFT}, "standoff": 8},
        "tickfont": {"size": 12, "color": SOFT},
        "gridcolor": LINE,
        "linecolor": LINE,
        "zerolinecolor": LINE,
        "automargin": True,
        "fixedrange": True,
    }
    return {**base, **more}


def layout(*, height: int, xaxis: Json, yaxis: Json, **more: object) -> Json:
    """Make a layout in the theme, with a transparent ground; the legend, hidden unless asked for, stands above."""
    base = {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "@words", "size": 12, "color": INK},
        "hoverlabel": {
            "font": {"family": "@words", "size": 12, "color": INK},
            "bgcolor": "@paper",
            "bordercolor": LINE,
        },
        "hovermode": "closest",
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
        "xaxis": xaxis,
        "yaxis": yaxis,
    }
    return {**base, **more}


def row_layout(rows: int, xaxis: Json, **more: object) -> Json:
    return layout(height=row_height(rows), xaxis=xaxis, yaxis=named_rows(), **{"bargap": 0.35, **more})


def row_height(rows: int, *, per_row: int = 28, least: int = 140) -> int:
    """The height of a figure with so many rows, in pixels."""
    return max(least, rows * per_row + 88)


def categories(names: Sequence[str]) -> Json:
    """Make the settings of an axis of categories, in this order, to be passed on to `axis`."""
    return {"type": "category", "categoryarray": [*names], "range": [-0.5, len(names) - 0.5]}


def named_rows(names: Sequence[str] = ()) -> Json:
    """Make an axis of row names, the first at the top, in the order of `names` or else of the data."""
    if not names:
        return axis("", autorange="reversed", type="category")
    rows = categories(list(dict.fromkeys(names)))
    return axis("", **{**rows, "range": rows["range"][::-1]})


def numbered_rows(texts: Sequence[str]) -> Json:
    ticks = {"tickvals": list(range(len(texts))), "ticktext": [*texts], "range": [len(texts) - 0.5, -0.5]}
    return axis("", **ticks, showgrid=False, zeroline=False)


def bars(x: Iterable[float], y: Iterable[object], *, hover: str, **more: object) -> Json:
    return {"type": "bar", "orientation": "h", "x": [*x], "y": [*y], "hovertemplate": f"{hover}<extra></extra>", **more}


def points(x: Iterable[object], y: Iterable[object], *, hover: str = "", mode: str = "markers", **more: object) -> Json:
    """Draw points, lines or both; without `hover` nothing is shown on hover."""
    said = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": mode, "x": [*x], "y": [*y], **said, **more}


def line(
    x: Iterable[object], y: Iterable[object], colour: str, *, hover: str, mark: str = "", dash: str = "", **more: object
) -> Json:
    marker = {"color": colour, "size": 7, **({"symbol": mark} if mark else {})}
    return points(x, y, mode="lines+markers", hover=hover, line=pen(colour, 1.5, dash), marker=marker, **more)


def dots(
    values: Sequence[float],
    ends: Iterable[tuple[float, float]],
    rows: Iterable[str],
    colour: str,
    mark: str,
    *,
    hover: str = "%{fullData.name}, %{y}<br>%{text}",
    **more: object,
) -> Json:
    """Draw a point with its interval in each of the named rows. `text`: what is said on hover."""
    error = whiskers(values, ends, colour) if values else {}
    return points(
        values,
        rows,
        hover=hover,
        mode="markers",
        error_x=error,
        marker={"color": colour, "size": 9, "symbol": mark},
        **more,
    )


def behind_bars(texts: Iterable[str]) -> Json:
    small = {"size": 11, "color": SOFT}
    return {"text": [*texts], "textposition": "outside", "cliponaxis": False, "textfont": small}


def rule(along: Literal["x", "y"], at: float, *, colour: str = SOFT, width: float = 1, dash: str = "") -> Json:
    """Draw a straight line through the whole figure at a value of x or y."""
    return {**_across(along, at, at), "type": "line", "line": pen(colour, width, dash)}


def band(along: Literal["x", "y"], low: float, high: float, *, percent: int) -> Json:
    return {**_across(along, low, high), "type": "rect", "line": {"width": 0}, "fillcolor": f"{INK}/{percent}"}


def _across(along: str, low: float, high: float) -> Json:
    other = "y" if along == "x" else "x"
    return {f"{along}0": low, f"{along}1": high, f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1}


def pen(colour: str, width: float, dash: str = "") -> Json:
    return {"color": colour, "width": width, **({"dash": dash} if dash else {})}


def whiskers(
    values: Sequence[float], ends: Iterable[tuple[float, float]], colour: str, *, thickness: float = 1.5
) -> Json:
    """Draw the interval of each value. An end on the wrong side of its value is drawn at the value."""
    lows, highs = zip(*ends, strict=True)
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, high - value) for high, value in zip(highs, values, strict=True)],
        "arrayminus": [max(0.0, value - low) for low, value in zip(lows, values, strict=True)],
        "color": colour,
        "thickness": thickness,
        "width": 0,
    }


def ends(intervals: Iterable[tuple[float | None, ...] | None], *values: float | None) -> list[float]:
    """List all numbers that an axis has to reach: the known ends of the intervals, and the values."""
    reached = [end for interval in intervals if interval is not None for end in interval]
    return [number for number in (*reached, *values) if number is not None and isfinite(number)]


def linear(values: Sequence[float], *, from_zero: bool = True, room: float = ROOM, is_share: bool = False) -> Json:
    """Make a linear axis, from zero on where bars or sizes are compared. `room`: the free part beyond the values.
    `is_share`: values are fractions, and ticks are written in percent."""
    low = 0.0 if from_zero else min(values, default=0.0)
    high = max([*values, *([0.0] if from_zero else [])], default=1.0)
    low, high = (low, high) if high > low else (low - (0.0 if from_zero else 0.5), low + (1.0 if from_zero else 0.5))
    step = _step(high - low)
    shown = _multiples(step, floor(round(low / step, 6)), ceil(round(high / step, 6)))
    beyond = room * (shown[-1] - shown[0])
    text = [f"{written} %" for written in texts([100 * tick for tick in shown])] if is_share else texts(shown)
    ends = [shown[0] - (0.0 if from_zero else beyond), shown[-1] + beyond]
    return {"range": ends, "tickvals": shown, "ticktext": text}


def cut(values: Sequence[float]) -> tuple[float, str]:
    """Find where an axis ends so that the furthest hundredth does not flatten the rest, and say how many lie beyond."""
    ordered = sorted(values)
    usual = ordered[int(0.99 * (len(ordered) - 1))]
    end = ordered[-1] if ordered[-1] <= OUTLYING * usual else 1.5 * usual
    beyond = [value for value in ordered if value > end]
    return end, f" Above the axis: {len(beyond)}, up to {numbers.plain(ordered[-1])}." if beyond else ""


def steps(low: float, high: float) -> list[float]:
    """List the round numbers between the two, equally far apart."""
    step = _step(high - low)
    return _multiples(step, ceil(round(low / step, 6)), floor(round(high / step, 6)))


def _multiples(step: float, first: int, last: int) -> list[float]:
    return [float(f"{place * step:.6g}") for place in range(first, last + 1)]


def texts(ticks: Sequence[float]) -> list[str]:
    """Write ticks with as many decimals as tell them apart."""
    decimals = next((some for some in range(12) if all(abs(round(t, some) - t) <= 1e-6 * abs(t) for t in ticks)), 12)
    return [numbers.fixed(tick, decimals) for tick in ticks]


def moments(values: Sequence[datetime]) -> Json:
    """Make a time axis with ticks at round moments, in the time zone of `values`, of which there is at least one."""
    first, span = min(values), max(values) - min(values)
    hours = (1 / 60, 1 / 6, 1, 3, 6, 12, 24, 48, 168, 672, 2184, 8760, 17520, 87600)
    step = next(step for step in (timedelta(hours=some) for some in hours) if span <= MAX_STEPS * step)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    places = range(ceil((first - midnight) / step), floor((first + span - midnight) / step) + 1)
    shown, room = [midnight + place * step for place in places], ROOM * span or timedelta(hours=12)
    form = "%m-%d %H:%M" if step < timedelta(days=1) else "%Y-%m-%d"
    ends, ticks = ([f"{at:%Y-%m-%d %H:%M:%S}" for at in some] for some in ((first - room, first + span + room), shown))
    return {"type": "date", "range": ends, "tickvals": ticks, "ticktext": [f"{tick:{form}}" for tick in shown]}


def spread(values: Sequence[float], reached: Sequence[float]) -> Json:
    """Make a linear axis from zero, or a logarithmic one where values lie far apart. `reached`: with the ends of
    whiskers."""
    is_wide = max(values) / min(values) > LOG_FROM and min(reached) > 0
    return logarithmic(reached) if is_wide else linear(reached)


def logarithmic(values: Sequence[float]) -> Json:
    """Make a logarithmic axis with ticks at round numbers. `values` must be above zero."""
    reach = log10(max(values) / min(values))
    digits = (1, 2, 5) if reach <= 1.5 else (1, 3) if reach <= 3 else (1,)
    powers = range(floor(log10(min(values))) - 1, ceil(log10(max(values))) + 2)
    steps = [float(f"{digit}e{power}") for power in powers for digit in digits]
    low = max(step for step in steps if step <= min(values) * (1 + 1e-9))
    high = min(step for step in steps if step >= max(values) * (1 - 1e-9))
    shown = [step for step in steps if low <= step <= high]
    text = [numbers.fixed(step, max(0, -floor(log10(step)))) for step in shown]
    return {"type": "log", "range": _with_room(log10(low), log10(high)), "tickvals": shown, "ticktext": text}


def ratio(values: Sequence[float]) -> Json:
    """Make a logarithmic axis of changes around 1, which is a tick as are the ends."""
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
    power = floor(log10(width / MAX_STEPS))
    return next(step for digit in (1, 2, 2.5, 5, 10) if (step := float(f"{digit}e{power}")) >= width / MAX_STEPS)


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
    """Write a round change as tables write changes."""
    if not is_factor(tick):
        return numbers.signed_percent(tick - 1, 0)
    return f"×{tick:g}" if tick > 1 else f"÷{1 / tick:.0f}"
