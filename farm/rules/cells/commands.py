"""The command lines that repeat the work of one cell without a farm.

They are written from the cell and the name of its model's file alone, never from what a node answered. Every word is
quoted for a POSIX shell; what no option can carry safely stands in the JSON of `--matrix`, which escapes all but plain
signs. `main` is the name of the model's file everywhere.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from farm.contract.blocks import Tolerance
from farm.contract.cells import PROGRAM_ENDING, CellSpec, Runtime, SessionSettings
from farm.rules.cells import recipes, scenarios
from farm.rules.cells.axes import BY_NAME, MATRIX_AXES, OWN_AXES
from farm.rules.cells.session_sets import session_set_of
from farm.rules.cells.values import format_value, to_plain
from farm.rules.runtimes import plugins
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION, is_known
from farm.rules.runtimes.models import CALIBRATION, INPUTS, PROMPTS

# session settings that `onnxfarm diverge` takes, and `call`, which changes no output
_DIVERGE_SETTINGS = {"threads", "optimization", "call"}
# names that --shape and --tolerance take as they are, because no shell, option or list gives their signs a meaning
_PLAIN = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", re.ASCII)
# values that --input takes as they are, for the same reason
_TEXT = re.compile(r"^[A-Za-z0-9_+.:@-]+\Z", re.ASCII)


def repeat_command(cell: CellSpec, main: str, *, tolerances: Mapping[str, Tolerance] | None = None) -> str:
    """Write `onnxfarm bench …` with every setting of the cell that is not bench's default.

    `tolerances`: how far the outputs of the run may differ, by output name.
    """
    declared = _list_settings_without_option(cell)
    samples = cell.recipe.options.get(recipes.SAMPLES, recipes.RANDOM)
    own = tolerances or {}
    if not all(map(_PLAIN.match, own)):
        declared["tolerance"] = {name: limit.model_dump() for name, limit in own.items()}
    words = ["onnxfarm", "bench", file_argument(main), "--ort", _format_release(cell.runtime)]
    words += [] if is_known(cell.runtime.distribution) else ["--allow-package", cell.runtime.distribution]
    words += (
        ["--source", file_argument(f"{main.removesuffix('.onnx')}{PROGRAM_ENDING}")] if cell.recipe.is_program else []
    )
    words += _list_options(
        # an option replaces the matrix's axis
        ("--provider", cell.provider if "provider" not in declared else None),
        ("--batch", cell.workload.batch),
        ("--threads", cell.session.threads),
        ("--precision", cell.recipe.precision if "precision" not in declared else None),
        ("--opset", cell.recipe.opset if cell.recipe.opset != "as-is" else None),
        *(
            (f"--{axis.name}", format_value(value))
            for axis in OWN_AXES
            if axis.help and (value := axis.value_in(cell)) is not None and value != BY_NAME[axis.name].default
        ),
        ("--seed", cell.workload.seed or None),
    )
    words += _list_shape_options(cell) if "shapes" not in declared else []
    words += _list_input_options(cell) if "inputs" not in declared else []
    if "tolerance" not in declared:
        words += _list_options(*(("--tolerance", f"{name}={limit.atol},{limit.rtol}") for name, limit in own.items()))
    words += _list_options(
        ("--inputs", INPUTS if cell.workload.inputs_sha256 else None),
        ("--prompts", PROMPTS if scenarios.of_cell(cell).prompts_sha256 else None),
        ("--calibration", CALIBRATION if samples != recipes.RANDOM else None),
    )
    words += ["--matrix", json.dumps(declared, sort_keys=True)] if declared else []
    return shlex.join(words)


def matrix_command(
    matrix: Mapping[str, Any], cell: CellSpec, main: str, *, packages: Iterable[str] | None, has_calibration: bool
) -> str:
    """Write `onnxfarm bench …` for a whole matrix in plain values, with the files that `cell` was given.

    `packages` are the packages to allow beyond the known distributions; None writes `onnxfarm submit …` instead, with
    `--wait`, since a farm knows what it allows. Files beside the model are named as farms take them: model.inputs.npz.
    """
    stem = main.removesuffix(".onnx")
    declared = dict(matrix)
    is_here = packages is not None
    # an `exclude` may name a release, and is read together with the releases of its matrix
    releases = declared.pop("runtime", []) if is_here and "exclude" not in declared else []
    given = {
        PROGRAM_ENDING: ("--source", cell.recipe.is_program),
        f".{INPUTS}": ("--inputs", cell.workload.inputs_sha256),
        f".{PROMPTS}": ("--prompts", scenarios.of_cell(cell).prompts_sha256),
        f".{CALIBRATION}": ("--calibration", has_calibration),
    }
    words = ["onnxfarm", "bench" if is_here else "submit", file_argument(main)]
    words += ["--ort", ",".join(_format_release(Runtime.of(release)) for release in releases)] if releases else []
    words += [word for name in sorted(packages or ()) for word in ("--allow-package", name)]
    words += ["--matrix", json.dumps(declared, sort_keys=True)] if declared else []
    words += _list_options(("--seed", cell.workload.seed or None))
    words += [
        word
        for ending, (option, is_given) in given.items()
        if is_given
        for word in (option, file_argument(f"{stem}{ending}"))
    ]
    return shlex.join(words if is_here else [*words, "--wait"])


def diverge_command(
    cell: CellSpec, main: str, *, against: Runtime | None = None, has_inputs: bool | None = None
) -> str:
    """Write `onnxfarm diverge …` for a cell, or an empty text where the cell has settings that it does not take.

    `against`: the runtime to compare with; None: the CPU without optimisations. `has_inputs`: whether a file of inputs
    lies beside the model; None: only where the cell was given one.
    """
    plain = SessionSettings().model_dump(exclude=_DIVERGE_SETTINGS)
    has_plain_work = _has_plain_shapes(cell) and _has_plain_fills(cell)
    is_plain = (
        cell.session.model_dump(exclude=_DIVERGE_SETTINGS) == plain and has_plain_work and not cell.recipe.is_program
    )
    if cell.provider_options or cell.recipe.options or not is_plain or not is_known(cell.runtime.distribution):
        return ""
    words = ["onnxfarm", "diverge", file_argument(main), "--ort", _format_release(cell.runtime)]
    words += _list_options(
        ("--against", _format_release(against) if against is not None else None),
        ("--provider", cell.provider),
        ("--threads", cell.session.threads),
        ("--level", cell.session.optimization if cell.session.optimization != "all" else None),
        ("--precision", cell.recipe.precision if cell.recipe.precision != "fp32" else None),
    )
    is_given = bool(cell.workload.inputs_sha256) if has_inputs is None else has_inputs
    batch = _list_options(("--batch", cell.workload.batch))
    made = [
        *batch,
        *_list_shape_options(cell),
        *_list_input_options(cell),
        *_list_options(("--seed", cell.workload.seed or None)),
    ]
    return shlex.join([*words, *(["--inputs", INPUTS] if is_given else made)])


def bisect_command(main: str, *, good: str, bad: str, provider: str) -> str:
    return shlex.join(["onnxfarm", "bisect", file_argument(main), "--good", good, "--bad", bad, "--provider", provider])


def submit_command(main: str, *, matrix: str = "") -> str:
    return shlex.join(["onnxfarm", "submit", file_argument(main), *(["--matrix", matrix] if matrix else []), "--wait"])


def plan_command(main: str, *, matrix: str) -> str:
    return shlex.join(["onnxfarm", "plan", file_argument(main), "--matrix", matrix])


def file_argument(main: str) -> str:
    """Write a file's name so that a leading dash does not make it an option."""
    return f"./{main}" if main.startswith("-") else main


