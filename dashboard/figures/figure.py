"""What a figure is: a finding as its title, a summary for those who cannot see it, the drawing, and its numbers."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard import axes
from dashboard.figures import keys
from dashboard.figures.theme import SLOTS, Json
from farm.contract.document_cells import Cell
from farm.rules.presenting.lines import is_wrong
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import STATES, WRONG

# from a cell's id to its page
Address = Callable[[str], str]
RUNTIME: Column[Cell] = Column("Runtime", lambda cell: Entry(titles.runtime(cell.runtime), is_name=True))
P50: Column[Cell] = Number(
    "p50, ms", lambda cell: Entry(numbers.milliseconds(cell.p50_ms, cell.p50_ci_ms), cell.p50_ms)
)
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
    def key(self) -> list[keys.Entry]:
        """Which line or bar is what; empty for a figure that says so itself."""
        return keys.entries(self.data, self.layout)

    @property
    def greys(self) -> list[keys.Entry]:
        """Those of the key that have no colour of their own, where there are more series than colours."""
        return [entry for entry in self.key if entry.is_grey] if len(self.key) > SLOTS else []

    @property
    def json(self) -> str:
        """The drawing for the page's script, safe inside a script element."""
        # the page draws the key itself
        layout: Json = {**self.layout, "showlegend": False}
        return script_json({"data": self.data, "layout": layout})


def script_json(content: object) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def nothing(name: str, sentence: str, table: Table) -> Figure:
    """A figure that cannot be drawn yet, with the sentence that stands in its place."""
    return Figure(name=name, title=sentence, summary=sentence, data=[], layout={}, table=table, empty=sentence)


def name_column(along: Sequence[axes.Axis], address: Address, *, only: str = "") -> Column[Cell]:
    """What tells cells apart, with a link; where there is nothing to tell them by, `only`, or else the runtime. Wrong
    outputs are marked beside it."""

    def entry(cell: Cell) -> Entry:
        text = axes.name_of(cell, along) if along or not only else only
        return Entry(text, href=address(cell.id), sign=STATES[WRONG] if is_wrong(cell) else None)

    return Column("Cell", entry)


def rounded(value: float, decimals: int = 0) -> Entry:
    """A figure with so many decimals, sortable by itself."""
    return Entry(numbers.fixed(value, decimals), value)
