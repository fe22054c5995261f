"""Options that every measuring command reads alike."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.contract.cells import Runtime
from farm.rules.cells.axes import BY_NAME, OWN_AXES, MatrixAxis
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.points import unpaired_sentence
from farm.rules.runtimes.distributions import RuntimeProblem, parse_runtime, read_names
from onnxfarm.documents import read_text
from onnxfarm.problems import Usage

# the parameter of a command in whose place the options stand
PLACE = "axes"


def add_axis_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: its parameter `axes` becomes an option for each axis, and gets their texts by axis name."""
    optional_axes = [axis for axis in OWN_AXES if axis.help]

    @functools.wraps(command)
    def called(**given: object) -> None:
        texts = {axis.name: given.pop(axis.field) for axis in optional_axes}
        command(**given, **{PLACE: texts})

    called.__signature__ = _signature(command, optional_axes)  # type: ignore[attr-defined]
    return called


def _signature(command: Callable[..., None], own: Sequence[MatrixAxis]) -> inspect.Signature:
    written = inspect.signature(command)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = []
    for axis in own:
        usual = str(BY_NAME[axis.name].default).lower()
        option = Annotated[str | None, typer.Option(f"--{axis.name}", help=axis.help, show_default=usual)]
        options.append(inspect.Parameter(axis.field, kind, default=None, annotation=option))
    parameters: list[inspect.Parameter] = []
    for parameter in written.parameters.values():
        parameters += options if parameter.name == PLACE else [parameter.replace(kind=kind)]
    return written.replace(parameters=parameters)


def parse_ort_option(text: str) -> Runtime:
    """Parse the runtime that --ort names. Raises Usage."""
    try:
        return parse_runtime(text)
    except RuntimeProblem as problem:
        raise Usage(f"--ort: {problem}") from problem


def read_matrix(
    text: str | None, axes: Mapping[str, object], *, packages: Sequence[str] | None = None
) -> matrices.Matrix:
    """Read the matrix of a file, of - (stdin) or of JSON text (`text`), and put the axes of the options over it.

    `packages`: names beyond the known distributions that its runtimes may have. Raises Usage for a matrix that cannot
    be read.
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
    text: str | None, axes: Mapping[str, object], *, asker: str, by: str
) -> matrices.Matrix:
    """Read a matrix as `read_matrix` does, for a command that sets the runtimes itself.

    `asker` and `by` name that command and its options in the error. Raises Usage where the matrix has runtimes, or
    where nothing of it could be compared.
    """
    declared = read_matrix(text, axes)
    if "runtime" in declared.axes:
        raise Usage(f"{asker} sets the runtimes by {by}: leave `runtime` out of the matrix.")
    if (sentence := unpaired_sentence(declared)) is not None:
        raise Usage(sentence)
    return declared


def apply_settings(
    declared: matrices.Matrix, *, inputs: Mapping[str, str] | None = None, **settings: object
) -> matrices.Matrix:
    """Return the matrix with these settings in place of its own; one that is None is left as it is.

    `inputs` are added to the matrix's own, by name. Raises Usage for a setting that cannot be read.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if inputs:
        # one at a time: those that the matrix says of other inputs stay
        given["inputs"] = {**declared.inputs, **inputs}
    try:
        return matrices.parse({**declared.as_plain(), **given}, allowed=declared.allowed) if given else declared
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def parse_tolerances(given: Sequence[str] | None) -> dict[str, dict[str, str]] | None:
    """Parse --tolerance NAME=ATOL[,RTOL] into texts by output, as a matrix reads them. Raises Usage."""
    if not given:
        return None
    found: dict[str, dict[str, str]] = {}
    for text in given:
        name, sign, numbers = text.rpartition("=")
        atol, comma, rtol = numbers.partition(",")
        if not sign or not name or not atol or (comma and not rtol):
            raise Usage(f"--tolerance {text!r} is not NAME=ATOL or NAME=ATOL,RTOL, like logits=0.001,0.01.")
        found[name] = {"atol": atol, **({"rtol": rtol} if rtol else {})}
    return found
