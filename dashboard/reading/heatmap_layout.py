"""The layout of the heat map: the row and column of each cell of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dashboard import axes
from farm.base.grouping import group_by
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting.headlines import rank_results
from farm.rules.presenting.times import Times

# a map with more than MAX_FIELDS fields is shown in parts of about PART_FIELDS fields and at least MIN_ROWS rows
MAX_FIELDS, PART_FIELDS, MIN_ROWS = 100, 60, 4
# the cells of a row, by the label of their column
CellsByColumn = Mapping[str, Sequence[Cell]]
# the labels of a row with its cells
LayoutRow = tuple[tuple[str, ...], CellsByColumn]


@dataclass(frozen=True)
class Layout:
    """The row and column of every cell of a run. A layout does not depend on the metric that colours the map.

    `choices`: the axes that vary; `heads`: the labels of the columns; `rows`: the labels of each row with its cells, in
    a large map the largest slowdowns first; `compared`: the comparisons in which a cell is the candidate, by its id;
    `is_large`: more than MAX_FIELDS fields, in more than MIN_ROWS rows.
    """

    cells: Sequence[Cell]
    choices: Sequence[axes.Axis]
    column_axis: axes.Axis
    row_axes: Sequence[axes.Axis]
    heads: Sequence[str]
    rows: Sequence[LayoutRow]
    by_id: Mapping[str, Cell]
    compared: Mapping[str, Sequence[Comparison]]
    times: Times

    @property
    def is_large(self) -> bool:
        return len(self.rows) * len(self.heads) > MAX_FIELDS and len(self.rows) > MIN_ROWS


def make_layout(cells: Iterable[Cell], comparisons: Sequence[Comparison], *, columns: str = "") -> Layout:
    """Lay out the cells in rows and columns, with rows that have something to show first. A/A twins are left out.

    `columns`: the name of the axis for the columns. Where that axis does not vary, the columns are along the axis of
    the comparison that the headline names, else the runtime, else the last axis that varies, else again the runtime.
    """
    shown = [cell for cell in cells if cell.twin_of is None]
    choices = axes.varying_axes(shown)
    leading = rank_results(comparisons, {cell.id: cell for cell in shown}).axis
    column_axis = _choose_column_axis(choices, columns, leading)
    row_axes = [axis for axis in choices if axis != column_axis]
    groups: dict[tuple[str, ...], dict[str, list[Cell]]] = {}
    for cell in shown:
        groups.setdefault(axes.place_of(cell, row_axes), {}).setdefault(column_axis.label(cell), []).append(cell)

    def has_cells_to_show(row: LayoutRow) -> bool:
        return any(cell.reason is None or cell.p50_ms is not None for cells in row[1].values() for cell in cells)

    rows = [(labels, groups[labels]) for labels in axes.places(shown, row_axes)]
    layout = Layout(
        cells=shown,
        choices=choices,
        column_axis=column_axis,
        row_axes=row_axes,
        heads=[place[0] for place in axes.places(shown, [column_axis])],
        rows=sorted(rows, key=has_cells_to_show, reverse=True),
        by_id={cell.id: cell for cell in shown},
        compared=group_by(comparisons, lambda comparison: comparison.candidate),
        times=Times.of(shown, comparisons),
    )
    return replace(layout, rows=_sort_rows(layout)) if layout.is_large else layout


def _sort_rows(layout: Layout) -> list[LayoutRow]:
    """Sort the rows by their largest slowdown along the columns; rows without one keep their order at the end."""
    axis = layout.column_axis.name

    def slowdown(row: LayoutRow) -> float:
        cells = [cell for group in row[1].values() for cell in group]
        pairs = [pair for cell in cells for pair in layout.compared.get(cell.id, ())]
        return max((pair.ratio or 1.0 for pair in pairs if pair.axis == axis and pair.verdict == "slower"), default=0.0)

    return sorted(layout.rows, key=slowdown, reverse=True)


def _choose_column_axis(choices: Sequence[axes.Axis], *names: str) -> axes.Axis:
    """Choose the first of the named axes that varies, else the runtime if it varies, else the last axis that does."""
    named = {axis.name: axis for axis in choices}
    last = choices[-1] if choices else axes.BY_NAME["runtime"]
    return next((named[name] for name in (*names, "runtime") if name in named), last)
