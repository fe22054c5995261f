"""Matches the cells of two bench documents, and makes the command that measures two matched cells in one block."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from farm.contract import document_cells as doc_cells
from farm.rules.cells import axes
from farm.rules.cells.commands import file_argument
from farm.rules.cells.label import WORKLOAD
from farm.rules.presenting.lines import is_wrong, why_wrong

# the keys that say what a cell measures; a missing key is the same as null
AXES = tuple(field for axis in axes.AXES if axis.is_setting for field in axis.fields)
# the axes in which matched cells may differ, tried in this order
MAY_DIFFER = ((), ("runtime",), ("runtime", "opset"), ("runtime", "opset", "model_sha256"))
# axes that are options of `bench`; a cell with another axis set needs a matrix file
OPTIONS = ("provider", "batch", "threads", "precision")
SET_APART = ("model", "runtime", "opset", *OPTIONS)
MATRIX_ONLY = tuple(axis for axis in axes.AXES if axis.is_setting and axis.name not in SET_APART)
# the axes by which a cell is labelled, without its runtime
NO_DEFAULT = (axes.BY_NAME["model"], *WORKLOAD)
DEFAULT_SESSION = axes.BY_NAME["session"].default

Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Match:
    """Two matched cells. `differs`: by the name of each axis in which they differ, the old and the new value.

    A missing value, null, {} and an empty text do not differ. A value that is missing is None in `differs`.
    """

    old: Cell
    new: Cell
    differs: Mapping[str, tuple[Any, Any]]

    @classmethod
    def of(cls, old: Cell, new: Cell) -> "Match":
        differing = [axis for axis in AXES if _make_key(old, axis) != _make_key(new, axis)]
        return cls(old, new, {axis: (old.get(axis), new.get(axis)) for axis in differing})


class Matching(NamedTuple):
    """The matched cells of two documents, and the cells of each that have no counterpart."""

    matches: list[Match]
    only_old: list[Cell]
    only_new: list[Cell]


@dataclass(frozen=True, slots=True)
class Repeat:
    """How to measure two cells in one block. `matrix`: what its file both.json has to hold; None: it reads no file."""

    command: str
    matrix: Mapping[str, Any] | None = None


def match_cells(old: Sequence[Cell], new: Sequence[Cell]) -> Matching:
    """Match the cells of two documents that measure the same.

    Cells that agree in all axes are matched first, in their order. Then cells may differ in the runtime, then in
    runtime and opset, then in the model as well. Cells that differ are matched only if all candidates of each side have
    the same values of these axes. Of cells that measure the same, the first are matched with the first, and a surplus
    has no counterpart.
    """
    matches: list[Match] = []
    for differing in MAY_DIFFER:
        fixed = [axis for axis in AXES if axis not in differing]
        old_groups, new_groups = _group_by_axes(old, fixed), _group_by_axes(new, fixed)
        for key, old_cells in old_groups.items():
            sides = old_cells, new_groups.get(key, [])
            if all(_agree_on(side, differing) for side in sides):
                matches += [Match.of(*cells) for cells in zip(*sides, strict=False)]
        matched = {id(cell) for match in matches for cell in (match.old, match.new)}
        old, new = ([cell for cell in side if id(cell) not in matched] for side in (old, new))
    return Matching(matches, list(old), list(new))


def make_repeat_command(match: Match) -> Repeat | None:
    """Make the command that measures both cells side by side; None if their models differ.

    It has the runtimes, and opsets if they differ, of both; all other settings are the new cell's. A document names no
    model's path, so the command has the model's name, or MODEL.onnx.
    """
    if "model_sha256" in match.differs:
        return None
    cell = match.new
    model = str(cell.get("model") or "MODEL").removesuffix(".onnx")
    words = ["onnxfarm", "bench", file_argument(f"{model}.onnx")]
    if any(_is_set(cell, axis) for axis in MATRIX_ONLY) or "opset" in match.differs:
        return Repeat(shlex.join([*words, "--matrix", "both.json"]), _make_matrix(match))
    runtimes = (str(side.get("runtime", "")).removeprefix("onnxruntime==") for side in (match.old, match.new))
    words += ["--ort", ",".join(runtimes)]
    for option in OPTIONS:
        if cell.get(option) is not None:
            words += [f"--{option}", str(cell[option])]
    return Repeat(shlex.join(words))


def label_cell(cell: Cell) -> str:
    """Describe a cell by its model and its settings that are not the default, without its runtime; may be empty."""
    readable = _read_cell(cell)
    shown = [axis for axis in NO_DEFAULT if hasattr(readable, axis.fields[0]) and not axis.is_default(readable)]
    return ", ".join(filter(None, (axis.label(readable) for axis in shown)))


def explain_wrong_outputs(cell: Cell) -> str:
    """Say why a cell's outputs are wrong; empty if they are right, or if its parity or accuracy cannot be read."""
    try:
        parity = doc_cells.Parity.model_validate(cell.get("parity") or {})
        accuracy = doc_cells.Accuracy.model_validate(cell["accuracy"]) if cell.get("accuracy") else None
    except ValidationError:
        return ""
    readable = _read_cell(cell).model_copy(update={"parity": parity, "accuracy": accuracy})
    return why_wrong(readable) if is_wrong(readable) else ""


def _read_cell(cell: Cell) -> doc_cells.Cell:
    """Read the fields of a cell that label it. Missing and invalid fields have no attribute in the result."""
    names = {name for axis in NO_DEFAULT for name in (axis.name, *axis.fields)}
    fields = {name: cell[name] for name in names if cell.get(name) is not None}
    try:
        doc_cells.Cell.model_validate(fields)
    except ValidationError as problem:
        invalid = {error["loc"][0] for error in problem.errors()}
        fields = {name: value for name, value in fields.items() if name not in invalid}
    return doc_cells.Cell.model_construct(**{"model_sha256": "", **fields})


def _make_key(cell: Cell, axis: str) -> str:
    value = cell.get(axis)
    return json.dumps(None if value in ({}, "") else value, sort_keys=True)


def _group_by_axes(cells: Iterable[Cell], axes: Sequence[str]) -> dict[tuple[str, ...], list[Cell]]:
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(_make_key(cell, axis) for axis in axes), []).append(cell)
    return groups


def _agree_on(cells: Sequence[Cell], axes: Sequence[str]) -> bool:
    """Say whether there are cells, and all of them have the same values of these axes."""
    return len({tuple(_make_key(cell, axis) for axis in axes) for cell in cells}) == 1


def _is_set(cell: Cell, axis: axes.Axis) -> bool:
    """Say whether a cell's value of an axis is not the default. Sessions are compared by name."""
    value = cell.get(axis.fields[0])
    if axis.name == "session" and isinstance(value, dict):
        return bool(value) and value.get("name", DEFAULT_SESSION) != DEFAULT_SESSION
    return value is not None and value != axis.default


def _make_matrix(match: Match) -> dict[str, Any]:
    """Make the plain values of a matrix with these two cells and no others."""
    cell = match.new
    provider = {"name": cell.get("provider"), "options": cell.get("provider_options")}
    declared = {
        "runtime": [match.old.get("runtime"), cell.get("runtime")],
        "opset": list(match.differs["opset"]) if "opset" in match.differs else None,
        "provider": [provider if cell.get("provider_options") else cell.get("provider")],
        **{axis: [cell[axis]] for axis in ("batch", "precision", "threads") if cell.get(axis)},
        **{axis.name: [cell[axis.fields[0]]] for axis in MATRIX_ONLY if axis.declared and _is_set(cell, axis)},
    }
    return {"matrix": {name: values for name, values in declared.items() if values is not None}}
