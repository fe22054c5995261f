"""The cells of a run as one table."""

from collections.abc import Iterable

from dashboard import axes, numbers, words
from dashboard.figures import accuracies
from dashboard.figures.figure import Address
from dashboard.tables import Entry, Head, Table, verdict_entry
from farm.contract.document import Cell

HEADS = (
    Head("Cell"),
    Head("Runtime"),
    Head("State"),
    Head("p50, ms", is_number=True),
    Head("±, ms", is_number=True, note="half of the 95 % interval over process launches"),
    Head("items/s", is_number=True),
    Head("session, ms", is_number=True, note="creating the session"),
    Head("first, ms", is_number=True, note="first inference"),
    Head("peak memory", is_number=True),
    Head("Parity"),
    Head("Ran on"),
    Head("Note", is_text=True),
)
# in runs whose model came with labelled data
ACCURACY = (
    Head("accuracy", is_number=True, note="on labelled data, with its 95 % interval"),
    Head("against FP32", is_number=True, note="difference on the same samples, with its 95 % interval"),
)
AFTER_PARITY = 1 + [head.text for head in HEADS].index("Parity")


def table(cells: Iterable[Cell], address: Address) -> Table:
    """Every cell that ended, with its figures, its parity and what it ran on."""
    cells = list(cells)
    shared = [axis for axis in axes.varying(cells) if axis.name != "runtime"]
    rows = [_row(cell, shared, address) for cell in cells]
    heads: tuple[Head, ...] = HEADS
    if any(cell.accuracy is not None for cell in cells):
        # beside parity, which says how close outputs are; this says what it costs
        heads = (*HEADS[:AFTER_PARITY], *ACCURACY, *HEADS[AFTER_PARITY:])
        judged = ((accuracies.entry(cell), accuracies.difference_entry(cell)) for cell in cells)
        rows = [(*row[:AFTER_PARITY], *two, *row[AFTER_PARITY:]) for row, two in zip(rows, judged, strict=True)]
    return Table("cells-table", "Cells of this run", heads, rows)


def _row(cell: Cell, shared: list[axes.Axis], address: Address) -> tuple[Entry, ...]:
    half = numbers.half_width(cell.p50_ci_ms)
    return (
        Entry(axes.name_of(cell, shared) if shared else "the model", href=address(cell.id)),
        Entry(words.runtime(cell.runtime), is_name=True),
        verdict_entry(cell.status.value),
        Entry(numbers.milliseconds(cell.p50_ms, cell.p50_ci_ms), cell.p50_ms),
        Entry(numbers.plus_minus(cell.p50_ms, cell.p50_ci_ms).removeprefix("± "), half),
        Entry(numbers.plain(cell.throughput), cell.throughput),
        Entry(numbers.plain(cell.session_ms), cell.session_ms),
        Entry(numbers.plain(cell.first_ms), cell.first_ms),
        Entry(numbers.memory(cell.peak_memory_bytes), cell.peak_memory_bytes),
        verdict_entry(cell.parity.verdict),
        Entry(", ".join(map(words.provider, cell.active_providers))),
        Entry(_note(cell)),
    )


def _note(cell: Cell) -> str:
    """What a reader should know before believing the numbers."""
    parts = [
        f"A/A twin of {cell.twin_of}." if cell.twin_of else "",
        cell.reason.text if cell.reason else "",
        "Launches fall into two groups." if cell.is_bimodal else "",
        "Unstable." if cell.is_stable is False else "",
        f"Executed in {cell.executed_precision}." if _is_other_precision(cell) else "",
    ]
    return " ".join(filter(None, parts))


def _is_other_precision(cell: Cell) -> bool:
    return bool(cell.executed_precision) and cell.executed_precision != cell.precision
