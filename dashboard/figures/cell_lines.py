"""Charts with a line for each cell. Lines are named by the settings that differ, or where none does by their runtime,
and points link to their cell."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from dashboard import axes
from dashboard.figures import colours, theme, traces
from dashboard.figures.figure import Address, Figure
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.presenting.tables import Column, Entry, Table
from farm.rules.wording import titles

Row = TypeVar("Row")


@dataclass(frozen=True)
class Placed(Generic[Row]):
    """A row of a cell's own table, with its cell."""

    cell: Cell
    row: Row


@dataclass(frozen=True)
class Curve(Generic[Row]):
    """How a cell's data become a line: `rows_of` returns its rows, `x` and `y` the place of a row. `columns`: of the
    chart's table; `hover`: Plotly's template of the text on hover."""

    name: str
    caption: str
    rows_of: Callable[[Cell], Sequence[Row]]
    x: Callable[[Row], float]
    y: Callable[[Row], float]
    hover: str
    columns: Sequence[Column[Row]]


@dataclass(frozen=True)
class CellLines:
    """The lines of these cells. `address`: links a cell by its id; None on a cell's own page. `columns` puts a column
    with the cell's name first, unless there is only one cell (`is_alone`); `rows` lists the rows of all cells, cell by
    cell."""

    cells: Sequence[Cell]
    address: Address | None = None

    @property
    def is_alone(self) -> bool:
        return len(self.cells) == 1

    def name(self, cell: Cell) -> str:
        return axes.name_of(cell, self._along) if self._along else titles.runtime(cell.runtime)

    def figure(
        self,
        curve: Curve[Row],
        *,
        title: str,
        summary: str,
        xaxis: theme.Json,
        yaxis: theme.Json,
        height: int = 240,
        note: str = "",
        **layout: object,
    ) -> Figure:
        """Draw a line for each cell, with a table of all rows and, for several cells, a key. `height`: in pixels;
        `layout`: further attributes of Plotly's layout."""
        return Figure(
            name=curve.name,
            title=title,
            summary=summary,
            data=[self._curve(curve, cell) for cell in self.cells],
            layout=theme.make_layout(height=height, xaxis=xaxis, yaxis=yaxis, showlegend=not self.is_alone, **layout),
            table=Table.of(curve.name, curve.caption, self.columns(curve.columns), self.rows(curve.rows_of)),
            note=note,
        )

    def _curve(self, curve: Curve[Row], cell: Cell) -> theme.Json:
        rows = curve.rows_of(cell)
        return self.line(cell, map(curve.x, rows), map(curve.y, rows), hover=curve.hover)

    def line(
        self, cell: Cell, x: Iterable[object], y: Iterable[float], *, hover: str, name: str = "", dash: str = ""
    ) -> theme.Json:
        """Draw the line of a cell with its points. Lines from the eighth cell on are grey. `name`: replaces the cell's
        name in the key."""
        colour = self._colour_of(cell) if self.cells.index(cell) < theme.SLOTS else colours.GREY
        heights = [*y]
        return traces.make_line(
            x,
            heights,
            colour,
            mark=colours.cell_mark(cell),
            hover=hover if self.is_alone else f"%{{fullData.name}}<br>{hover}",
            customdata=[self.address(cell.id)] * len(heights) if self.address else [],
            name=name or self.name(cell),
            dash=dash,
        )

    def rows(self, of: Callable[[Cell], Iterable[Row]]) -> list[Placed[Row]]:
        return [Placed(cell, row) for cell in self.cells for row in of(cell)]

    def columns(self, columns: Iterable[Column[Row]]) -> tuple[Column[Placed[Row]], ...]:
        own = [place_column(column) for column in columns]
        return tuple(own) if self.is_alone else (Column("Cell", self._named), *own)

    def _named(self, placed: Placed[Row]) -> Entry:
        href = self.address(placed.cell.id) if self.address else ""
        return Entry(self.name(placed.cell), href=href)

    @cached_property
    def _along(self) -> Sequence[axes.Axis]:
        return axes.varying_axes(self.cells)

    @cached_property
    def _colour_of(self) -> Callable[[Cell], str]:
        return colours.choose_cell_colour(self.cells)


def read_metric(key: str) -> Callable[[CellPhase], float]:
    return lambda phase: phase.metrics[key]


def single_line(cell: Cell, x: Iterable[object], y: Iterable[float], *, hover: str) -> theme.Json:
    return traces.make_line(x, y, colours.runtime_colour(cell.runtime), name=titles.runtime(cell.runtime), hover=hover)


def place_column(column: Column[Row]) -> Column[Placed[Row]]:
    """Make the same column for rows of several cells."""

    def entry(placed: Placed[Row]) -> Entry:
        return column.entry(placed.row)

    return type(column)(column.text, entry, note=column.note)  # type: ignore[arg-type,return-value]
