"""The axes along which pages lay out cells, and the place of a cell along several axes."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from farm.contract.document_cells import Cell
from farm.rules.cells.axes import AXES, BY_NAME, Axis, runtime_sort_key
from farm.rules.cells.label import label_along as name_of
from farm.rules.cells.label import varying_axes

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

__all__ = ["AXES", "BY_NAME", "Axis", "name_of", "place_of", "places", "runtime_sort_key", "varying_axes"]


def places(cells: Iterable[Cell], axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    """List the distinct places of the cells, each as a tuple with a label for every axis. Places are sorted by the
    first axis, then the next, in each axis's own order."""
    orders: dict[tuple[str, ...], tuple[SupportsRichComparison, ...]] = {}
    for cell in cells:
        orders.setdefault(place_of(cell, axes), tuple(axis.sort_key(cell) for axis in axes))
    return sorted(orders, key=lambda place: orders[place])


def place_of(cell: Cell, axes: Sequence[Axis]) -> tuple[str, ...]:
    return tuple(axis.label(cell) for axis in axes)
