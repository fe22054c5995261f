"""The numbers of task accuracy: the value with its interval, the difference to FP32, what stayed in float."""

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from dashboard import axes
from dashboard.figures import figure
from dashboard.figures.figure import Address
from farm.contract.document_cells import Accuracy, Cell
from farm.rules.cells import recipes
from farm.rules.cells.metrics import MIN_MEMORY
from farm.rules.presenting import parities
from farm.rules.presenting.lines import is_less_accurate
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_number, verdict_entry
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.quality import accuracy_metrics, quantisation
from farm.rules.wording import numbers


class Weight(NamedTuple):
    """What is weighed beside latency and accuracy, where less is better. `heading`: of its column, with the `note` that
    explains it; `larger`: what a larger point means; `step`: a smaller difference counts as none."""

    heading: str
    note: str
    larger: str
    read: Callable[[Cell], float | None]
    format: Callable[[float | None], str]
    step: float = 1.0

    def count_steps(self, cell: Cell) -> float:
        amount = self.read(cell)
        return inf if amount is None else amount // self.step


MODEL_SIZE = Weight(
    "size", "the .onnx and its external data", "a larger model", lambda cell: cell.model_bytes, numbers.size
)
PEAK_MEMORY = Weight(
    "peak memory",
    "of a process that loads and runs the model once",
    "more peak memory",
    lambda cell: cell.peak_memory_bytes,
    numbers.memory,
    MIN_MEMORY,
)


def format_value(accuracy: Accuracy | None) -> str:
    """Write the value of an accuracy: `98.1 %`, or three digits where the metric is no share; “not measured” for
    None."""
    return (
        numbers.NOT_MEASURED if accuracy is None else accuracy_metrics.metric_of(accuracy).format_value(accuracy.value)
    )


def format_interval(accuracy: Accuracy | None) -> str:
    """Write the interval of an accuracy: `96.6–99.0 %`; empty where there is none."""
    return (
        ""
        if accuracy is None
        else accuracy_metrics.metric_of(accuracy).format_interval(accuracy.ci_low, accuracy.ci_high)
    )


def name_metric(accuracy: Accuracy) -> str:
    return accuracy_metrics.metric_of(accuracy).title


def accuracy_entry(cell: Cell) -> Entry:
    accuracy = cell.accuracy
    return Entry(format_value(accuracy), accuracy.value if accuracy else None, soft=format_interval(accuracy))


def difference_entry(cell: Cell) -> Entry:
    """Make the entry of the difference to FP32, with `worse` beside it where it is shown to be a loss; empty where
    it is not known."""
    accuracy = cell.accuracy
    worse = "worse" if accuracy is not None and is_less_accurate(accuracy) else ""
    words = "" if accuracy is None else accuracy_metrics.metric_of(accuracy).format_difference(accuracy)
    return Entry(words, accuracy.difference if accuracy else None, soft=worse)


def make_table(
    cells: Sequence[Cell], front: frozenset[str], address: Address, times: Times = BY_CLOCK, weight: Weight = MODEL_SIZE
) -> Table:
    """Make the table of cells with labelled data, smallest latency first. `front`: the ids of cells that are marked
    as on the Pareto front; `times`: of the cells; `weight`: what is compared beside latency and accuracy."""
    along = axes.varying_axes(cells)
    shown: tuple[Column[Cell], ...] = (
        figure.name_column(along, address, only="the model"),
        Number(weight.heading, lambda cell: as_number(weight.read(cell), weight.format), note=weight.note),
        figure.p50_column(times, cells),
        Number("accuracy", accuracy_entry, note="with its 95 % interval"),
        Number(
            "against the upload",
            difference_entry,
            note="on the same samples, with the 95 % interval of the paired difference",
        ),
        Column("Parity", lambda cell: verdict_entry(cell.parity.verdict, parities.describe_reference(cell.parity))),
        Column(
            "Pareto front",
            lambda cell: Entry("on the front" if cell.id in front else "", int(cell.id not in front)),
            note="no other cell is at least as fast, as small and as accurate, and better in one",
        ),
        Prose("What it ran", lambda cell: Entry(describe_float_operators(cell))),
    )
    ordered = sorted(cells, key=lambda cell: (cell.p50_ms is None, cell.p50_ms))
    return Table.of("pareto", f"{weight.heading.capitalize()}, latency and accuracy of each cell", shown, ordered)


def describe_float_operators(cell: Cell) -> str:
    """Describe what of a quantised variant ran in float, from its trace: “2 of 3 Conv stayed FP32, 62 % of the
    time.” Where nothing did, it says what ran quantised; empty for other precisions and without a trace."""
    if not recipes.is_quantised(cell.precision) or not cell.operators:
        return ""
    families = quantisation.find_float_operators(cell.operators)
    in_float = [family.sentence() for family in families if family.in_float]
    if in_float:
        return " ".join(in_float)
    ran = numbers.listed([f"{family.ran} {family.family}" for family in families])
    bits = 4 if cell.precision == "int4" else 8
    return f"{ran} ran in {bits} bits." if ran else ""
