"""Writes the command lines that people copy to repeat the work of a cell.

The commands are written from the cell and `main`, the name of its model's file, and never from what a node reported.
Every word is quoted for a POSIX shell. Settings that no option can carry safely go into the JSON of `--matrix`, which
escapes all but plain characters. A `submit` always waits for the results, by `--wait`.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from farm.contract.blocks import Tolerance
from farm.contract.cells import PROGRAM_ENDING, CellSpec, Runtime, SessionSettings
from farm.rules.cells import recipes, scenarios
from farm.rules.cells.axes import BY_NAME, FIELD_AXES, MATRIX_AXES
from farm.rules.cells.session_sets import session_set_of
from farm.rules.cells.values import format_value, to_plain
from farm.rules.runtimes import plugins
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION, is_known
from farm.rules.runtimes.models import CALIBRATION, INPUTS, PROMPTS

# session settings that `onnxfarm diverge` takes, and `call`, which changes no output
_DIVERGE_SETTINGS = {"threads", "optimization", "call"}
# names that --shape and --tolerance take as they are, because no shell, option or list gives their characters a meaning
_PLAIN = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z", re.ASCII)
# values that --input takes as they are, for the same reason
_TEXT = re.compile(r"^[A-Za-z0-9_+.:@-]+\Z", re.ASCII)


def repeat_command(cell: CellSpec, main: str, *, tolerances: Mapping[str, Tolerance] | None = None) -> str:
    """Write `onnxfarm bench …` with every setting of the cell, except its hardware, that is not bench's default.

    Release, provider, threads and precision are always written. Files of inputs, prompts and calibration data are named
    as if they lay in the working directory. `tolerances` says by name of output how far the outputs may differ.
    """
    tolerances = tolerances or {}
    declared = _list_settings_without_option(cell)
    if not all(map(_PLAIN.match, tolerances)):
        declared["tolerance"] = {name: limit.model_dump() for name, limit in tolerances.items()}
    tolerance_options = [("--tolerance", f"{name}={limit.atol},{limit.rtol}") for name, limit in tolerances.items()]
    distribution, recipe, work = cell.runtime.distribution, cell.recipe, cell.workload
    has_calibration = recipe.options.get(recipes.SAMPLES, recipes.RANDOM) != recipes.RANDOM
    program = file_argument(f"{main.removesuffix('.onnx')}{PROGRAM_ENDING}")
    options = [
        ("--ort", _format_release(cell.runtime)),
        ("--allow-package", None if is_known(distribution) else distribution),
        ("--source", program if recipe.is_program else None),
        # an option would replace what the matrix declares
        ("--provider", None if "provider" in declared else cell.provider),
        ("--batch", work.batch),
        ("--threads", cell.session.threads),
        ("--precision", None if "precision" in declared else recipe.precision),
        ("--opset", None if recipe.opset == "as-is" else recipe.opset),
        *(
            (f"--{axis.name}", format_value(value))
            for axis in FIELD_AXES
            if axis.help and (value := axis.value_in(cell)) is not None and value != BY_NAME[axis.name].default
        ),
        ("--seed", work.seed or None),
        *([] if "shapes" in declared else _list_shape_options(cell)),
        *([] if "inputs" in declared else _list_input_options(cell)),
        *([] if "tolerance" in declared else tolerance_options),
        ("--inputs", INPUTS if work.inputs_sha256 else None),
        ("--prompts", PROMPTS if scenarios.of_cell(cell).prompts_sha256 else None),
        ("--calibration", CALIBRATION if has_calibration else None),
        ("--matrix", json.dumps(declared, sort_keys=True) if declared else None),
    ]
    return _write_command("bench", main, options)


def matrix_command(
    matrix: Mapping[str, Any], cell: CellSpec, main: str, *, packages: Iterable[str] | None, has_calibration: bool
) -> str:
    """Write `onnxfarm bench …` for a whole matrix in plain values, with the files that `cell` was given.

    `packages` are the packages to allow beyond the known distributions. If it is None, the command is
    `onnxfarm submit … --wait`, since a farm knows what it allows. Files that go with the model are named as farms take
    them: model.inputs.npz.
    """
    stem = main.removesuffix(".onnx")
    declared = dict(matrix)
    is_here = packages is not None
    # an `exclude` may name a release, and is read together with the releases of its matrix
    releases = declared.pop("runtime", []) if is_here and "exclude" not in declared else []
    given_files = [
        ("--source", PROGRAM_ENDING, cell.recipe.is_program),
        ("--inputs", f".{INPUTS}", cell.workload.inputs_sha256),
        ("--prompts", f".{PROMPTS}", scenarios.of_cell(cell).prompts_sha256),
        ("--calibration", f".{CALIBRATION}", has_calibration),
    ]
    options = [
        ("--ort", ",".join(_format_release(Runtime.of(release)) for release in releases) or None),
        *(("--allow-package", name) for name in sorted(packages or ())),
        ("--matrix", json.dumps(declared, sort_keys=True) if declared else None),
        ("--seed", cell.workload.seed or None),
        *((option, file_argument(f"{stem}{ending}")) for option, ending, is_given in given_files if is_given),
    ]
    return _write_command("bench", main, options) if is_here else _write_command("submit", main, options, "--wait")


def diverge_command(
    cell: CellSpec, main: str, *, against: Runtime | None = None, has_inputs: bool | None = None
) -> str:
    """Write `onnxfarm diverge …` for a cell; empty where the cell has settings that diverge does not take.

    Opset, concurrency and scenario are ignored. `against` is the runtime to compare with; None compares with the CPU
    without optimisations. `has_inputs` says whether a file of inputs lies next to the model; None assumes one only if
    the cell was measured with it.
    """
    work, recipe = cell.workload, cell.recipe
    has_default_session = cell.session.model_dump(exclude=_DIVERGE_SETTINGS) == SessionSettings().model_dump(
        exclude=_DIVERGE_SETTINGS
    )
    is_plain = has_default_session and _has_plain_shapes(cell) and _has_plain_fills(cell) and not recipe.is_program
    if cell.provider_options or recipe.options or not is_plain or not is_known(cell.runtime.distribution):
        return ""
    made_inputs = [
        ("--batch", work.batch),
        *_list_shape_options(cell),
        *_list_input_options(cell),
        ("--seed", work.seed or None),
    ]
    is_given = bool(work.inputs_sha256) if has_inputs is None else has_inputs
    options = [
        ("--ort", _format_release(cell.runtime)),
        ("--against", None if against is None else _format_release(against)),
        ("--provider", cell.provider),
        ("--threads", cell.session.threads),
        ("--level", None if cell.session.optimization == "all" else cell.session.optimization),
        ("--precision", None if recipe.precision == "fp32" else recipe.precision),
        *([("--inputs", INPUTS)] if is_given else made_inputs),
    ]
    return _write_command("diverge", main, options)


def bisect_command(main: str, *, good: str, bad: str, provider: str) -> str:
    return _write_command("bisect", main, [("--good", good), ("--bad", bad), ("--provider", provider)])


def submit_command(main: str, *, matrix: str = "") -> str:
    return _write_command("submit", main, [("--matrix", matrix or None)], "--wait")


def plan_command(main: str, *, matrix: str) -> str:
    return _write_command("plan", main, [("--matrix", matrix)])


def file_argument(name: str) -> str:
    """Write a file's name so that a leading dash does not make it an option."""
    return f"./{name}" if name.startswith("-") else name