def _format_release(runtime: Runtime) -> str:
    return runtime.version if runtime.distribution == DEFAULT_DISTRIBUTION else plugins.format_runtime(runtime)


def _list_options(*options: tuple[str, object]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, str(value))]


def _list_shape_options(cell: CellSpec) -> list[str]:
    if cell.workload.inputs_sha256 is not None:
        return []  # given inputs have them
    return [word for name, size in sorted(cell.workload.shapes.items()) for word in ("--shape", f"{name}={size}")]


def _list_input_options(cell: CellSpec) -> list[str]:
    return [word for name, text in sorted(cell.workload.inputs.items()) for word in ("--input", f"{name}={text}")]


def _has_plain_fills(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) and _TEXT.match(text) for name, text in cell.workload.inputs.items())


def _has_plain_shapes(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) for name in cell.workload.shapes)


def _list_settings_without_option(cell: CellSpec) -> dict[str, object]:
    """Find the settings that only `--matrix` can say: session options, unusual names of dimensions and so on."""
    session = session_set_of(cell.session, name="as-measured").as_plain()
    unsaid = {
        "provider": bool(cell.provider_options),
        "precision": bool(recipes.variant_options(cell.recipe)),
        "shapes": cell.workload.inputs_sha256 is None and not _has_plain_shapes(cell),
    }
    declared: dict[str, object] = {
        name: [to_plain(value)]
        for name, is_unsaid in unsaid.items()
        if is_unsaid and (value := MATRIX_AXES[name].value_in(cell)) is not None
    }
    if not _has_plain_fills(cell):
        declared["inputs"] = dict(cell.workload.inputs)
    return {**declared, **({"session": [session]} if len(session) > 1 else {})}
