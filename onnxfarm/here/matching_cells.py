"""Which cells of two bench documents measure the same thing, and the command that measures both in one block."""

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

# What a cell measures. A document that leaves one out, or has null, means the same by it.
AXES = tuple(field for axis in axes.AXES if axis.is_setting for field in axis.fields)
# Cells are matched by everything first, then as two releases of the runtime, then as two versions of the model too.
MAY_DIFFER = ((), ("runtime",), ("runtime", "opset"), ("runtime", "opset", "model_sha256"))
# What `bench` takes as options; a cell with another axis set needs a matrix file.
OPTIONS = ("provider", "batch", "threads", "precision")
SET_APART = ("model", "runtime", "opset", *OPTIONS)
MATRIX_ONLY = tuple(axis for axis in axes.AXES if axis.is_setting and axis.name not in SET_APART)
# what a cell is called by, beside its runtime
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

    Cells that measure the same are matched in their order. Two releases are matched only where one of each is left, so
    that nobody has to guess which of several was meant.
    """
    matches: list[Match] = []
    for differing in MAY_DIFFER:
        fixed = [axis for axis in AXES if axis not in differing]
        before, after = _group(old, fixed), _group(new, fixed)
        for key in (key for key in before if key in after):
            if not differing or (_agree(before[key], differing) and _agree(after[key], differing)):
                for a, b in zip(before[key], after[key], strict=False):
                    differs = {axis: (a.get(axis), b.get(axis)) for axis in AXES if _key(a, axis) != _key(b, axis)}
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
        return Repeat(shlex.join([*words, "--matrix", "both.json"]), _matrix(match))
    words += ["--ort", versions]
    for option in OPTIONS:
        if cell.get(option) is not None:
            words += [f"--{option}", str(cell[option])]
    return Repeat(shlex.join(words))


def label_cell(cell: Cell) -> str:
    """Describe a cell in a few words, without its runtime."""
    known = _readable(cell)
    shown = [axis for axis in NO_DEFAULT if hasattr(known, axis.fields[0]) and not axis.is_default(known)]
    return ", ".join(filter(None, (axis.label(known) for axis in shown)))


def explain_wrong_outputs(cell: Cell) -> str:
    """Say what shows that a cell's outputs are wrong; empty where nothing does, or where it cannot be read."""
    try:
        parity = doc_cells.Parity.model_validate(cell.get("parity") or {})
        accuracy = doc_cells.Accuracy.model_validate(cell["accuracy"]) if cell.get("accuracy") else None
    except ValidationError:
        return ""
    known = _readable(cell).model_copy(update={"parity": parity, "accuracy": accuracy})
    return why_wrong(known) if is_wrong(known) else ""


def _readable(cell: Cell) -> doc_cells.Cell:
    """Return what can be read of a cell: a document from elsewhere leaves fields out, or has others in their place."""
    given = {
        name: cell[name] for axis in NO_DEFAULT for name in (axis.name, *axis.fields) if cell.get(name) is not None
    }
    try:
        doc_cells.Cell.model_validate(given)
    except ValidationError as problem:
        given = {
            name: value for name, value in given.items() if name not in {error["loc"][0] for error in problem.errors()}
        }
    return doc_cells.Cell.model_construct(**{"model_sha256": "", **given})


def _key(cell: Cell, axis: str) -> str:
    value = cell.get(axis)
    return json.dumps(None if value in ({}, "") else value, sort_keys=True)


def _group(cells: Iterable[Cell], axes: Sequence[str]) -> dict[tuple[str, ...], list[Cell]]:
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(_key(cell, axis) for axis in axes), []).append(cell)
    return groups


def _agree(cells: Sequence[Cell], axes: Sequence[str]) -> bool:
    return len({tuple(_key(cell, axis) for axis in axes) for cell in cells}) == 1


def _is_set(cell: Cell, axis: axes.Axis) -> bool:
    """Say whether a cell has something other than the default; a session's default goes by its name."""
    value = cell.get(axis.fields[0])
    if axis.name == "session" and isinstance(value, dict):
        return bool(value) and value.get("name", DEFAULT_SESSION) != DEFAULT_SESSION
    return value is not None and value != axis.default


def _matrix(match: Match) -> dict[str, Any]:
    """Return a matrix file with both cells and nothing else."""
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
