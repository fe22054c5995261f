"""The one theme of all figures. Colours are tokens of the stylesheet, looked up in the browser when drawing."""

from collections.abc import Iterable, Sequence
from typing import Literal

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
MARKS = ("circle", "square", "diamond", "cross", "triangle-up", "star")

Json = dict[str, object]


def verdict_colour(word: str) -> str:
    """A verdict's colour."""
    tone = sign_of(word).tone
    return SOFT if tone == "quiet" else f"@{tone}"


def verdict_mark(word: str) -> str:
    """A verdict's mark in a chart."""
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
    """A layout in the theme: words of the page, no ground of its own, legend below."""
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
    """The layout of bars from left to right, a row each, the first at the top."""
    return layout(height=row_height(rows), xaxis=xaxis, yaxis=named_rows(), **{"bargap": 0.35, **more})


def row_height(rows: int, *, per_row: int = 28, least: int = 140) -> int:
    """How high a figure of so many rows is, in pixels."""
    return max(least, rows * per_row + 88)


def named_rows(names: Sequence[str] = ()) -> Json:
    """Rows by their names, the first at the top; in the order of `names`, or else of the data."""
    return axis("", autorange="reversed", type="category", **({"categoryarray": [*names]} if names else {}))


def numbered_rows(texts: Sequence[str]) -> Json:
    """Rows by their numbers, the first at the top, each with its text beside it."""
    ticks = {"tickvals": list(range(len(texts))), "ticktext": [*texts], "range": [len(texts) - 0.5, -0.5]}
    return axis("", **ticks, showgrid=False, zeroline=False)


def bars(x: Iterable[float], y: Iterable[object], *, hover: str, **more: object) -> Json:
    """Bars from left to right, each in the row that `y` names."""
    return {"type": "bar", "orientation": "h", "x": [*x], "y": [*y], "hovertemplate": f"{hover}<extra></extra>", **more}


def points(x: Iterable[object], y: Iterable[object], *, hover: str = "", mode: str = "markers", **more: object) -> Json:
    """Points, lines or both; without `hover` nothing is said of them."""
    said = {"hovertemplate": f"{hover}<extra></extra>"} if hover else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": mode, "x": [*x], "y": [*y], **said, **more}


def line(
    x: Iterable[object], y: Iterable[object], colour: str, *, hover: str, mark: str = "", dash: str = "", **more: object
) -> Json:
    """A line with its points."""
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
    """A point with its interval in each of the named rows; `text` says what it is."""
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
    """What is written behind bars."""
    small = {"size": 11, "color": SOFT}
    return {"text": [*texts], "textposition": "outside", "cliponaxis": False, "textfont": small}


def rule(along: Literal["x", "y"], at: float, *, colour: str = SOFT, width: float = 1, dash: str = "") -> Json:
    """A straight line through the whole figure, where x or y has a value."""
    return {**_across(along, at, at), "type": "line", "line": pen(colour, width, dash)}


def band(along: Literal["x", "y"], low: float, high: float, *, percent: int) -> Json:
    """A ground between two values of x or y, so dark."""
    return {**_across(along, low, high), "type": "rect", "line": {"width": 0}, "fillcolor": f"{INK}/{percent}"}


def _across(along: str, low: float, high: float) -> Json:
    other = "y" if along == "x" else "x"
    return {f"{along}0": low, f"{along}1": high, f"{other}ref": "paper", f"{other}0": 0, f"{other}1": 1}


def pen(colour: str, width: float, dash: str = "") -> Json:
    return {"color": colour, "width": width, **({"dash": dash} if dash else {})}


def whiskers(
    values: Sequence[float], ends: Iterable[tuple[float, float]], colour: str, *, thickness: float = 1.5
) -> Json:
    """The interval of each value, drawn from the value; none of them turns back."""
    lows, highs = zip(*ends, strict=True)
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, high - value) for high, value in zip(highs, values, strict=True)],
        "arrayminus": [max(0.0, value - low) for low, value in zip(lows, values, strict=True)],
        "color": colour,
        "thickness": thickness,
        "width": 4 if thickness > 1 else 3,
    }
