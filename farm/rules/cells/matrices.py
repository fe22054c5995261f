"""A matrix of chosen cells and of no others: what people copy to measure them again, or somewhere else. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from farm.contract.cells import CellSpec, SessionSettings
from farm.rules.cells import axes, recipes
from farm.rules.cells.matrix_axes import AXES, PrecisionChoice, ProviderChoice
from farm.rules.cells.session_sets import DEFAULT, OWN_AXES, SessionSet
from farm.rules.runtimes import providers

# what goes without saying
_PLAIN: Mapping[str, Any] = {axis.name: axis.default for axis in axes.AXES} | {"session": DEFAULT}

Point = Mapping[str, Any]


def matrix_of(cells: Sequence[CellSpec], *, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Axes whose product is these cells; where it would hold others too, each cell by itself under `include`.

    `names`: of their session sets, by the digest of the cell. Inputs, calibration data and the seed are on no axis:
    they are the model's and the run's.
    """
    sets = _session_sets(cells, names or {})
    points = _said(_distinct(_point(cell, sets) for cell in cells))
    declared = {axis: values for axis in AXES if (values := _distinct(p[axis] for p in points if axis in p))}
    if _is_product(points, declared):
        return {axis: [AXES[axis].write(value) for value in values] for axis, values in declared.items()}
    return {"include": [{axis: AXES[axis].write(value) for axis, value in point.items()} for point in points]}


def _said(points: Sequence[Point]) -> list[Point]:
    """The points without the axes on which all of them have what goes without saying."""
    said = [axis for axis in AXES if any(axis in point and point[axis] != _PLAIN.get(axis) for point in points)]
    return [{axis: point[axis] for axis in said if axis in point} for point in points]


def _is_product(points: Sequence[Point], declared: Mapping[str, Sequence[Any]]) -> bool:
    if prod(len(values) for values in declared.values()) != len(points):
        return False
    return all(dict(zip(declared, values, strict=True)) in points for values in product(*declared.values()))


def _point(cell: CellSpec, sets: Mapping[str, SessionSet]) -> Point:
    """The values of a cell by axis; it may have no batch, and the hardware that its provider needs is not said."""
    provider = providers.find(cell.provider)
    usual = providers.tag_for(provider, cell.provider_options) if provider is not None else None
    values = {
        "opset": cell.recipe.opset,
        "runtime": cell.runtime,
        "provider": ProviderChoice(cell.provider, cell.provider_options),
        "batch": cell.workload.batch,
        "shapes": cell.workload.shapes,
        "precision": PrecisionChoice(cell.recipe.precision, recipes.for_tools(cell.recipe)),
        "threads": cell.session.threads,
        "session": sets[_key(cell.session)],
        "optimization": cell.session.optimization,
        "hardware": cell.hardware if cell.hardware != usual else None,
        "concurrency": cell.workload.concurrency,
    }
    return {axis: value for axis, value in values.items() if value is not None}


def _session_sets(cells: Iterable[CellSpec], names: Mapping[str, str]) -> dict[str, SessionSet]:
    """A set for each different one among the cells, under a name that no other has."""
    found: dict[str, SessionSet] = {}
    for cell in cells:
        one = SessionSet(**cell.session.model_dump(exclude=OWN_AXES))
        taken = {DEFAULT.name, *(other.name for other in found.values())}
        free = (name for name in (names.get(cell.digest, ""), *(f"session-{n}" for n in range(1, len(taken) + 1))))
        name = DEFAULT.name if one == DEFAULT else next(name for name in free if name and name not in taken)
        found.setdefault(_key(cell.session), replace(one, name=name))
    return found


def _key(session: SessionSettings) -> str:
    return session.model_dump_json(exclude=OWN_AXES)


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
