"""What a figure is: a finding as its title, a summary for those who cannot see it, the drawing, its key, its numbers.

The key says which line or bar is what; it stands above the chart, so that it never lies over data. Of a long line fewer
points are drawn, fewer bars, fewer letters: what stood out still stands out.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dashboard import axes
from dashboard.figures import labels
from dashboard.figures.frame import NARROW, WIDE, Frame, make_frame
from dashboard.figures.picture import draw_svg
from dashboard.figures.theme import DASH_LENGTHS, INK, OTHER, SHAPES, SLOTS, Json
from farm.contract.document_cells import Cell
from farm.rules.cells.metrics import BY_NAME
from farm.rules.presenting.lines import PROCESSOR, format_items_per_s, is_wrong
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_number
from farm.rules.presenting.times import ITEMS, Times
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import STATES, WRONG


@dataclass(frozen=True)
class Series:
    """A series in the key of a figure. `dashes` is None where no line is drawn, and empty for a whole line."""

    name: str
    colour: str
    shape: str
    is_filled: bool
    dashes: str | None

    @property
    def is_grey(self) -> bool:
        return self.colour == OTHER.removeprefix("@")


def list_series(data: Iterable[Json], layout: Json) -> list[Series]:
    """List the named series of a figure that wants a key, in the order of its legend; none of one that wants no key."""
    if not layout.get("showlegend"):
        return []
    made = [_make_series(trace) for trace in data if trace.get("name") and trace.get("showlegend", True)]
    is_reversed = layout.get("legend", {}).get("traceorder") == "reversed"
    return made[::-1] if is_reversed else made


def _make_series(trace: Json) -> Series:
    marker, line = trace.get("marker", {}), trace.get("line", {})
    colour = marker.get("color") or line.get("color") or INK
    symbol = "square" if trace["type"] == "bar" else marker.get("symbol", "circle")
    has_line = "lines" in trace.get("mode", "")
    return Series(
        name=trace["name"],
        colour=colour.removeprefix("@"),
        shape=SHAPES.get(symbol.removesuffix("-open")) or SHAPES.get(symbol) or SHAPES["circle"],
        is_filled=not symbol.endswith("-open"),
        dashes=DASH_LENGTHS.get(line.get("dash"), "") if has_line else None,
    )


# from a cell's id to its page
Address = Callable[[str], str]
RUNTIME: Column[Cell] = Column("Runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True))


def p50_column(times: Times, cells: Sequence[Cell]) -> Column[Cell]:
    """Make the column of the cells' p50 in ms, of the kind of time that verdicts rest on. Where cells show different
    kinds of time, processor time is marked. The cells of its rows must have the compared time in place of p50
    already."""
    title = times.title(cells)
    return Number(
        f"{title}, ms", lambda cell: latency_entry(cell, is_marked=cell.id in times.by_processor and title != PROCESSOR)
    )


def time_column(times: Times, cells: Sequence[Cell], text: str, name: str, *, note: str) -> Column[Cell]:
    """Make the column of a further time of these cells. Where cells show different kinds, processor time is marked."""
    metric, title = BY_NAME[name], times.heading(text, name, cells)

    def entry(cell: Cell) -> Entry:
        return replace(as_number(metric.value(cell)), soft="CPU time" if _is_marked(times, name, cell, title) else "")

    return Number(f"{title}, ms", entry, note=note)


def items_column(times: Times, cells: Sequence[Cell]) -> Column[Cell]:
    title = times.heading("items/s", ITEMS, cells)
    return Number(title, lambda cell: items_entry(cell, is_marked=_is_marked(times, ITEMS, cell, title)))


def _is_marked(times: Times, name: str, cell: Cell, title: str) -> bool:
    return times.is_processor(name, cell) and f" or {PROCESSOR}" in title


def items_entry(cell: Cell, *, is_marked: bool) -> Entry:
    """Make the entry of the items per second. `is_marked`: it says that they are of processor time."""
    return Entry(format_items_per_s(cell), cell.throughput, soft="CPU time" if is_marked else "")


def latency_entry(cell: Cell, *, is_marked: bool, has_interval: bool = False) -> Entry:
    """Make the entry of a cell's p50 in ms. `is_marked`: it says that it is processor time; `has_interval`: half of the
    interval stands behind it."""
    interval = numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms) if has_interval else ""
    soft = ", ".join(filter(None, (interval, "CPU time" if is_marked else "")))
    return Entry(numbers.milliseconds(cell.p50_ms, cell.p50_ci_ms), cell.p50_ms, soft=soft)


HALF_WIDTH: Column[Cell] = Number(
    "±, ms",
    lambda cell: Entry(
        numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms).removeprefix("± "), numbers.half_width(cell.p50_ci_ms)
    ),
    note="half of the 95 % interval over process launches",
)


@dataclass(frozen=True)
class Figure:
    """`data` and `layout` are Plotly's; colours in them are tokens. A figure without data says why in `empty`.

    `note`: how to read it, in a line below it.
    `zooms`: it is wider than the page, so that parts of it may be shown, by pointer, key and button.
    """

    name: str
    title: str
    summary: str
    data: list[Json]
    layout: Json
    table: Table
    empty: str = ""
    zooms: bool = False
    note: str = ""

    @property
    def key(self) -> list[Series]:
        """List the named series of the key; empty for a figure without a key."""
        return list_series(self.data, self.layout)

    @property
    def greys(self) -> list[Series]:
        return [entry for entry in self.key if entry.is_grey] if len(self.key) > SLOTS else []

    @cached_property
    def _frame(self) -> Frame:
        return make_frame(self.data, self.layout)

    @property
    def picture(self) -> str:
        """Draw the inside of the SVG of its first paint, as safe HTML, without the element itself."""
        return draw_svg(self.name, self.data, self._frame)

    @property
    def room(self) -> str:
        """Write the size of the picture, and of Plotly's drawing after it, as CSS properties for a style attribute,
        in pixels."""
        drawn = self._frame
        sizes = {
            "high": self.layout["height"],
            "high-narrow": drawn.narrow_height,
            "left": drawn.left,
            "left-narrow": 8 if drawn.rows else drawn.left,
            "right": self.layout["margin"]["r"],
            "foot": drawn.foot,
            "up": drawn.up,
        }
        return ";".join(f"--{name}:{pixels:.0f}px" for name, pixels in sizes.items())

    @property
    def json(self) -> str:
        """Write the drawing for the page's script as JSON, safe inside a script element. `names` in it: which names
        of points have room in a wide window and in a narrow one; `rows`: names that stand `up` above their rows in a
        narrow one."""
        drawn = self._frame
        names = [
            {
                place: {"text": [name.text for name in some], "textposition": [name.way for name in some]}
                for place, some in labels.place_labels(self.data, drawn, width).items()
            }
            for width in (WIDE, NARROW)
        ]
        more = {"names": names, "rows": drawn.rows, "up": drawn.up, "gap": 1 - drawn.thickness / drawn.narrow_row}
        # the page draws the key itself
        return script_json({"data": self.data, "layout": {**self.layout, "showlegend": False}, **more})


def script_json(content: object) -> str:
    """Write JSON that is safe inside a script element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def empty_figure(name: str, sentence: str, table: Table) -> Figure:
    return Figure(name=name, title=sentence, summary=sentence, data=[], layout={}, table=table, empty=sentence)


