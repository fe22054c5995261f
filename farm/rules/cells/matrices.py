"""Builds the matrix that declares given cells and no others, which people copy to measure them again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, TypeVar

from farm.contract.cells import CellSpec, SessionSettings
from farm.rules.cells.axes import AXES, MATRIX_AXES
from farm.rules.cells.session_sets import DEFAULT, OPTIONS, SessionSet, session_set_of
from farm.rules.cells.values import Value, to_plain

# the default of each axis, which a matrix need not write
_DEFAULTS: Mapping[str, object] = {axis.name: axis.default for axis in AXES} | {"session": DEFAULT}

Point = Mapping[str, Value]
# the keys of a matrix file under `matrix`: values by axis, and `include`
PlainMatrix = dict[str, list[object]]
# settings of a run that decide the results of its cells
_RUN_SETTINGS = ("inputs", "tolerance")
T = TypeVar("T")


def build_matrix(cells: Sequence[CellSpec], *, names: Mapping[str, str] | None = None) -> PlainMatrix:
    """Build axes whose product is exactly these cells, or else list each cell in `include`.

    `names` has names for session sets, by the digests of cells; other sets are called `session-1` and so on. Inputs,
    tolerances, calibration data and the seed are not axes and are left out.
    """
    sets = _make_session_sets(cells, names or {})
    full_points = _distinct({**axis_values(cell), "session": sets[_make_key(cell.session)]} for cell in cells)
    # an axis on which every cell has the default is left out
    axes = [axis for axis in MATRIX_AXES if any(axis in p and p[axis] != _DEFAULTS.get(axis) for p in full_points)]
    points = [{axis: point[axis] for axis in axes if axis in point} for point in full_points]
    declared = {axis: _distinct(point[axis] for point in points if axis in point) for axis in axes}
    declared_points = (dict(zip(declared, values, strict=True)) for values in product(*declared.values()))
    if prod(map(len, declared.values())) == len(points) and all(point in points for point in declared_points):
        return {axis: [to_plain(value) for value in values] for axis, values in declared.items()}
    return {"include": [{axis: to_plain(value) for axis, value in point.items()} for point in points]}


def merge_settings(matrices: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, object]]:
    """Merge the inputs and tolerances of matrices; where two name the same input or output, the first wins.

    The result has the keys `inputs` and `tolerance`, each only where a matrix has it.
    """
    merged: dict[str, dict[str, object]] = {}
    for matrix in matrices:
        for key in (key for key in _RUN_SETTINGS if matrix.get(key)):
            merged[key] = {**matrix[key], **merged.get(key, {})}
    return merged


def axis_values(cell: CellSpec) -> dict[str, Value]:
    """Return a cell's values by name of axis, except those that a matrix need not write, such as usual hardware."""
    values = ((name, axis.value_in(cell)) for name, axis in MATRIX_AXES.items())
    return {name: value for name, value in values if value is not None}


def _make_session_sets(cells: Iterable[CellSpec], names: Mapping[str, str]) -> dict[str, SessionSet]:
    """Make a session set for each different one among the cells, by `_make_key`, under a name that no other has."""
    sets: dict[str, SessionSet] = {}
    for cell in cells:
        options = session_set_of(cell.session, name=DEFAULT.name)
        taken = {DEFAULT.name, *(other.name for other in sets.values())}
        candidates = (names.get(cell.digest, ""), *(f"session-{number}" for number in range(1, len(taken) + 1)))
        free_name = next(name for name in candidates if name and name not in taken)
        name = DEFAULT.name if options == DEFAULT else free_name
        sets.setdefault(_make_key(cell.session), replace(options, name=name))
    return sets


def _make_key(session: SessionSettings) -> str:
    return session.model_dump_json(include=OPTIONS)


def _distinct(values: Iterable[T]) -> list[T]:
    distinct: list[T] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return distinct
