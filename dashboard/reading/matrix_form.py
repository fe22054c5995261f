"""The matrix as a form beside its text: one field an axis, values parted by commas; each changes the other."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from farm.contract.cells import Budget
from farm.rules.cells.axes import BY_NAME, OWN_AXES
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import Value, plain_of, words_of
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.matrix_text import write_text
from farm.rules.runtimes import providers

PREFIX = "axis-"
BUDGET = f"{PREFIX}budget"
MOST_TYPED = 2000
USUAL = "onnxruntime=="
# axis: what its field is called, and an example of what goes into it
LABELS = {
    "runtime": ("Releases", "1.29.0, 1.31.1"),
    "provider": ("Providers", "cpu, openvino"),
    "batch": ("Batch sizes", "1, 8"),
    "precision": ("Precisions", "fp32, int8-dynamic"),
    "threads": ("Threads", "1, 4"),
    "opset": ("Opsets", "as-is, 21"),
    "optimization": ("Optimization", "basic, all"),
    "hardware": ("Hardware", "cpu, cuda"),
    "concurrency": ("Concurrency", "1, 2"),
}
LABELS |= {axis.name: (BY_NAME[axis.name].heading, axis.example) for axis in OWN_AXES if axis.name not in LABELS}


@dataclass(frozen=True)
class Field:
    """One axis. `is_text`: its values can be written on one line; others stand in the text alone."""

    name: str
    label: str
    example: str
    value: str
    is_text: bool


@dataclass(frozen=True)
class Form:
    """The fields, and which budget is chosen."""

    fields: list[Field]
    budget: str
    budgets: tuple[str, ...] = tuple(one.value for one in Budget)


def form_of(text: str) -> Form | None:
    """The matrix in a text as fields; None where it cannot be read, so that the fields stay as they are."""
    try:
        matrix = matrices.parse(text, allowed=settings.ALLOWED_PACKAGES)
    except MatrixProblem:
        return None
    return Form([_field(name, matrix) for name in LABELS], matrix.budget.value)


def _field(name: str, matrix: Matrix) -> Field:
    label, example = LABELS[name]
    written = [_line(name, value) for value in matrix.axes.get(name, ())]
    is_text = None not in written
    return Field(name, label, example, ", ".join(filter(None, written)), is_text)


def _line(name: str, value: Value) -> str | None:
    """A value as its field has it; None for one with options of its own that are not part of its name."""
    plain = plain_of(value)
    if isinstance(plain, Mapping) and name != "precision":
        return None
    label = words_of(value).removeprefix(USUAL)
    return providers.resolve(label).short if name == "provider" else label


def differs(text: str, posted: Mapping[str, object]) -> bool:
    """Whether fields that were sent say something else than the text: one was typed into just before."""
    form = form_of(text)
    if form is None:
        return False
    said = {f"{PREFIX}{one.name}": one.value for one in form.fields if one.is_text} | {BUDGET: form.budget}
    return any(_parts(str(posted[name])) != _parts(value) for name, value in said.items() if name in posted)


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line.split(",") if part.strip()]


def changed(text: str, name: str, typed: str) -> str:
    """The text after one field was typed into; an empty one takes its axis away. Raises MatrixProblem.

    Comments of the text go: it is written anew.
    """
    plain = matrices.parse(text, allowed=settings.ALLOWED_PACKAGES).as_plain()
    axis, value = name.removeprefix(PREFIX), typed[:MOST_TYPED].replace("\x00", "").strip()
    if name == BUDGET:
        plain["budget"] = value
    elif axis in LABELS:
        values = _parts(value)
        plain["matrix"].pop(axis, None)
        plain["matrix"] |= {axis: values} if values else {}
    written = matrices.parse(plain, allowed=settings.ALLOWED_PACKAGES).as_plain()
    if not written["fail-fast"]:
        del written["fail-fast"]
    return write_text(written)
