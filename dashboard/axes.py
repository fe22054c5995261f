"""The axes of a matrix as pages name them: which of them a run varies, and what a cell is called along each."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dashboard import words
from farm.contract.document import Cell
from farm.rules.cells.recipes import precision_words


class Axis(NamedTuple):
    """`label` names a cell's place on the axis; `order` sorts those places."""

    name: str
    heading: str
    label: Callable[[Cell], str]
    order: Callable[[Cell], Any]


def _pairs(entries: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(entries.items()))


def version_key(requirement: str) -> tuple[Any, ...]:
    """Sorts requirements by distribution, then by version number: 1.9 before 1.31."""
    distribution, _, version = requirement.partition("==")
    parts = tuple(int(part) if part.isdigit() else -1 for part in version.split("."))
    return (distribution != "onnxruntime", distribution, parts, version)


def _session(cell: Cell) -> str:
    """A session set's name; its settings where it has none."""
    name = cell.session.get("name")
    return f"{name} session" if name else _pairs(cell.session) or "default session"


def _batch(cell: Cell) -> str:
    return f"batch {cell.batch}" if cell.batch is not None else "no batch"


def _precision(cell: Cell) -> str:
    return precision_words(cell.precision, cell.recipe)


AXES: tuple[Axis, ...] = (
    Axis("model", "Model", lambda c: c.model or c.model_sha256[:12], lambda c: c.model),
    Axis("hardware", "Hardware", lambda c: c.hardware, lambda c: c.hardware),
    Axis("node", "Node", lambda c: c.node or "no node", lambda c: c.node or ""),
    Axis("provider", "Provider", lambda c: words.provider(c.provider), lambda c: c.provider),
    Axis(
        "provider_options", "Provider options", lambda c: _pairs(c.provider_options) or "default options", lambda c: ""
    ),
    Axis("batch", "Batch", _batch, lambda c: c.batch or 0),
    Axis("shapes", "Shapes", lambda c: _pairs(c.shapes) or "model's shapes", lambda c: sorted(c.shapes.items())),
    Axis("precision", "Precision", _precision, lambda c: ("fp32" not in c.precision, c.precision, c.recipe)),
    Axis("opset", "Opset", lambda c: f"opset {c.opset}" if c.opset else "opset unknown", lambda c: c.opset or 0),
    Axis("threads", "Threads", lambda c: f"{c.threads} thread{'s' if c.threads != 1 else ''}", lambda c: c.threads),
    Axis("optimization", "Optimization", lambda c: f"optimization {c.optimization}", lambda c: c.optimization),
    Axis("session", "Session", _session, lambda c: _session(c)),
    Axis("concurrency", "Concurrency", lambda c: f"{c.concurrency} at once", lambda c: c.concurrency),
    Axis("runtime", "Runtime", lambda c: words.runtime(c.runtime), lambda c: version_key(c.runtime)),
)
BY_NAME = {axis.name: axis for axis in AXES}


def varying(cells: Iterable[Cell]) -> list[Axis]:
    """The axes along which these cells differ, in the order of AXES, without those that follow from others."""
    cells = list(cells)
    found = [axis for axis in AXES if _differ(cells, axis)]
    return [axis for axis in found if not _is_implied(axis, cells)]


def _differ(cells: Sequence[Cell], axis: Axis) -> bool:
    """Whether the cells stand at several places of an axis; the second place found ends the look."""
    first = axis.label(cells[0]) if cells else ""
    return any(axis.label(cell) != first for cell in cells)


def _is_implied(axis: Axis, cells: Sequence[Cell]) -> bool:
    """Whether an axis says nothing of its own: hardware that follows from the provider, a node from the hardware.

    A refused point has no node: that alone makes no axis.
    """
    if axis.name == "node":
        ran = [cell for cell in cells if cell.node]
        return len({cell.node for cell in ran}) <= 1 or _follows(ran, lambda c: c.hardware, lambda c: c.node)
    return axis.name == "hardware" and _follows(cells, lambda c: c.provider, lambda c: c.hardware)


def _follows(cells: Sequence[Cell], known: Callable[[Cell], Any], other: Callable[[Cell], Any]) -> bool:
    return len({(known(cell), other(cell)) for cell in cells}) == len({known(cell) for cell in cells})


def name_of(cell: Cell, axes: Sequence[Axis]) -> str:
    """A cell by its places: `CPU · batch 8 · int8-dynamic`; its runtime when nothing varies."""
    return " · ".join(axis.label(cell) for axis in axes) or words.runtime(cell.runtime)


def places(cells: Iterable[Cell], axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    """The distinct places of the cells along the axes, each as labels, sorted along each axis."""
    found: dict[tuple[str, ...], Any] = {}
    for cell in cells:
        found.setdefault(place_of(cell, axes), tuple(axis.order(cell) for axis in axes))
    return sorted(found, key=lambda place: found[place])


def place_of(cell: Cell, axes: Sequence[Axis]) -> tuple[str, ...]:
    """The labels of one cell along the axes."""
    return tuple(axis.label(cell) for axis in axes)
