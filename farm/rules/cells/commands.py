"""The command lines that do the work of one cell again without a farm. Pure.

Written from the cell and the name of its model's file alone, never from what a node answered. Every word is quoted for
a POSIX shell; what an option cannot carry safely stands in the JSON of `--matrix`, which escapes all but plain signs.
"""

import json
import re
import shlex
from typing import Any

from farm.contract.cells import CellSpec, Runtime, SessionSettings
from farm.rules.cells import recipes
from farm.rules.cells.matrix_axes import DEFAULT_DISTRIBUTION
from farm.rules.cells.session_sets import OWN_AXES, SessionSet

# the names under which a model's given inputs and its calibration data are stored
INPUTS, CALIBRATION = "inputs.npz", "calibration.npz"
# dimensions that --shape takes as they are: no sign of an option, a list, or a terminal
_PLAIN = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", re.ASCII)
# what --input takes behind the sign: no sign of a list or of a terminal
_TEXT = re.compile(r"^[A-Za-z0-9_+.:@-]+$", re.ASCII)


def repeat_command(cell: CellSpec, main: str) -> str:
    """`onnxfarm bench …` with every setting of the cell that is not bench's default. `main`: the model's file."""
    declared = _matrix(cell)
    words = ["onnxfarm", "bench", as_file(main), "--ort", _named(cell.runtime)]
    words += _pairs(
        # an option replaces the matrix's axis
        ("--provider", cell.provider if "provider" not in declared else None),
        ("--batch", cell.workload.batch),
        ("--threads", cell.session.threads),
        ("--precision", cell.recipe.precision if "precision" not in declared else None),
        ("--opset", cell.recipe.opset if cell.recipe.opset != "as-is" else None),
        ("--optimization", cell.session.optimization if cell.session.optimization != "all" else None),
        ("--concurrency", cell.workload.concurrency if cell.workload.concurrency > 1 else None),
        ("--seed", cell.workload.seed or None),
    )
    words += _shapes(cell) if "shapes" not in declared else []
    words += _fills(cell) if "inputs" not in declared else []
    words += _pairs(
        ("--inputs", INPUTS if cell.workload.inputs_sha256 else None),
        ("--calibration", CALIBRATION if _is_calibrated(cell) else None),
    )
    words += ["--matrix", json.dumps(declared, sort_keys=True)] if declared else []
    return shlex.join(words)


def diverge_command(
    cell: CellSpec, main: str, *, against: Runtime | None = None, has_inputs: bool | None = None
) -> str:
    """`onnxfarm diverge …` for a cell, `against` another runtime or the CPU without optimisations.

    `has_inputs`: whether they lie beside the model; None: where the cell's were given. Empty where the cell has
    settings that the command does not take.
    """
    plain = SessionSettings().model_dump(exclude=OWN_AXES)
    is_plain = cell.session.model_dump(exclude=OWN_AXES) == plain and _has_plain_shapes(cell) and _has_plain_fills(cell)
    if cell.provider_options or cell.recipe.options or not is_plain:
        return ""
    words = ["onnxfarm", "diverge", as_file(main), "--ort", _named(cell.runtime)]
    words += _pairs(
        ("--against", _named(against) if against is not None else None),
        ("--provider", cell.provider),
        ("--threads", cell.session.threads),
        ("--level", cell.session.optimization if cell.session.optimization != "all" else None),
        ("--precision", cell.recipe.precision if cell.recipe.precision != "fp32" else None),
    )
    given = bool(cell.workload.inputs_sha256) if has_inputs is None else has_inputs
    return shlex.join([*words, *(["--inputs", INPUTS] if given else _seeded(cell))])


def bisect_command(main: str, *, good: str, bad: str, provider: str) -> str:
    """`onnxfarm bisect …` between two releases, by the short name of a provider."""
    return shlex.join(["onnxfarm", "bisect", as_file(main), "--good", good, "--bad", bad, "--provider", provider])


def submit_command(main: str, *, matrix: str = "") -> str:
    """`onnxfarm submit …` of a model's file; `matrix`: the name of a matrix file."""
    return shlex.join(["onnxfarm", "submit", as_file(main), *(["--matrix", matrix] if matrix else []), "--wait"])


def plan_command(main: str, *, matrix: str) -> str:
    """`onnxfarm plan …` of a model's file and a matrix file."""
    return shlex.join(["onnxfarm", "plan", as_file(main), "--matrix", matrix])


def as_file(main: str) -> str:
    """A file's name as an argument: it may begin as options do."""
    return f"./{main}" if main.startswith("-") else main


def _seeded(cell: CellSpec) -> list[str]:
    work = cell.workload
    return [*_pairs(("--batch", work.batch)), *_shapes(cell), *_fills(cell), *_pairs(("--seed", work.seed or None))]


def _named(runtime: Runtime) -> str:
    return runtime.version if runtime.distribution == DEFAULT_DISTRIBUTION else str(runtime)


def _pairs(*options: tuple[str, object]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, str(value))]


def _is_calibrated(cell: CellSpec) -> bool:
    return cell.recipe.options.get(recipes.SAMPLES, recipes.RANDOM) != recipes.RANDOM


def _shapes(cell: CellSpec) -> list[str]:
    if cell.workload.inputs_sha256 is not None:
        return []  # given inputs have them
    return [word for name, size in sorted(cell.workload.shapes.items()) for word in ("--shape", f"{name}={size}")]


def _fills(cell: CellSpec) -> list[str]:
    return [word for name, text in sorted(cell.workload.inputs.items()) for word in ("--input", f"{name}={text}")]


def _has_plain_fills(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) and _TEXT.match(text) for name, text in cell.workload.inputs.items())


def _has_plain_shapes(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) for name in cell.workload.shapes)


def _matrix(cell: CellSpec) -> dict[str, Any]:
    """What no option says: options of provider and recipe, session options, dimensions with unusual names."""
    declared: dict[str, Any] = {}
    if cell.provider_options:
        declared["provider"] = [{"name": cell.provider, "options": cell.provider_options}]
    if options := recipes.for_tools(cell.recipe):
        declared["precision"] = [{"precision": cell.recipe.precision, "options": options}]
    if cell.workload.inputs_sha256 is None and not _has_plain_shapes(cell):
        declared["shapes"] = [cell.workload.shapes]
    if not _has_plain_fills(cell):
        declared["inputs"] = dict(cell.workload.inputs)
    session = SessionSet(name="as-measured", **cell.session.model_dump(exclude=OWN_AXES)).as_plain()
    return {**declared, **({"session": [session]} if len(session) > 1 else {})}
