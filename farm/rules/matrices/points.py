"""From a matrix to its points: the product of the axes, then `exclude`, then `include`, as GitHub Actions does it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from farm.rules.cells.values import Value, words_of
from farm.rules.matrices.matrix import Matrix, Selector, kept_points, slice_of


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
    if not matrix.axes and matrix.include:
        kept, number_of, excluded = [], np.empty((0,), dtype=np.intp), 0
    else:
        mask = kept_points(matrix)
        kept = [_point(matrix, places) for places in np.argwhere(mask).tolist()]
        number_of = np.where(mask, np.cumsum(mask).reshape(mask.shape) - 1, -1)
        excluded = int(mask.size - mask.sum())
    scale = {name: list(values) for name, values in matrix.axes.items()}
    alone: list[Point] = []
    for entry in matrix.include:
        fitting = number_of[slice_of(matrix, entry)].ravel() if matrix.axes else number_of
        fitting = fitting[fitting >= 0]
        for number in fitting.tolist():
            kept[number] = _added(entry, kept[number], scale)
        if not len(fitting):
            alone.append(_added(entry, Point({}, {}), scale))
    return Expansion(points=(*kept, *alone), excluded=excluded)


def _point(matrix: Matrix, places: list[int]) -> Point:
    positions = dict(zip(matrix.axes, places, strict=True))
    return Point({name: matrix.axes[name][place] for name, place in positions.items()}, positions)


def _added(entry: Selector, point: Point, scale: dict[str, list[Value]]) -> Point:
    """The point with the entry's values; a value that its axis did not have is appended to the axis."""
    values, positions = dict(point.values), dict(point.positions)
    for axis, value in entry.items():
        on_axis = scale.setdefault(axis, [])
        if value not in on_axis:
            on_axis.append(value)
        if axis not in point.values or point.values[axis] != value:
            values[axis], positions[axis] = value, on_axis.index(value)
    return Point(values, positions)
