"""Narrower matrices from a wider one: some of its points, with other runtimes, on one node or several."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.contract.cells import Budget, Runtime
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.values import Value
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Point, expand
from farm.rules.runtimes.order import release_order

Positions = Mapping[str, int]


def unpaired_sentence(matrix: Matrix) -> str | None:
    """Why releases could not be compared in this matrix, in one sentence; None where they can."""
    if matrix.budget is Budget.GLANCE:
        return "The budget glance launches each cell once and compares nothing: take quick, standard or precise."
    wanted = [*matrix.axes.get("opset", ()), *(rule.get("opset") for rule in matrix.include)]
    if "max-of-runtime" not in wanted:
        return None
    return (
        "opset max-of-runtime gives each release a model of its own, so that nothing could be compared: write the "
        "opset as a number, or leave it out."
    )


def with_runtimes(matrix: Matrix, runtimes: Sequence[Runtime], *, hardware: Sequence[str] = ()) -> Matrix:
    """The matrix with these runtimes in release order, so that each comparison's baseline is the older one.

    `hardware` replaces that axis when given. Rules that name the runtime no longer mean anything and go.
    """
    axes: dict[str, tuple[Value, ...]] = dict(matrix.axes)
    ordered: list[Runtime] = sorted(dict.fromkeys(runtimes), key=lambda one: release_order(one.version))
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
    """The point of the matrix that stands at these positions. Raises LookupError when there is none."""
    # the place among models that are measured together is none of the matrix
    wanted = {axis: place for axis, place in positions.items() if axis in MATRIX_AXES}
    for point in expand(matrix).points:
        if dict(point.positions) == wanted:
            return point
    raise LookupError(f"The matrix has no point at {dict(positions)}.")


def narrowed(
    matrix: Matrix, positions: Sequence[Positions], *, runtimes: Sequence[Runtime], hardware: Sequence[str] = ()
) -> Matrix:
    """The smallest product that holds the given points, measured with these runtimes.

    It may hold further points of the matrix. Excluded ones stay out where their values are all still there.
    """
    points = [point_at(matrix, one) for one in positions]
    axes: dict[str, tuple[Value, ...]] = {}
    for axis in MATRIX_AXES:
        values: list[Value] = []
        for point in points:
            if axis in point.values and point.values[axis] not in values:
                values.append(point.values[axis])
        if values and all(axis in point.values for point in points):
            axes[axis] = tuple(values)
    left = tuple(rule for rule in matrix.exclude if all(value in axes.get(axis, ()) for axis, value in rule.items()))
    return with_runtimes(replace(matrix, axes=axes, exclude=left, include=()), runtimes, hardware=hardware)
