"""The texts that the copy buttons of a page copy: a command, a matrix as YAML, and an API call with curl."""

import json
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farm.contract.cells import CellSpec
from farm.contract.document_cells import Cell
from farm.rules.cells import commands
from farm.rules.cells.matrices import build_matrix, merge_settings
from farm.rules.matrices.matrix_text import write_text

# a cell to measure again, and the name of its session set
Chosen = tuple[CellSpec, str]
PlainMatrix = Mapping[str, Any]


@dataclass(frozen=True)
class Copy:
    """A copy button. `label`: on the button; `text`: what it copies."""

    label: str
    text: str


def copy_cell(run_id: int, cell: Cell, *, chosen: Chosen, matrix: PlainMatrix, url: str) -> list[Copy]:
    """Make the copy buttons of a cell: the command for its timings, a matrix of this cell alone, and the API call for
    its timings. `matrix`: the run's matrix, whose inputs and settings are kept."""
    name = shlex.quote(cell.id)
    return [
        Copy("CLI", f"onnxfarm results {run_id} --timings {name}"),
        Copy("YAML", write_matrix([chosen], matrices=[matrix])),
        Copy("cURL", write_curl("GET", f"/runs/{run_id}/cells/{cell.id}/timings.csv", url=url)),
    ]


def copy_runs(runs: Collection[int], *, url: str, matrix: str = "") -> list[Copy]:
    """Make the copy buttons of runs: the commands for their results, and the API calls for their documents, a line for
    each run. `url`: the farm's own address; `matrix`: as text, without it that button is missing."""
    return [
        Copy("CLI", "\n".join(f"onnxfarm results {run_id}" for run_id in runs)),
        *([Copy("YAML", matrix)] if matrix else []),
        Copy("cURL", "\n".join(write_curl("GET", f"/runs/{run_id}/results", url=url) for run_id in runs)),
    ]


def copy_plan(version_id: int, main: str, matrix: str, *, url: str) -> list[Copy]:
    """Make the copy buttons of the matrix editor: the command that plans, the matrix, and the API call that plans.
    `main`: the name of the model's file."""
    return [
        Copy("CLI", commands.plan_command(main, matrix="matrix.yaml")),
        Copy("YAML", matrix),
        Copy("cURL", write_curl("POST", "/plan", {"version": version_id, "matrix": matrix}, url=url)),
    ]


def write_matrix(chosen: Sequence[Chosen], *, matrices: Iterable[PlainMatrix] = ()) -> str:
    """Write the YAML of a matrix that has exactly these cells; empty where there are none. Inputs and settings come
    from `matrices`, the matrices of the cells' runs; without a budget among them it is `quick`."""
    if not chosen:
        return ""
    names = {spec.digest: name for spec, name in chosen}
    axes = build_matrix([spec for spec, _ in chosen], names=names)
    return write_text({"budget": "quick", **merge_settings(matrices), "matrix": axes})


TOKEN = "$ONNXFARM_TOKEN"


def write_curl(method: str, path: str, body: Mapping[str, object] | None = None, *, url: str) -> str:
    """Write an API call as a curl command. `path`: the part after /api/v1; `body`: sent as JSON. The command takes the
    token from the shell variable ONNXFARM_TOKEN, so that no secret is copied."""
    words = ["curl", "-sS", *([] if method == "GET" else ["-X", method])]
    line = " ".join([*words, "-H", f'"Authorization: Bearer {TOKEN}"', shlex.quote(f"{url}/api/v1{path}")])
    if body is None:
        return line
    sent = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"{line} -H 'Content-Type: application/json' -d {sent}"