def name_column(along: Sequence[axes.Axis], address: Address, *, only: str = "") -> Column[Cell]:
    """Make the column that names cells by what differs, with a link. Where nothing differs the name is `only`, or else
    the runtime. Wrong outputs are marked."""

    def entry(cell: Cell) -> Entry:
        text = axes.name_of(cell, along) if along or not only else only
        return Entry(text, href=address(cell.id), sign=STATES[WRONG] if is_wrong(cell) else None)

    return Column("Cell", entry)


def select_right_cells(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Select the cells with right outputs, which a title may praise; all cells where none has them."""
    return [cell for cell in cells if not is_wrong(cell)] or cells


def rounded_entry(value: float, decimals: int = 0) -> Entry:
    return Entry(numbers.fixed(value, decimals), value)


MAX_BARS = 40


def choose_bars(cells: Sequence[Cell], value: Callable[[Cell], float]) -> tuple[list[Cell], str]:
    """Choose the cells that get a bar, at most MAX_BARS spread over the ranks of `value`, and write a sentence about
    the others, with a space before it; empty where there are none."""
    shown = [cells[place] for place in spread_places([value(cell) for cell in cells], most=MAX_BARS)]
    left = len(cells) - len(shown)
    return shown, f" {numbers.counted(left, 'cell')} between them are in the table only." if left else ""


def thin_places(values: Sequence[float], *, most: int) -> list[int]:
    """Choose at most `most` (≥ 4) places of values, in order: the first, the last, and of each stretch its lowest and
    highest. All places where there are no more."""
    count = len(values)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    chosen = {0, count - 1}
    for number in range(stretches):
        start, stop = number * count // stretches, (number + 1) * count // stretches
        chosen.add(min(range(start, stop), key=values.__getitem__))
        chosen.add(max(range(start, stop), key=values.__getitem__))
    return sorted(chosen)


def spread_places(values: Sequence[float], *, most: int) -> list[int]:
    """Choose at most `most` (≥ 2) places of values, in order: the lowest, the highest, and places at even steps of
    rank between. All places where there are no more."""
    count = len(values)
    if count <= most:
        return list(range(count))
    ranked = sorted(range(count), key=values.__getitem__)
    return sorted({ranked[number * (count - 1) // (most - 1)] for number in range(most)})


def shorten_end(name: str, *, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def shorten_start(name: str, *, most: int) -> str:
    """Shorten a long name to `most` letters, “…” and its last ones, by which nodes of one model differ."""
    return name if len(name) <= most else f"…{name[-most + 1 :]}"
