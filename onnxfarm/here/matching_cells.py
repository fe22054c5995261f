"""Matches cells of two bench documents that measure the same, and makes a command that measures both in one block."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from farm.contract import document_cells as doc_cells
from farm.rules.cells import axes
from farm.rules.cells.commands import file_argument
from farm.rules.cells.label import WORKLOAD
from farm.rules.presenting.lines import is_wrong, why_wrong

# the keys that say what a cell measures; one that is missing is the same as null
AXES = tuple(field for axis in axes.AXES if axis.is_setting for field in axis.fields)
# the axes that may differ between matched cells: none first, then the runtime, the opset, and the model too
MAY_DIFFER = ((), ("runtime",), ("runtime", "opset"), ("runtime", "opset", "model_sha256"))
# axes that are options of `bench`; a cell with another axis set needs a matrix file
OPTIONS = ("provider", "batch", "threads", "precision")
SET_APART = ("model", "runtime", "opset", *OPTIONS)
MATRIX_ONLY = tuple(axis for axis in axes.AXES if axis.is_setting and axis.name not in SET_APART)
# axes that label a cell, beside its runtime
NO_DEFAULT = (axes.BY_NAME["model"], *WORKLOAD)
DEFAULT_SESSION = axes.BY_NAME["session"].default

Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Match:
    """Two cells, and the axes in which they differ: name → (old, new)."""

    old: Cell
    new: Cell
    differs: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Repeat:
    """How to measure both in one block: a command, and the matrix file that it needs, if any."""

    command: str
    matrix: Mapping[str, Any] | None = None


def match_cells(old: Sequence[Cell], new: Sequence[Cell]) -> tuple[list[Match], list[Cell], list[Cell]]:
    """Match the cells of two documents. Return the matches, and the cells of each side that have none.

    Cells that measure the same are matched in their order. Of those left, cells are matched that differ in the runtime,
    then in the opset too, and last in the model too, where each side has only one kind of them left.
    """
    matches: list[Match] = []
    for differing in MAY_DIFFER:
        fixed = [axis for axis in AXES if axis not in differing]
        before, after = _group_by_axes(old, fixed), _group_by_axes(new, fixed)
        for key in (key for key in before if key in after):
            if not differing or (_agree_on(before[key], differing) and _agree_on(after[key], differing)):
                for a, b in zip(before[key], after[key], strict=False):
                    differs = {
                        axis: (a.get(axis), b.get(axis)) for axis in AXES if _make_key(a, axis) != _make_key(b, axis)
                    }
                    matches.append(Match(a, b, differs))
        taken = {id(cell) for match in matches for cell in (match.old, match.new)}
        old, new = ([cell for cell in side if id(cell) not in taken] for side in (old, new))
    return matches, list(old), list(new)


def make_repeat_command(match: Match) -> Repeat | None:
    """Make the command that measures both cells side by side; None for two models, which `bench` cannot compare."""
    if "model_sha256" in match.differs:
        return None
    versions = ",".join(str(cell.get("runtime", "")).removeprefix("onnxruntime==") for cell in (match.old, match.new))
    cell = match.new
    model = str(cell.get("model") or "MODEL").removesuffix(".onnx")
    words = ["onnxfarm", "bench", file_argument(f"{model}.onnx")]
    if any(_is_set(cell, axis) for axis in MATRIX_ONLY) or "opset" in match.differs:
        return Repeat(shlex.join([*words, "--matrix", "both.json"]), _make_matrix(match))
    words += ["--ort", versions]
    for option in OPTIONS:
        if cell.get(option) is not None:
            words += [f"--{option}", str(cell[option])]
    return Repeat(shlex.join(words))


def label_cell(cell: Cell) -> str:
    """Describe a cell in a few words, without its runtime."""
    readable = _read_cell(cell)
    shown = [axis for axis in NO_DEFAULT if hasattr(readable, axis.fields[0]) and not axis.is_default(readable)]
    return ", ".join(filter(None, (axis.label(readable) for axis in shown)))


def explain_wrong_outputs(cell: Cell) -> str:
    """Say why a cell's outputs are wrong; empty where they are not, or where its parity cannot be read."""
    try:
        parity = doc_cells.Parity.model_validate(cell.get("parity") or {})
        accuracy = doc_cells.Accuracy.model_validate(cell["accuracy"]) if cell.get("accuracy") else None
    except ValidationError:
        return ""
    readable = _read_cell(cell).model_copy(update={"parity": parity, "accuracy": accuracy})
    return why_wrong(readable) if is_wrong(readable) else ""


def _read_cell(cell: Cell) -> doc_cells.Cell:
    """Read the labelling fields of a cell. Fields that are missing or invalid are left out of what it returns."""
    fields = {
        name: cell[name] for axis in NO_DEFAULT for name in (axis.name, *axis.fields) if cell.get(name) is not None
    }
    try:
        doc_cells.Cell.model_validate(fields)
    except ValidationError as problem:
        fields = {
            name: value for name, value in fields.items() if name not in {error["loc"][0] for error in problem.errors()}
        }
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
    return len({tuple(_make_key(cell, axis) for axis in axes) for cell in cells}) == 1


def _is_set(cell: Cell, axis: axes.Axis) -> bool:
    """Say whether a cell has something other than the default; a session's default goes by its name."""
    value = cell.get(axis.fields[0])
    if axis.name == "session" and isinstance(value, dict):
        return bool(value) and value.get("name", DEFAULT_SESSION) != DEFAULT_SESSION
    return value is not None and value != axis.default


def _make_matrix(match: Match) -> dict[str, Any]:
    """Make a matrix file that has both cells and no others."""
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
