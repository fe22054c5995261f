"""The traces and shapes of figures in Plotly's form: bars, points with whiskers, lines, bands."""

from collections.abc import Iterable, Sequence
from typing import Literal

from dashboard.figures.theme import INK, SOFT, Json

# the low and the high end, each None where it is not known; None without an interval
Interval = tuple[float | None, float | None] | None


def make_bars(x: Iterable[float], y: Iterable[object], *, hover: str, **more: object) -> Json:
    return {"type": "bar", "orientation": "h", "x": [*x], "y": [*y], "hovertemplate": f"{hover}<extra></extra>", **more}


def make_bar_labels(texts: Iterable[str]) -> Json:
    small = {"size": 11, "color": SOFT}
    return {"text": [*texts], "textposition": "outside", "cliponaxis": False, "textfont": small}


def make_points(
    x: Iterable[object], y: Iterable[object], *, hover: str = "", mode: str = "markers", **more: object
) -> Json:
    """Make a trace of points, lines or both, as Plotly's `mode` says. Without `hover` nothing is shown on hover."""
    on_hover = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": mode, "x": [*x], "y": [*y], **on_hover, **more}


def make_line(
    x: Iterable[object], y: Iterable[object], colour: str, *, hover: str, mark: str = "", dash: str = "", **more: object
) -> Json:
    marker = {"color": colour, "size": 7, **({"symbol": mark} if mark else {})}
    return make_points(x, y, hover=hover, mode="lines+markers", line=make_pen(colour, 1.5, dash), marker=marker, **more)


def make_row_points(
    values: Sequence[float],
    intervals: Iterable[Interval],
    rows: Iterable[str],
    colour: str,
    mark: str,
    *,
    hover: str = "%{fullData.name}, %{y}<br>%{text}",
    **more: object,
) -> Json:
    """Make a trace with a point and its interval in each of the named rows. `more` must have a `text` for each point
    unless `hover` does without it."""
    error = make_whiskers(values, intervals, colour)
    marker = {"color": colour, "size": 9, "symbol": mark}
    return make_points(values, rows, hover=hover, mode="markers", error_x=error, marker=marker, **more)


def make_whiskers(
    values: Iterable[float | None], intervals: Iterable[Interval], colour: str, *, thickness: float = 1.5
) -> Json:
    """Make the whiskers of values from the low and high ends of their intervals. An end that is not known, or on the
    wrong side of its value, is drawn at the value."""
    known = [(value, *(interval or (None, None))) for value, interval in zip(values, intervals, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "array": [_measure_whisker(value, high) for value, _, high in known],
        "arrayminus": [_measure_whisker(low, value) for value, low, _ in known],
        "color": colour,
        "thickness": thickness,
        "width": 0,
    }


def _measure_whisker(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else max(0.0, high - low)


def make_rule(along: Literal["x", "y"], at: float, *, colour: str = SOFT, width: float = 1, dash: str = "") -> Json:
    """Make a straight line through the whole figure at a value of an axis; a value of x makes a vertical line."""
    return {**_span_figure(along, at, at), "type": "line", "line": make_pen(colour, width, dash)}


def make_band(along: Literal["x", "y"], low: float, high: float, *, percent: int) -> Json:
    """Make a band through the whole figure between two values of an axis. `percent`: the opacity of the band."""
    return {**_span_figure(along, low, high), "type": "rect", "line": {"width": 0}, "fillcolor": f"{INK}/{percent}"}


def _span_figure(along: str, low: float, high: float) -> Json:
    other = "y" if along == "x" else "x"
    return {f"{along}0": low, f"{along}1": high, f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1}


def make_pen(colour: str, width: float, dash: str = "") -> Json:
    return {"color": colour, "width": width, **({"dash": dash} if dash else {})}
