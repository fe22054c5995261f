"""Reads options that measuring commands share: the axes, the matrix and its settings."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.contract.cells import Runtime
from farm.rules.cells.axes import BY_NAME, FIELD_AXES, MatrixAxis
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.points import explain_unpairable
from farm.rules.runtimes.distributions import RuntimeProblem, parse_runtime, read_names
from onnxfarm.documents import read_text
from onnxfarm.problems import Usage

# the parameter of a command that is replaced by an option for each axis
AXES_PARAMETER = "axes"


def add_axis_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `axes` of a command by an option for each axis of FIELD_AXES with a help text.

    The command is called with `axes` as a mapping from the name of each such axis to its option's text; None: not
    given.
    """
    axes = [axis for axis in FIELD_AXES if axis.help]

    @functools.wraps(command)
    def run_command(**arguments: object) -> None:
        texts = {axis.name: arguments.pop(axis.field) for axis in axes}
        command(**arguments, **{AXES_PARAMETER: texts})

    run_command.__signature__ = _make_signature(command, axes)  # type: ignore[attr-defined]
    return run_command


def _make_signature(command: Callable[..., None], axes: Sequence[MatrixAxis]) -> inspect.Signature:
    """Make the signature that typer reads: an option for each axis in place of AXES_PARAMETER."""
    signature = inspect.signature(command)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = []
    for axis in axes:
        default = str(BY_NAME[axis.name].default).lower()
        option = Annotated[str | None, typer.Option(f"--{axis.name}", help=axis.help, show_default=default)]
        options.append(inspect.Parameter(axis.field, kind, default=None, annotation=option))
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += options if parameter.name == AXES_PARAMETER else [parameter.replace(kind=kind)]
    return signature.replace(parameters=parameters)


def parse_ort_option(text: str) -> Runtime:
    """Parse one runtime of --ort, such as 1.31.1 or onnxruntime-openvino==1.24.1. Raises Usage."""
    try:
        return parse_runtime(text)
    except RuntimeProblem as problem:
        raise Usage(f"--ort: {problem}") from problem


def read_matrix(
    text: str | None, axes: Mapping[str, object], *, packages: Sequence[str] | None = None
) -> matrices.Matrix:
    """Read a matrix, and set `axes` in it: the texts of options, by the name of an axis; None: not given.

    `text`: the path of a file, - for stdin, or JSON text; None: an empty matrix. `packages`: names of packages that are
    also allowed as runtimes. Raises Usage.
    """
    try:
        allowed = read_names(",".join(packages or ()))
        if text is not None and not text.lstrip().startswith("{"):
            text = sys.stdin.read() if text == "-" else read_text(Path(text))
        base = matrices.parse(text, allowed=allowed) if text is not None else None
        return base if base is not None and not axes else matrices.from_options(base, allowed=allowed, **axes)
    except (MatrixProblem, RuntimeProblem) as problem:
        raise Usage(str(problem)) from problem


def read_matrix_without_runtimes(
    text: str | None, axes: Mapping[str, object], *, command: str, options: str
) -> matrices.Matrix:
    """Read a matrix as `read_matrix` does, for a command whose runtimes are set by options.

    `command` and `options` are their names in errors. Raises Usage also if the matrix has runtimes, or if it leaves
    nothing to compare.
    """
    declared = read_matrix(text, axes)
    if "runtime" in declared.axes:
        raise Usage(f"{command} sets the runtimes by {options}: leave `runtime` out of the matrix.")
    if (sentence := explain_unpairable(declared)) is not None:
        raise Usage(sentence)
    return declared


def apply_settings(
    declared: matrices.Matrix, *, inputs: Mapping[str, str] | None = None, **settings: object
) -> matrices.Matrix:
    """Return the matrix with these settings in place of its own. A setting that is None changes nothing.

    `inputs`: fills by the name of an input, which are added to the matrix's own and replace those of the same inputs.
    Raises Usage for a wrong setting.
    """
    changes = {name: value for name, value in settings.items() if value is not None}
    if inputs:
        changes["inputs"] = {**declared.inputs, **inputs}
    try:
        return matrices.parse({**declared.as_plain(), **changes}, allowed=declared.allowed) if changes else declared
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def parse_tolerances(texts: Sequence[str] | None) -> dict[str, dict[str, str]] | None:
    """Parse the texts of --tolerance, NAME=ATOL[,RTOL], into a matrix's `tolerance`: `atol` and `rtol` by output.

    The numbers stay texts, and are not checked. If an output is given twice, the last text counts. None if there are no
    texts. Raises Usage.
    """
    if not texts:
        return None
    tolerances: dict[str, dict[str, str]] = {}
    for text in texts:
        name, sign, numbers = text.rpartition("=")
        atol, comma, rtol = numbers.partition(",")
        if not sign or not name or not atol or (comma and not rtol):
            raise Usage(f"--tolerance {text!r} is not NAME=ATOL or NAME=ATOL,RTOL, like logits=0.001,0.01.")
        tolerances[name] = {"atol": atol, **({"rtol": rtol} if rtol else {})}
    return tolerances
