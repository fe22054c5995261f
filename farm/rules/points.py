"""From a matrix to its points: the product of the axes, then `exclude`, then `include`, as GitHub Actions does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from farm.rules.axes import AXES, Value
from farm.rules.matrix import Matrix, Selector, is_excluded


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
        return {axis: AXES[axis].label(value) for axis, value in self.values.items()}


@dataclass(frozen=True, slots=True)
class Expansion:
    """The points of a matrix in order, and how many were excluded."""

    points: tuple[Point, ...]
    excluded: int


def expand(matrix: Matrix) -> Expansion:
    """Every point of the matrix; the last declared axis varies fastest.

    An `include` entry is added to each point of the product whose declared values it does not change; where it fits
    none, it is a point of its own.
    """
    kept, excluded = _products(matrix)
    scale = {name: list(values) for name, values in matrix.axes.items()}
    alone: list[Point] = []
    for entry in matrix.include:
        fitting = [point for point in kept if _fits(entry, point, matrix)]
        if fitting:
            kept = [_added(entry, point, scale) if point in fitting else point for point in kept]
        else:
            alone.append(_added(entry, Point({}, {}), scale))
    return Expansion(points=(*kept, *alone), excluded=excluded)


def _products(matrix: Matrix) -> tuple[list[Point], int]:
    if not matrix.axes:
        return ([] if matrix.include else [Point({}, {})]), 0
    names = list(matrix.axes)
    kept: list[Point] = []
    excluded = 0
    for places in product(*(range(len(values)) for values in matrix.axes.values())):
        values = {name: matrix.axes[name][place] for name, place in zip(names, places, strict=True)}
        if is_excluded(matrix, values):
            excluded += 1
        else:
            kept.append(Point(values, dict(zip(names, places, strict=True))))
    return kept, excluded


def _fits(entry: Selector, point: Point, matrix: Matrix) -> bool:
    return all(point.values[axis] == value for axis, value in entry.items() if axis in matrix.axes)


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
