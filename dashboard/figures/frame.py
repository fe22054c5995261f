"""The position of values on a figure's axes, and the room for its words, for the server's drawing and the page's
script."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import log10

from dashboard.figures import scales
from dashboard.figures.theme import Json

# in pixels: the width of a letter, the height of a line, and the room above the chart, for ticks and for a title
PER_LETTER, LINE = 6.6, 16
TOP, TICKS, TITLE = 8, 22, 26
# the width of a drawing without its margins, in pixels, in a wide window and on a phone
WIDE, NARROW = 520, 280
MAX_NAME = 54


@dataclass(frozen=True)
class Scale:
    """An axis. `axis`: Plotly's attributes of it; `names`: the values of a category axis in their order, else empty."""

    axis: Json
    names: Sequence[str]

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Return the two ends of the axis, the left or lower one first, which on a reversed axis is the larger. They
        are exponents of ten on a logarithmic axis, seconds on a time axis, and numbers of categories."""
        low, high = self.axis.get("range") or [-0.5, len(self.names) - 0.5]
        if self.axis.get("autorange") == "reversed":
            low, high = high, low
        return (_parse_moment(low), _parse_moment(high)) if isinstance(low, str) else (low, high)

    def at(self, value: object) -> float | None:
        """Return the position of a value from 0 to 1; None where it is outside the axis or cannot be on it."""
        number = self._number(value)
        if number is None:
            return None
        place = self._place(number)
        return self.within(value) if -1e-6 <= place <= 1 + 1e-6 else None

    def within(self, value: object) -> float:
        """Return the position of a value from 0 to 1, cut at the ends; 0 where the value cannot be on the axis."""
        number = self._number(value)
        return 0.0 if number is None else min(1.0, max(0.0, self._place(number)))

    def _place(self, number: float) -> float:
        return (number - self.ends[0]) / (self.ends[1] - self.ends[0])

    def _number(self, value: object) -> float | None:
        if self.names:
            return self._places.get(str(value))
        if isinstance(value, str):
            return _parse_moment(value)
        if not isinstance(value, int | float):
            return None
        if self.axis.get("type") == "log":
            return log10(value) if value > 0 else None
        return float(value)

    @cached_property
    def _places(self) -> dict[str, float]:
        return {name: float(place) for place, name in enumerate(self.names)}

    @cached_property
    def ticks(self) -> list[tuple[float, str]]:
        """List the ticks, each with its position from 0 to 1 and its text. Ticks outside the axis are left out. A
        category axis has a tick for each name."""
        steps = () if self.names else self.axis.get("tickvals") or scales.list_round_numbers(*self.ends)
        texts = self.names or self.axis.get("ticktext") or scales.format_ticks(steps)
        placed = [(self.at(value), str(text)) for value, text in zip(self.names or steps, texts, strict=True)]
        return [(place, text) for place, text in placed if place is not None]

    @property
    def title(self) -> str:
        return str(self.axis["title"]["text"])


def _parse_moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def text_width(text: str) -> float:
    """Estimate the width of a text in pixels. Where it has several lines (`<br>`), the widest counts."""
    return PER_LETTER * max(map(len, text.split("<br>")))


@dataclass(frozen=True)
class Frame:
    """The axes of a figure, with the sizes of its rows, bars and margins in pixels.

    `groups`: the number of bars side by side in a row, 0 where there are only points; `rows`: the names of rows, the
    first at the top, empty where y has values; `foot` and `left`: the room for ticks and titles below and left of the
    chart; `drawn`: the height of the chart without them; `narrow_row`, `narrow_height`: of a row and of the whole
    figure in a narrow window, where names stand above their rows.
    """

    layout: Json
    x: Scale
    y: Scale
    groups: int

    @cached_property
    def rows(self) -> list[str]:
        names = [text for _, text in self.y.ticks] if self.y.ends[0] > self.y.ends[1] else []
        return names if any(names) else []

    @property
    def foot(self) -> int:
        return TICKS + (TITLE if self.x.title else 0)

    @property
    def left(self) -> int:
        widest = max((min(text_width(text), MAX_NAME * PER_LETTER) for _, text in self.y.ticks), default=0.0)
        return round(widest) + 12 + (30 if self.y.title else 0)

    @property
    def drawn(self) -> float:
        return float(self.layout["height"]) - TOP - self.foot

    @property
    def thickness(self) -> float:
        """Return the height of all bars of a row together in pixels, or the height of its points."""
        row = self.drawn / abs(self.y.ends[1] - self.y.ends[0])
        return row * (1 - self.layout.get("bargap", 0.2)) if self.groups else 12.0

    @property
    def up(self) -> float:
        """Return how many pixels above its row a name stands in a narrow window."""
        return self.thickness / 2 + LINE / 2 * self._lines + 2

    @property
    def narrow_row(self) -> float:
        return self.thickness + LINE * self._lines + 10

    @property
    def narrow_height(self) -> float:
        return len(self.rows) * self.narrow_row + TOP + self.foot if self.rows else self.layout["height"]

    @property
    def _lines(self) -> int:
        return max((text.count("<br>") + 1 for text in self.rows), default=1)


def make_frame(data: Sequence[Json], layout: Json) -> Frame:
    """Make the frame of a figure that has data, from its traces and its layout."""
    bars = sum(trace["type"] == "bar" for trace in data)
    x, y = (_make_scale(layout[f"{along}axis"], (value for trace in data for value in trace[along])) for along in "xy")
    return Frame(layout, x, y, groups=bars if layout.get("barmode") == "group" else min(bars, 1))


def _make_scale(axis: Json, values: Iterable[object]) -> Scale:
    names = [*axis.get("categoryarray", ()), *map(str, values)] if axis.get("type") == "category" else []
    return Scale(axis, list(dict.fromkeys(names)))
