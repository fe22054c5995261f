"""Task accuracy in sentences: how it was judged, what to try next, and which labelled data a version has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.figures import accuracies
from farm.contract.document_cells import Cell
from farm.rules.cells import recipes
from farm.rules.quality import quantisation
from farm.rules.quality.evaluation import format_recipe
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.registry.models import EvaluationData

# names under which machines report an x86 architecture
X86 = ("x86_64", "AMD64", "i686")


def list_advice(cell: Cell, *, arch: str) -> list[str]:
    """List sentences that advise how to quantise the operators that still ran in float. Empty for a cell that is not
    quantised to 8 bits or was not traced. `arch`: the architecture of the machine that measured, such as `x86_64`."""
    if cell.precision not in recipes.EIGHT_BITS or not cell.operators:
        return []
    return quantisation.advise(
        quantisation.find_float_operators(cell.operators),
        precision=cell.precision,
        activation="int8" if "activation=int8" in cell.recipe else "uint8",
        hardware="x86" if arch in X86 else arch,
    )


def list_sentences(cell: Cell) -> list[str]:
    """Describe a cell's accuracy: its value in one sentence, how it was judged and, where the value was taken from
    another cell, from which one in a second; empty without labelled data."""
    accuracy = cell.accuracy
    if accuracy is None:
        return []
    how = f"Judged by {accuracies.name_metric(accuracy)}" + (f" of {accuracy.output}" if accuracy.output else "")
    recipe = f", recipe {accuracy.recipe}" if accuracy.recipe != accuracy.metric else ""
    shared = f" Measured by {accuracy.measured_by}, which has the same variant, runtime, provider and session."
    return [accuracy.text, f"{how}{recipe}.{shared if accuracy.measured_by else ''}"]


@dataclass(frozen=True)
class LabelledData:
    """The labelled data of a version in words. `problem`: why the farm could not read the data, empty unless reading
    has failed; `is_open`: the farm has not finished reading the data."""

    sentence: str
    problem: str
    is_open: bool


def describe_labelled_data(data: "EvaluationData | None") -> LabelledData | None:
    """Describe labelled data: how many samples and classes, and how a model is judged by them; None without data."""
    if data is None:
        return None
    count = numbers.counted(data.samples or 0, "sample")
    classes = f" of {numbers.counted(data.classes, 'class', 'classes')}" if data.classes else ""
    by = f"judged by {format_recipe(data.recipe)}" + (f" of the output {data.output}" if data.output else "")
    return LabelledData(
        sentence=f"{count}{classes}, {by}.",
        problem=data.reason_text if data.state == "failed" else "",
        is_open=data.state in ("pending", "making"),
    )
