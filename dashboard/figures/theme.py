"""The one theme of all figures. Colours are tokens of the stylesheet, looked up in the browser when drawing."""

from collections.abc import Iterable, Sequence

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
    yaxis = axis("", autorange="reversed", type="category")
    return layout(height=row_height(rows), xaxis=xaxis, yaxis=yaxis, **{"bargap": 0.35, **more})


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


def row_height(rows: int, *, per_row: int = 28, least: int = 140) -> int:
    """How high a figure of so many rows is, in pixels."""
    return max(least, rows * per_row + 88)
