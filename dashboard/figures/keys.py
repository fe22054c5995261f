"""The key of a figure: which line or bar is what. It stands above the chart, so that it never lies over data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from dashboard.figures.theme import INK, OTHER, Json

# by Plotly's names, around 0 0, up to 4 away
_SHAPES: Mapping[str, str] = {
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
_DASHES: Mapping[str, str] = {"dash": "5 3", "dot": "1.5 2.5", "dashdot": "5 2 1.5 2"}


@dataclass(frozen=True)
class Entry:
    """One series: its name, the token of its colour, the path of its mark, whether that is filled, its line's dashes.

    `dashes` is None where no line is drawn, and empty for a whole one.
    """

    name: str
    colour: str
    shape: str
    is_filled: bool
    dashes: str | None

    @property
    def is_grey(self) -> bool:
        """Whether it is one of those without a colour of their own."""
        return self.colour == OTHER.removeprefix("@")


def entries(data: Iterable[Json], layout: Json) -> list[Entry]:
    """The named series of a figure that wants a key, those drawn last first where the layout says so."""
    if not layout.get("showlegend"):
        return []
    made = [_entry(trace) for trace in data if trace.get("name") and trace.get("showlegend", True)]
    is_reversed = _part(layout, "legend").get("traceorder") == "reversed"
    return made[::-1] if is_reversed else made


def _entry(trace: Json) -> Entry:
    marker, line = _part(trace, "marker"), _part(trace, "line")
    colour = str(marker.get("color") or line.get("color") or INK)
    symbol = "square" if trace["type"] == "bar" else str(marker.get("symbol", "circle"))
    has_line = "lines" in str(trace.get("mode", ""))
    return Entry(
        name=str(trace["name"]),
        colour=colour.removeprefix("@"),
        shape=_SHAPES.get(symbol.removesuffix("-open")) or _SHAPES.get(symbol) or _SHAPES["circle"],
        is_filled=not symbol.endswith("-open"),
        dashes=_DASHES.get(str(line.get("dash")), "") if has_line else None,
    )


def _part(whole: Json, name: str) -> Json:
    return cast(Json, whole.get(name) or {})
