"""What cells are called: by the axes along which they differ, or by what does not go without saying. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence

from farm.contract.document_cells import Cell
from farm.rules.cells.axes import AXES, BY_NAME, Axis

# what a cell is measured with, as one says it: what runs what comes first
_FIRST = ("provider", "precision")
_APART = ("model", "opset", "runtime")
_SETTINGS = [axis for axis in AXES if axis.is_setting and axis.name not in _APART]
WORKLOAD = tuple(sorted(_SETTINGS, key=lambda axis: axis.name not in _FIRST))


def varying_axes(cells: Iterable[Cell]) -> list[Axis]:
    """The axes along which these cells differ, in the order of AXES, without those that follow from others."""
    cells = list(cells)
    found = [axis for axis in AXES if len({axis.label(cell) for cell in cells}) > 1]
    return [axis for axis in found if not _is_implied(axis, cells)]


def label_along(cell: Cell, axes: Sequence[Axis]) -> str:
    """A cell by its places on axes: `CPU · batch 8 · int8-dynamic`; its runtime where none are given."""
    return " · ".join(axis.label(cell) for axis in axes) or BY_NAME["runtime"].label(cell)


def describe_cell(cell: Cell, axes: Iterable[Axis], *, without: Collection[str] = ()) -> str:
    """A cell by what does not go without saying along the axes: `CPU, batch 8, fp32, 1 thread`."""
    return ", ".join(axis.label(cell) for axis in axes if axis.name not in without and not axis.is_default(cell))


def workload_label(cell: Cell, *, without: str = "") -> str:
    return describe_cell(cell, WORKLOAD, without=(without,))


def series_label(cell: Cell) -> str:
    """As `workload_label`, with the whole recipe, by which series of one precision are told apart."""
    known = [
        cell.recipe or axis.label(cell) if axis.name == "precision" else axis.label(cell)
        for axis in WORKLOAD
        if not axis.is_default(cell)
    ]
    return ", ".join(known)


def _is_implied(axis: Axis, cells: Sequence[Cell]) -> bool:
    """Whether an axis says nothing of its own: hardware that follows from the provider, a node from the hardware.

    A refused point has no node: that alone makes no axis.
    """
    if axis.name == "node":
        ran = [cell for cell in cells if cell.node]
        return len({cell.node for cell in ran}) <= 1 or _follows(ran, lambda c: c.hardware, lambda c: c.node)
    return axis.name == "hardware" and _follows(cells, lambda c: c.provider, lambda c: c.hardware)


def _follows(cells: Sequence[Cell], known: Callable[[Cell], object], other: Callable[[Cell], object]) -> bool:
    return len({(known(cell), other(cell)) for cell in cells}) == len({known(cell) for cell in cells})
