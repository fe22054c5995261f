"""The cells of a run as one table."""

from collections.abc import Iterable, Mapping, Sequence

from dashboard import axes
from dashboard.figures import accuracies, figure
from dashboard.figures.figure import Address
from dashboard.reading import refusals
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import BY_NAME
from farm.rules.presenting import parities, simulated, stability
from farm.rules.presenting.stability import find_unstable
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_number, verdict_entry
from farm.rules.presenting.times import Times
from farm.rules.wording import numbers, titles

PEAK = BY_NAME["peak_memory_bytes"]
# in runs whose model came with labelled data; beside parity, which says how close outputs are: these say what it costs
ACCURACY: tuple[Column[Cell], ...] = (
    Number("accuracy", accuracies.accuracy_entry, note="on labelled data, with its 95 % interval"),
    Number(
        "against the upload", accuracies.difference_entry, note="difference on the same samples, with its 95 % interval"
    ),
)


def make_table(
    cells: Iterable[Cell],
    address: Address,
    *,
    comparisons: Sequence[Comparison] = (),
    again: Address | None = None,
    states: Mapping[str, str] | None = None,
) -> Table:
    """Make the table of all these cells, A/A twins too, with their figures, their parity and the providers that ran.
    `comparisons`: whose verdicts may be at risk, and decide whether processor time is shown; `again`: the address of
    the form that runs a cell again; `states`: of cells that have not ended, by id."""
    going_on = states or {}
    known = list(cells)
    risky, times = find_unstable(known, comparisons), Times.of(known, comparisons)
    cells = [times.with_compared_figures(cell) for cell in known]
    shared = [axis for axis in axes.varying_axes(cells) if axis.name != "runtime"]
    notes = {cell.id: _write_note(cell, is_risky=cell.id in risky) for cell in cells}
    shown: tuple[Column[Cell], ...] = (
        figure.name_column(shared, address, only="the model"),
        figure.RUNTIME,
        Column("State", lambda cell: verdict_entry(going_on.get(cell.id, cell.status.value))),
        *([Prose[Cell]("Note", lambda cell: Entry(notes[cell.id]))] if any(notes.values()) else []),
        figure.p50_column(times, cells),
        figure.HALF_WIDTH,
        figure.items_column(times, cells),
        figure.time_column(times, cells, "session", "session_ms", note="creating the session"),
        figure.time_column(times, cells, "first", "first_ms", note="first inference"),
        Number("peak memory", lambda cell: as_number(cell.peak_memory_bytes, numbers.memory), note=PEAK.note),
        Column("Parity", lambda cell: verdict_entry(cell.parity.verdict, parities.describe_reference(cell.parity))),
        *(ACCURACY if any(cell.accuracy is not None for cell in cells) else ()),
        Column("Ran on", lambda cell: Entry(", ".join(map(titles.provider, cell.active_providers)))),
    )
    if again is not None:
        why = "a new run of this cell alone; you can change it before it starts"
        shown = (*shown, Column("Repeat", lambda cell: Entry("run again", href=again(cell.id)), why))
    return Table.of("cells-table", "Cells of this run", shown, cells)


def group_refused(
    cells: Iterable[Cell], address: Address, *, matrix: str | Mapping[str, object] = ""
) -> list[refusals.Group]:
    """Group the cells that the plan refused by reason; other cells are left out. `matrix`: that of the run, where
    the reader may run it with a change; empty otherwise, and then no group has a button."""
    alike = [cell for cell in cells if cell.status == CellStatus.REFUSED]
    shared = axes.varying_axes(alike)
    return refusals.group_refusals(
        alike,
        lambda cell: Entry(axes.name_of(cell, shared) if shared else cell.id, href=address(cell.id)),
        matrix=matrix,
    )


def _write_note(cell: Cell, *, is_risky: bool) -> str:
    """What a reader should know before believing the numbers."""
    parts = [
        f"A/A twin of {cell.twin_of}." if cell.twin_of else "",
        cell.reason.text if cell.reason else "",
        cell.parity.text if cell.parity.verdict == "fail" else "",
        simulated.NOTE if cell.simulated else "",
        "Launches fall into two groups." if cell.is_bimodal else "",
        stability.UNSTABLE if is_risky else "",
        f"Executed in {cell.executed_precision}." if parities.ran_in_other_precision(cell) else "",
    ]
    return " ".join(filter(None, parts))
