"""Columns that several tables of cells have: what a cell is called, its runtime, its latency and how sure that is."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures.figure import Address
from farm.contract.document_cells import Cell
from farm.rules.presenting.lines import is_wrong
from farm.rules.presenting.tables import Column, Entry, Number
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import STATES, WRONG

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


def name(along: Sequence[axes.Axis], address: Address, *, only: str = "") -> Column[Cell]:
    """What tells cells apart, with a link; where there is nothing to tell them by, `only`, or else the runtime. Wrong
    outputs are marked beside it."""

    def entry(cell: Cell) -> Entry:
        text = axes.name_of(cell, along) if along or not only else only
        return Entry(text, href=address(cell.id), sign=STATES[WRONG] if is_wrong(cell) else None)

    return Column("Cell", entry)


def rounded(value: float, decimals: int = 0) -> Entry:
    """A figure with so many decimals, sortable by itself."""
    return Entry(numbers.fixed(value, decimals), value)
