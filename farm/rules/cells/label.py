"""Names cells by the axes along which they differ, or by their values that are no defaults."""

from collections.abc import Callable, Collection, Iterable, Sequence

from farm.contract.document_cells import Cell
from farm.rules.cells.axes import AXES, BY_NAME, Axis

# the axes of a workload in the order of a label: provider and precision come first
_FIRST = ("provider", "precision")
_NOT_WORKLOAD = ("model", "opset", "runtime")
_SETTINGS = [axis for axis in AXES if axis.is_setting and axis.name not in _NOT_WORKLOAD]
WORKLOAD = tuple(sorted(_SETTINGS, key=lambda axis: axis.name not in _FIRST))


def varying_axes(cells: Iterable[Cell]) -> list[Axis]:
    """List the axes along which these cells differ, in the order of AXES.

    Hardware is left out where the provider determines it, and the node where the hardware does.
    """
    cells = list(cells)
    varying = [axis for axis in AXES if len({axis.label(cell) for cell in cells}) > 1]
    return [axis for axis in varying if not _is_implied(axis, cells)]


def label_along(cell: Cell, axes: Sequence[Axis]) -> str:
    """Name a cell by its values on these axes: `CPU · batch 8 · int8-dynamic`; without axes by its runtime."""
    return " · ".join(axis.label(cell) for axis in axes) or BY_NAME["runtime"].label(cell)


def describe_cell(cell: Cell, axes: Iterable[Axis], *, without: Collection[str] = ()) -> str:
    """Name a cell by its values on these axes, without default values: `CPU, batch 8, fp32, 1 thread`.

    `without` has the names of axes to leave out. Empty where no value remains.
    """
    return ", ".join(axis.label(cell) for axis in axes if axis.name not in without and not axis.is_default(cell))


def workload_label(cell: Cell, *, without: str = "") -> str:
    return describe_cell(cell, WORKLOAD, without=(without,))


def series_label(cell: Cell) -> str:
    """Name a cell as `workload_label` does, but with its full recipe, so that series of one precision differ."""
    parts = [
        cell.recipe or axis.label(cell) if axis.name == "precision" else axis.label(cell)
        for axis in WORKLOAD
        if not axis.is_default(cell)
    ]
    return ", ".join(parts)


def _is_implied(axis: Axis, cells: Sequence[Cell]) -> bool:
    """Whether an axis adds nothing: hardware that the provider determines, or a node that the hardware determines.

    Refused points have no node; they do not make the node an axis.
    """
    if axis.name == "node":
        on_nodes = [cell for cell in cells if cell.node]
        nodes = {cell.node for cell in on_nodes}
        return len(nodes) <= 1 or _determines(lambda c: c.hardware, lambda c: c.node, on_nodes)
    return axis.name == "hardware" and _determines(lambda c: c.provider, lambda c: c.hardware, cells)


def _determines(known: Callable[[Cell], object], other: Callable[[Cell], object], cells: Sequence[Cell]) -> bool:
    return len({(known(cell), other(cell)) for cell in cells}) == len({known(cell) for cell in cells})
