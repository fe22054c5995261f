"""Task accuracy in tables: the value with its interval, the difference to the upload, and the operators in float."""

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
    """A third quantity for charts of latency and accuracy, of which less is better. `heading` and `note`: of its
    column; `larger`: what a larger point in the chart means; `step`: smaller differences count as none, so cells are
    compared by `count_steps`, their whole number of steps, which is infinite where the quantity was not measured."""

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


def format_value(accuracy: Accuracy) -> str:
    """Write the value of an accuracy: `98.1 %`, or a plain number where the metric is not a share."""
    return accuracy_metrics.metric_of(accuracy).format_value(accuracy.value)


def name_metric(accuracy: Accuracy) -> str:
    return accuracy_metrics.metric_of(accuracy).title


def accuracy_entry(cell: Cell) -> Entry:
    """Make the table entry of a cell's accuracy with its interval; “not measured” without labelled data."""
    if cell.accuracy is None:
        return Entry(numbers.NOT_MEASURED)
    interval = accuracy_metrics.metric_of(cell.accuracy).format_interval(cell.accuracy.ci_low, cell.accuracy.ci_high)
    return Entry(format_value(cell.accuracy), cell.accuracy.value, soft=interval)


def difference_entry(cell: Cell) -> Entry:
    """Make the table entry of the difference to the upload, followed by `worse` where the loss is significant; empty
    where the cell was not judged."""
    if cell.accuracy is None:
        return Entry()
    words = accuracy_metrics.metric_of(cell.accuracy).format_difference(cell.accuracy)
    return Entry(words, cell.accuracy.difference, soft="worse" if is_less_accurate(cell.accuracy) else "")


def make_table(
    cells: Sequence[Cell], front: frozenset[str], address: Address, times: Times = BY_CLOCK, weight: Weight = MODEL_SIZE
) -> Table:
    """Make the table of these cells, the lowest latency first, those without one last. `front`: the ids of the cells on
    the Pareto front; `times`: the kind of time that is shown; `weight`: the third quantity."""
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
    """Say which operators of a quantised cell ran in float, from its trace: “2 of 3 Conv stayed FP32, 62 % of the
    time.” Where none did, say which ran quantised. Empty for other precisions and without a trace."""
    if not recipes.is_quantised(cell.precision) or not cell.operators:
        return ""
    families = quantisation.find_float_operators(cell.operators)
    in_float = [family.sentence() for family in families if family.in_float]
    if in_float:
        return " ".join(in_float)
    ran = numbers.listed([f"{family.ran} {family.family}" for family in families])
    bits = 4 if cell.precision == "int4" else 8
    return f"{ran} ran in {bits} bits." if ran else ""