def _write_command(command: str, main: str, options: Iterable[tuple[str, object]], *flags: str) -> str:
    # options whose value is None are left out
    words = [word for name, value in options if value is not None for word in (name, str(value))]
    return shlex.join(["onnxfarm", command, file_argument(main), *words, *flags])


def _format_release(runtime: Runtime) -> str:
    return runtime.version if runtime.distribution == DEFAULT_DISTRIBUTION else plugins.format_runtime(runtime)


def _list_shape_options(cell: CellSpec) -> list[tuple[str, object]]:
    if cell.workload.inputs_sha256 is not None:
        return []  # given inputs have them
    return [("--shape", f"{name}={size}") for name, size in sorted(cell.workload.shapes.items())]


def _list_input_options(cell: CellSpec) -> list[tuple[str, object]]:
    return [("--input", f"{name}={text}") for name, text in sorted(cell.workload.inputs.items())]


def _has_plain_fills(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) and _TEXT.match(text) for name, text in cell.workload.inputs.items())


def _has_plain_shapes(cell: CellSpec) -> bool:
    return all(_PLAIN.match(name) for name in cell.workload.shapes)


def _list_settings_without_option(cell: CellSpec) -> dict[str, object]:
    """Return the settings that only `--matrix` can carry, in plain values by axis, such as session options."""
    session = session_set_of(cell.session, name="as-measured").as_plain()
    lacks_option = {
        "provider": bool(cell.provider_options),
        "precision": bool(recipes.variant_options(cell.recipe)),
        "shapes": cell.workload.inputs_sha256 is None and not _has_plain_shapes(cell),
    }
    declared: dict[str, object] = {
        name: [to_plain(value)]
        for name, is_lacking in lacks_option.items()
        if is_lacking and (value := MATRIX_AXES[name].value_in(cell)) is not None
    }
    if not _has_plain_fills(cell):
        declared["inputs"] = dict(cell.workload.inputs)
    return {**declared, **({"session": [session]} if len(session) > 1 else {})}
