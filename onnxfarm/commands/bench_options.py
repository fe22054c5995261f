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


def with_axes(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each axis in the place of its parameter `axes`, which gets their texts by name."""
    own = [axis for axis in OWN_AXES if axis.help]

    @functools.wraps(command)
    def called(**given: object) -> None:
        texts = {axis.name: given.pop(axis.field) for axis in own}
        command(**given, **{PLACE: texts})

    called.__signature__ = _signature(command, own)  # type: ignore[attr-defined]
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
    """The runtime that --ort names. Raises Usage."""
    try:
        return parse_runtime(text)
    except RuntimeProblem as problem:
        raise Usage(f"--ort: {problem}") from problem


def read_matrix(
    text: str | None, axes: Mapping[str, object], *, packages: Sequence[str] | None = None
) -> matrices.Matrix:
    """The matrix of a file, of - (stdin) or of JSON text, with the axes of the options put over it. Raises Usage.

    `packages`: names beyond the known distributions that its runtimes may have.
    """
    try:
        allowed = read_names(",".join(packages or ()))
        base = matrices.parse(_matrix_text(text), allowed=allowed) if text is not None else None
        return base if base is not None and not axes else matrices.from_options(base, allowed=allowed, **axes)
    except (MatrixProblem, RuntimeProblem) as problem:
        raise Usage(str(problem)) from problem


def read_runtimeless_matrix(text: str | None, axes: Mapping[str, object], *, asker: str, by: str) -> matrices.Matrix:
    """The matrix as `matrix_of` reads it, for a command that sets the runtimes itself. Raises Usage where it has some,
    or where nothing of it could be compared. `asker`, `by`: who sets them, with which options."""
    declared = read_matrix(text, axes)
    if "runtime" in declared.axes:
        raise Usage(f"{asker} sets the runtimes by {by}: leave `runtime` out of the matrix.")
    if (sentence := unpaired_sentence(declared)) is not None:
        raise Usage(sentence)
    return declared


def with_settings(
    declared: matrices.Matrix, *, inputs: Mapping[str, str] | None = None, **settings: object
) -> matrices.Matrix:
    """The matrix with these settings, those that are None left as they are. Raises Usage."""
    given = {name: value for name, value in settings.items() if value is not None}
    if inputs:
        # one at a time: those that the matrix says of other inputs stay
        given["inputs"] = {**declared.inputs, **inputs}
    try:
        return matrices.parse({**declared.as_plain(), **given}, allowed=declared.allowed) if given else declared
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def parse_tolerances(given: Sequence[str] | None) -> dict[str, dict[str, str]] | None:
    """The outputs of --tolerance NAME=ATOL[,RTOL], for a matrix to read. Raises Usage."""
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


def _matrix_text(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    return text if text.lstrip().startswith("{") else read_text(Path(text))
