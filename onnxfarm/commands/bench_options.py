"""Options that every measuring command reads alike."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix as matrices
from farm.rules.runtimes.distributions import RuntimeProblem, read_names
from onnxfarm.documents import read_text
from onnxfarm.problems import Usage


def matrix_of(text: str | None, axes: dict[str, Any], *, packages: Sequence[str] | None = None) -> matrices.Matrix:
    """The matrix of a file, of - (stdin) or of JSON text, with the axes of the options put over it. Raises Usage.

    `packages`: names beyond the known distributions that its runtimes may have.
    """
    try:
        allowed = read_names(",".join(packages or ()))
        base = matrices.parse(_matrix_text(text), allowed=allowed) if text is not None else None
        return base if base is not None and not axes else matrices.from_options(base, allowed=allowed, **axes)
    except (MatrixProblem, RuntimeProblem) as problem:
        raise Usage(str(problem)) from problem


def with_settings(declared: matrices.Matrix, **settings: Any) -> matrices.Matrix:
    """The matrix with these settings, those that are None left as they are. Raises Usage."""
    given = {name: value for name, value in settings.items() if value is not None}
    if "inputs" in given:
        # one at a time: those that the matrix says of other inputs stay
        given["inputs"] = {**declared.inputs, **given["inputs"]}
    try:
        return matrices.parse({**declared.as_plain(), **given}, allowed=declared.allowed) if given else declared
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def tolerances_of(given: Sequence[str] | None) -> dict[str, dict[str, str]] | None:
    """The outputs of --tolerance NAME=ATOL[,RTOL], for a matrix to read. Raises Usage."""
    if not given:
        return None
    found: dict[str, dict[str, str]] = {}
    for one in given:
        name, sign, numbers = one.rpartition("=")
        atol, comma, rtol = numbers.partition(",")
        if not sign or not name or not atol or (comma and not rtol):
            raise Usage(f"--tolerance {one!r} is not NAME=ATOL or NAME=ATOL,RTOL, like logits=0.001,0.01.")
        found[name] = {"atol": atol, **({"rtol": rtol} if rtol else {})}
    return found


def _matrix_text(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    return text if text.lstrip().startswith("{") else read_text(Path(text))
