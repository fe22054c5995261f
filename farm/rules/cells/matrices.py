"""A matrix of chosen cells and of no others: what people copy to measure them again, or somewhere else. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, TypeVar

from farm.contract.cells import CellSpec, SessionSettings
from farm.rules.cells.axes import AXES, MATRIX_AXES
from farm.rules.cells.session_sets import DEFAULT, OPTIONS, SessionSet, session_set_of
from farm.rules.cells.values import Value, plain_of

# what goes without saying
_PLAIN: Mapping[str, object] = {axis.name: axis.default for axis in AXES} | {"session": DEFAULT}

Point = Mapping[str, Value]
# the keys of a matrix file under `matrix`: values by axis, and `include`
PlainMatrix = dict[str, list[object]]
# settings of a run that decide what comes of a cell
_OF_CELLS = ("inputs", "tolerance")
T = TypeVar("T")


def matrix_of(cells: Sequence[CellSpec], *, names: Mapping[str, str] | None = None) -> PlainMatrix:
    """Axes whose product is these cells; where it would hold others too, each cell by itself under `include`.

    `names`: of their session sets, by the digest of the cell. What is made for inputs and a tolerance are settings of
    the run; given inputs, calibration data and the seed are the model's and the run's.
    """
    sets = _session_sets(cells, names or {})
    points = _without_defaults(_distinct({**point_of(cell), "session": sets[_key(cell.session)]} for cell in cells))
    declared = {axis: values for axis in MATRIX_AXES if (values := _distinct(p[axis] for p in points if axis in p))}
    is_as_large = prod(len(values) for values in declared.values()) == len(points)
    if is_as_large and all(
        dict(zip(declared, values, strict=True)) in points for values in product(*declared.values())
    ):
        return {axis: [plain_of(value) for value in values] for axis, values in declared.items()}
    return {"include": [{axis: plain_of(value) for axis, value in point.items()} for point in points]}


def settings_of(matrices: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, object]]:
    """What runs say of inputs and outputs by name beside the axes, by their matrices in plain values; of two that say
    something of the same one the first."""
    found: dict[str, dict[str, object]] = {}
    for matrix in matrices:
        for key in (key for key in _OF_CELLS if matrix.get(key)):
            found[key] = {**matrix[key], **found.get(key, {})}
    return found


def point_of(cell: CellSpec) -> dict[str, Value]:
    """The values of a cell by axis; it may have no batch, and the hardware that its provider needs is not said."""
    values = ((name, axis.of(cell)) for name, axis in MATRIX_AXES.items())
    return {name: value for name, value in values if value is not None}


def _without_defaults(points: Sequence[Point]) -> list[Point]:
    said = [axis for axis in MATRIX_AXES if any(axis in point and point[axis] != _PLAIN.get(axis) for point in points)]
    return [{axis: point[axis] for axis in said if axis in point} for point in points]


def _session_sets(cells: Iterable[CellSpec], names: Mapping[str, str]) -> dict[str, SessionSet]:
    """A set for each different one among the cells, under a name that no other has."""
    found: dict[str, SessionSet] = {}
    for cell in cells:
        options = session_set_of(cell.session, name=DEFAULT.name)
        taken = {DEFAULT.name, *(other.name for other in found.values())}
        free = (name for name in (names.get(cell.digest, ""), *(f"session-{n}" for n in range(1, len(taken) + 1))))
        name = DEFAULT.name if options == DEFAULT else next(name for name in free if name and name not in taken)
        found.setdefault(_key(cell.session), replace(options, name=name))
    return found


def _key(session: SessionSettings) -> str:
    return session.model_dump_json(include=OPTIONS)


def _distinct(values: Iterable[T]) -> list[T]:
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
