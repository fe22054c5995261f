"""The theme of all figures. Colours are tokens such as `@ink`, which stand for properties of the stylesheet. Only words
with the sign of a verdict have a mark (`verdict_mark`); others raise KeyError."""

from collections.abc import Mapping, Sequence
from typing import Any

from farm.rules.wording.vocabulary import sign_of

# at most so many series of a figure have a colour of their own
SLOTS = 7
INK = "@ink"
SOFT = "@ink-soft"
LINE = "@line"
OTHER = "@series-other"
ACCENT = "@accent"
# Plotly's symbol for the sign of a verdict; ▲ points right, because larger values are drawn to the right
_VERDICT_SYMBOLS = {"▲": "triangle-right", "▼": "triangle-left", "=": "square", "?": "circle-open", "≠": "x-thin-open"}
DASHES = ("solid", "dash", "dot", "dashdot")
# Dash patterns and symbols for figures drawn on the server, by Plotly's names. Symbols are centred on (0, 0) and stay
# within 5 units.
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


def verdict_colour(word: str) -> str:
    tone = sign_of(word).tone
    return SOFT if tone == "quiet" else f"@{tone}"


def verdict_mark(word: str) -> str:
    return _VERDICT_SYMBOLS[sign_of(word).mark]


def make_axis(title: str, **more: object) -> Json:
    """Make an axis that cannot be zoomed. `more` sets or overrides Plotly's attributes of an axis."""
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


def make_layout(*, height: int, xaxis: Json, yaxis: Json, **more: object) -> Json:
    """Make a layout with a transparent background. The legend is above the chart, and hidden unless `more` has
    `showlegend`. `more` sets or overrides Plotly's attributes of a layout."""
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


def make_bar_layout(rows: int, xaxis: Json, *, is_stacked: bool = False) -> Json:
    parts: Json = {"barmode": "stack", "showlegend": True} if is_stacked else {}
    return make_layout(height=row_height(rows), xaxis=xaxis, yaxis=make_named_rows(), bargap=0.35, **parts)


def row_height(rows: int, *, per_row: int = 28, least: int = 140) -> int:
    """Compute the height of a figure with so many rows in pixels, with room for its axis and key."""
    return max(least, rows * per_row + 88)


def make_named_rows(names: Sequence[str] = ()) -> Json:
    """Make an axis of row names, the first at the top. Rows are in the order of `names`, with repeated names once, or
    without `names` in the order of the data."""
    if not names:
        return make_axis("", autorange="reversed", type="category")
    rows = list(dict.fromkeys(names))
    return make_axis("", type="category", categoryarray=rows, range=[len(rows) - 0.5, -0.5])


def make_numbered_rows(texts: Sequence[str]) -> Json:
    """Make an axis whose rows are numbered from 0, the first at the top, and labelled with these texts."""
    ticks = {"tickvals": list(range(len(texts))), "ticktext": [*texts], "range": [len(texts) - 0.5, -0.5]}
    return make_axis("", **ticks, showgrid=False, zeroline=False)
