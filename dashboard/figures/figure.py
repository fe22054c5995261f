"""A figure: a finding as its title, a summary for people who cannot see it, the drawing, its key and its table.

The key is HTML above the chart, so that it never covers data. Long lines are thinned to fewer points and many bars to
fewer bars, but the extremes are kept. Long names are shortened.
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
    """A series in the key of a figure. `colour`: a property of the stylesheet, without `--`; `shape`: the SVG path of
    its mark; `dashes`: the dash pattern of its line, empty for a solid line, None where no line is drawn."""

    name: str
    colour: str
    shape: str
    is_filled: bool
    dashes: str | None

    @property
    def is_grey(self) -> bool:
        return self.colour == OTHER.removeprefix("@")


def list_series(data: Iterable[Json], layout: Json) -> list[Series]:
    """List the named series of a figure for its key, in the order of the legend; empty where the layout hides it."""
    if not layout.get("showlegend"):
        return []
    made = [_make_series(trace) for trace in data if trace.get("name") and trace.get("showlegend", True)]
    is_reversed = layout.get("legend", {}).get("traceorder") == "reversed"
    return made[::-1] if is_reversed else made


def _make_series(trace: Json) -> Series:
    marker, line = trace.get("marker", {}), trace.get("line", {})
    colour = marker.get("color") or line.get("color") or INK
    # bars of several colours have that of the first one in the key
    colour = colour[0] if isinstance(colour, list) else colour
    symbol = "square" if trace["type"] == "bar" else marker.get("symbol", "circle")
    has_line = "lines" in trace.get("mode", "")
    return Series(
        name=trace["name"],
        colour=colour.removeprefix("@"),
        shape=SHAPES.get(symbol.removesuffix("-open")) or SHAPES.get(symbol) or SHAPES["circle"],
        is_filled=not symbol.endswith("-open"),
        dashes=DASH_LENGTHS.get(line.get("dash"), "") if has_line else None,
    )


# maps a cell's id to the address of its page
Address = Callable[[str], str]
RUNTIME: Column[Cell] = Column("Runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True))


def p50_column(times: Times, cells: Sequence[Cell]) -> Column[Cell]:
    """Make the column of p50 in ms, with the kind of time as its heading. Where the cells show different kinds,
    processor time is marked. The rows must come from `times.with_compared_time`, so that p50 is the time to show."""
    title = times.title(cells)
    return Number(
        f"{title}, ms", lambda cell: latency_entry(cell, is_marked=cell.id in times.by_processor and title != PROCESSOR)
    )


def time_column(times: Times, cells: Sequence[Cell], text: str, name: str, *, note: str) -> Column[Cell]:
    """Make the column of another time in ms. `text`: its heading; `name`: the name of the metric. Where the cells show
    different kinds of time, processor time is marked."""
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
    """Make the entry of items per second. `is_marked`: the entry says that they are of processor time."""
    return Entry(format_items_per_s(cell), cell.throughput, soft="CPU time" if is_marked else "")


def latency_entry(cell: Cell, *, is_marked: bool, has_interval: bool = False) -> Entry:
    """Make the entry of a cell's p50 in ms. `is_marked`: the entry says that it is processor time; `has_interval`: half
    of the interval follows, `± 0.002`."""
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
    """A chart with its texts and its table. `title`: the finding; `summary`: for people who cannot see the chart;
    `data` and `layout`: Plotly's, with colours as tokens of the stylesheet such as `@ink`; `empty`: why there is no
    chart, else empty; `note`: how to read the chart, shown below it; `zooms`: the reader can zoom in along x.

    `key`: the named series, empty for a chart without a key. `greys`: the grey series of a key with more than SLOTS
    series, which the page folds together; empty for a shorter key. `picture`, `room` and `json` raise KeyError for a
    figure without a chart.
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
        return list_series(self.data, self.layout)

    @property
    def greys(self) -> list[Series]:
        return [entry for entry in self.key if entry.is_grey] if len(self.key) > SLOTS else []

    @cached_property
    def _frame(self) -> Frame:
        return make_frame(self.data, self.layout)

    @property
    def picture(self) -> str:
        """Draw the inside of the SVG element that the page shows until Plotly draws, as safe HTML."""
        return draw_svg(self.name, self.data, self._frame)

    @property
    def room(self) -> str:
        """Write the sizes of the drawing in pixels as CSS properties, for a style attribute."""
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
        """Write the data for the page's script as JSON that is safe inside a script element. It has Plotly's data and
        layout; `names`, the labels of points in a wide and in a narrow window; and `rows`, the names of rows, which a
        narrow window shows `up` pixels above their rows."""
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
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def empty_figure(name: str, sentence: str, table: Table) -> Figure:
    return Figure(name=name, title=sentence, summary=sentence, data=[], layout={}, table=table, empty=sentence)


def name_column(along: Sequence[axes.Axis], address: Address, *, only: str = "") -> Column[Cell]:
    """Make the column that names cells by their settings along these axes, with a link. Without axes every name is
    `only`, or where that is empty their runtime. Cells with wrong outputs are marked."""

    def entry(cell: Cell) -> Entry:
        text = axes.name_of(cell, along) if along or not only else only
        return Entry(text, href=address(cell.id), sign=STATES[WRONG] if is_wrong(cell) else None)

    return Column("Cell", entry)


def select_right_cells(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Select the cells without wrong outputs, one of which a title may call the best. All cells where all are wrong."""
    return [cell for cell in cells if not is_wrong(cell)] or cells


def rounded_entry(value: float, decimals: int = 0) -> Entry:
    return Entry(numbers.fixed(value, decimals), value)


MAX_BARS = 40


def choose_bars(cells: Sequence[Cell], value: Callable[[Cell], float]) -> tuple[list[Cell], str]:
    """Choose the cells that get a bar, in the order given: at most MAX_BARS, at even steps of their rank by `value`.
    The second value is a sentence with a leading space that says how many cells have no bar, empty where all have
    one."""
    shown = [cells[place] for place in spread_places([value(cell) for cell in cells], most=MAX_BARS)]
    left = len(cells) - len(shown)
    return shown, f" {numbers.counted(left, 'cell')} between them are in the table only." if left else ""


def thin_places(values: Sequence[float], *, most: int) -> list[int]:
    """Choose at most `most` (≥ 4) indexes of values, ascending: the first, the last, and the lowest and highest value
    of each of several windows of equal length. All indexes where there are at most `most`."""
    count = len(values)
    if count <= most:
        return list(range(count))
    windows = (most - 2) // 2
    chosen = {0, count - 1}
    for number in range(windows):
        start, stop = number * count // windows, (number + 1) * count // windows
        chosen.add(min(range(start, stop), key=values.__getitem__))
        chosen.add(max(range(start, stop), key=values.__getitem__))
    return sorted(chosen)


def spread_places(values: Sequence[float], *, most: int) -> list[int]:
    """Choose at most `most` (≥ 2) indexes of values, ascending: the lowest and highest value, and values at even steps
    of rank between them. All indexes where there are at most `most`."""
    count = len(values)
    if count <= most:
        return list(range(count))
    ranked = sorted(range(count), key=values.__getitem__)
    return sorted({ranked[number * (count - 1) // (most - 1)] for number in range(most)})


def shorten_end(name: str, *, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def shorten_start(name: str, *, most: int) -> str:
    """Shorten a name to `most` letters by replacing its beginning with “…”, because names of nodes differ at the
    end."""
    return name if len(name) <= most else f"…{name[-most + 1 :]}"
