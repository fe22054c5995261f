"""Expands a matrix into its points: the product of the axes, `exclude` and `include`, as GitHub Actions does it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farm.contract.cells import Budget, Runtime
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.values import Value, comparison_key, format_value
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.product import Product
from farm.rules.runtimes.order import release_order

Positions = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values, with a value and a position for each axis that it sets."""

    values: Mapping[str, Value]
    # the index of each value on its axis, which tells equal values apart
    positions: Mapping[str, int]

    @property
    def labels(self) -> dict[str, str]:
        return {axis: format_value(value) for axis, value in self.values.items()}


@dataclass(frozen=True, slots=True)
class Expansion:
    """The points of a matrix in order, and how many points of the product `exclude` took away."""

    points: tuple[Point, ...]
    excluded: int


def expand(matrix: Matrix) -> Expansion:
    """List every point of the matrix: those of the product, of which the last axis varies fastest, then the others.

    The values of an `include` entry are added to each remaining point of the product that agrees with its declared
    axes; of two entries the later one counts. An entry that fits no such point becomes a point of its own, and so does
    each entry where the matrix has no axes. A matrix with neither has one point, without values.
    """
    product = Product(matrix.axes)
    scale = _Scale(matrix, product)
    remaining = product.mark_remaining(matrix.exclude)
    if has_no_product := not matrix.axes and bool(matrix.include):
        remaining[...] = False
    # the position of each point of the product on axes that the matrix does not declare; -1 where it has none
    added: dict[str, NDArray[np.intp]] = {}
    alone: list[Point] = []
    for entry in matrix.include:
        fitting = product.index_of(entry)
        if not remaining[fitting].any():
            alone.append(scale.point({axis: scale.place(axis, value) for axis, value in entry.items()}))
            continue
        for axis, value in entry.items():
            if axis not in matrix.axes:
                places = added.setdefault(axis, np.full(remaining.shape, -1, dtype=np.intp))
                places[fitting] = scale.place(axis, value)
    declared = np.argwhere(remaining)
    columns = [*declared.T, *(places[remaining] for places in added.values())]
    rows = np.stack(columns, axis=1).tolist() if columns else declared.tolist()
    axes = (*matrix.axes, *added)
    points = [scale.point({axis: at for axis, at in zip(axes, row, strict=True) if at >= 0}) for row in rows]
    return Expansion(points=(*points, *alone), excluded=0 if has_no_product else int(remaining.size - remaining.sum()))


class _Scale:
    """The values of each axis by their places. A value that its axis does not have yet is appended."""

    def __init__(self, matrix: Matrix, product: Product) -> None:
        self._values = {name: list(values) for name, values in matrix.axes.items()}
        self._places = {
            name: {key: places[0] for key, places in found.items()} for name, found in product.places.items()
        }

    def place(self, axis: str, value: Value) -> int:
        """Return the place of the value on the axis, the first of several; a new value is appended."""
        places, values = self._places.setdefault(axis, {}), self._values.setdefault(axis, [])
        if (key := comparison_key(value)) not in places:
            places[key] = len(values)
            values.append(value)
        return places[key]

    def point(self, positions: dict[str, int]) -> Point:
        return Point({axis: self._values[axis][place] for axis, place in positions.items()}, positions)


def explain_unpairable(matrix: Matrix) -> str | None:
    """Say in one sentence that the budget glance, or the opset max-of-runtime, compares no releases; None otherwise.

    It does not look at how many releases the matrix has.
    """
    if matrix.budget is Budget.GLANCE:
        return "The budget glance launches each cell once and compares nothing: take quick, standard or precise."
    wanted = [*matrix.axes.get("opset", ()), *(rule.get("opset") for rule in matrix.include)]
    if "max-of-runtime" not in wanted:
        return None
    return (
        "opset max-of-runtime gives each release a model of its own, so that nothing could be compared: write the "
        "opset as a number, or leave it out."
    )


def replace_runtimes(matrix: Matrix, runtimes: Sequence[Runtime], *, hardware: Sequence[str] = ()) -> Matrix:
    """Return a copy of the matrix with these runtimes in release order, so that the older one is the baseline.

    A runtime that is given twice is kept once. `hardware` replaces that axis unless it is empty. Entries of `exclude`
    and `include` that name a replaced axis are dropped.
    """
    axes: dict[str, tuple[Value, ...]] = dict(matrix.axes)
    ordered: list[Runtime] = sorted(dict.fromkeys(runtimes), key=lambda runtime: release_order(runtime.version))
    axes["runtime"] = tuple(ordered)
    if hardware:
        axes["hardware"] = tuple(dict.fromkeys(hardware))
    changed = {"runtime", *(("hardware",) if hardware else ())}
    return replace(
        matrix,
        axes=axes,
        exclude=tuple(rule for rule in matrix.exclude if not changed & rule.keys()),
        include=tuple(rule for rule in matrix.include if not changed & rule.keys()),
    )


def point_at(matrix: Matrix, positions: Positions) -> Point:
    """Find the point of the matrix at these positions. Raises LookupError when there is none."""
    # positions may also name the model among those measured together, which is not an axis of the matrix
    wanted = {axis: place for axis, place in positions.items() if axis in MATRIX_AXES}
    for point in expand(matrix).points:
        if dict(point.positions) == wanted:
            return point
    raise LookupError(f"The matrix has no point at {dict(positions)}.")


def narrow_matrix(
    matrix: Matrix, positions: Sequence[Positions], *, runtimes: Sequence[Runtime], hardware: Sequence[str] = ()
) -> Matrix:
    """Build a matrix with only the values that the points at these positions have, and with these runtimes.

    Because axes are multiplied, the result may have more points than were asked for. `include` entries are dropped, and
    so are axes that one of the points lacks. An `exclude` entry stays where all of its values do and it names no
    runtime, nor hardware where that is given. Raises LookupError where the matrix has no point at one of the positions.
    """
    points = [point_at(matrix, places) for places in positions]
    axes: dict[str, tuple[Value, ...]] = {}
    for axis in MATRIX_AXES:
        values: list[Value] = []
        for point in points:
            if axis in point.values and point.values[axis] not in values:
                values.append(point.values[axis])
        if values and all(axis in point.values for point in points):
            axes[axis] = tuple(values)
    left = tuple(rule for rule in matrix.exclude if all(value in axes.get(axis, ()) for axis, value in rule.items()))
    return replace_runtimes(replace(matrix, axes=axes, exclude=left, include=()), runtimes, hardware=hardware)
