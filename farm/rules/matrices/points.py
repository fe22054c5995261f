"""From a matrix to its points: the product of the axes, then `exclude`, then `include`, as GitHub Actions does it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farm.rules.cells.values import Value, key_of, words_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.product import Product


@dataclass(frozen=True, slots=True)
class Point:
    """One combination. `positions`: where each of its values stands on its axis, which tells equal values apart.

    `values` and `positions` have the same keys: the axes that this point sets.
    """

    values: Mapping[str, Value]
    positions: Mapping[str, int]

    @property
    def labels(self) -> dict[str, str]:
        """The values in words."""
        return {axis: words_of(value) for axis, value in self.values.items()}


@dataclass(frozen=True, slots=True)
class Expansion:
    """The points of a matrix in order, and how many were excluded."""

    points: tuple[Point, ...]
    excluded: int


def expand(matrix: Matrix) -> Expansion:
    """Every point of the matrix; the last axis varies fastest.

    An `include` entry is added to each point of the product whose declared values it does not change; where it fits
    none, it is a point of its own.
    """
    product = Product(matrix.axes)
    scale = _Scale(matrix, product)
    kept = product.without(matrix.exclude)
    if has_no_product := not matrix.axes and bool(matrix.include):
        kept[...] = False
    # where each point of the product stands on an axis that the matrix does not declare, -1: nowhere
    added: dict[str, NDArray[np.intp]] = {}
    alone: list[Point] = []
    for entry in matrix.include:
        fitting = product.index_of(entry)
        if not kept[fitting].any():
            alone.append(scale.point({axis: scale.place(axis, value) for axis, value in entry.items()}))
            continue
        for axis, value in entry.items():
            if axis not in matrix.axes:
                places = added.setdefault(axis, np.full(kept.shape, -1, dtype=np.intp))
                places[fitting] = scale.place(axis, value)
    declared = np.argwhere(kept)
    columns = [*declared.T, *(places[kept] for places in added.values())]
    rows = np.stack(columns, axis=1).tolist() if columns else declared.tolist()
    axes = (*matrix.axes, *added)
    points = [scale.point({axis: at for axis, at in zip(axes, row, strict=True) if at >= 0}) for row in rows]
    return Expansion(points=(*points, *alone), excluded=0 if has_no_product else int(kept.size - kept.sum()))


class _Scale:
    """The values of each axis by place; one that its axis did not have is appended to it."""

    def __init__(self, matrix: Matrix, product: Product) -> None:
        self._values = {name: list(values) for name, values in matrix.axes.items()}
        self._places = {
            name: {key: places[0] for key, places in found.items()} for name, found in product.places.items()
        }

    def place(self, axis: str, value: Value) -> int:
        """Where the value stands on the axis, the first time."""
        places, values = self._places.setdefault(axis, {}), self._values.setdefault(axis, [])
        if (key := key_of(value)) not in places:
            places[key] = len(values)
            values.append(value)
        return places[key]

    def point(self, positions: dict[str, int]) -> Point:
        """The point at these places."""
        return Point({axis: self._values[axis][place] for axis, place in positions.items()}, positions)
