"""The same view for a terminal, for a matrix file and for a program: what the copy buttons of a page copy."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dashboard.reading.curl import curl
from farm.contract.document import Cell
from farm.rules.cells import commands

# axes whose values a cell tells as a matrix takes them
AXES = ("runtime", "provider", "batch", "precision", "threads", "optimization", "concurrency")
DEFAULTS = {"optimization": "all", "concurrency": 1}


@dataclass(frozen=True)
class Copy:
    """`label`: what the button says, and what the text is."""

    label: str
    text: str


def of_run(run_id: int, *, matrix: str, url: str) -> list[Copy]:
    """A run's results, its matrix, and its document over HTTP."""
    return [
        Copy("CLI", f"onnxfarm results {run_id}"),
        Copy("YAML", matrix),
        Copy("cURL", curl("GET", f"/runs/{run_id}/results", url=url)),
    ]


def of_cell(run_id: int, cell: Cell, *, url: str) -> list[Copy]:
    """Every timing of a cell, a matrix of this cell alone, and its timings over HTTP."""
    name = shlex.quote(cell.id)
    return [
        Copy("CLI", f"onnxfarm results {run_id} --timings {name}"),
        Copy("YAML", matrix_of([cell])),
        Copy("cURL", curl("GET", f"/runs/{run_id}/cells/{cell.id}/timings.csv", url=url)),
    ]


def of_cells(chosen: Iterable[tuple[int, Cell]], *, url: str) -> list[Copy]:
    """Cells of any runs: their runs' results, and one matrix that measures them all side by side."""
    known = list(chosen)
    runs = list(dict.fromkeys(run_id for run_id, _ in known))
    return [
        Copy("CLI", "\n".join(f"onnxfarm results {run_id}" for run_id in runs)),
        Copy("YAML", matrix_of([cell for _, cell in known])),
        Copy("cURL", "\n".join(curl("GET", f"/runs/{run_id}/results", url=url) for run_id in runs)),
    ]


def of_runs(runs: Sequence[int], *, url: str) -> list[Copy]:
    """Whole runs: their results, and their documents over HTTP."""
    return [
        Copy("CLI", "\n".join(f"onnxfarm results {run_id}" for run_id in runs)),
        Copy("cURL", "\n".join(curl("GET", f"/runs/{run_id}/results", url=url) for run_id in runs)),
    ]


def of_plan(version_id: int, main: str, matrix: str, *, url: str) -> list[Copy]:
    """What is in the editor: its plan by the command, the file itself, and its plan over HTTP."""
    return [
        Copy("CLI", commands.plan_command(main, matrix="matrix.yaml")),
        Copy("YAML", matrix),
        Copy("cURL", curl("POST", "/plan", {"version": version_id, "matrix": matrix}, url=url)),
    ]


def matrix_of(cells: Sequence[Cell]) -> str:
    """A matrix in which these cells are: every value that they have on each axis."""
    axes: dict[str, list[Any]] = {}
    for axis in AXES:
        values = list(dict.fromkeys(value for cell in cells if (value := getattr(cell, axis)) is not None))
        if values and values != [DEFAULTS.get(axis)]:
            axes[axis] = values
    shapes = list({str(sorted(cell.shapes.items())): dict(cell.shapes) for cell in cells if cell.shapes}.values())
    if shapes:
        axes["shapes"] = shapes
    plain = {"budget": "quick", "matrix": axes}
    return str(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, allow_unicode=True))
