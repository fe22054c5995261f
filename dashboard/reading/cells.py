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
# columns of runs whose model has labelled data
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
    """Make the table of all these cells, including A/A twins. `address`: links a cell by its id; `comparisons`: decide
    which kind of time is shown and which cells are marked as unstable; `again`: links a cell's id to the form that runs
    the cell again, and without it that column is missing; `states`: the states of cells that have not ended, by id."""
    open_states = states or {}
    recorded = list(cells)
    unstable, times = find_unstable(recorded, comparisons), Times.of(recorded, comparisons)
    cells = [times.with_compared_figures(cell) for cell in recorded]
    shared = [axis for axis in axes.varying_axes(cells) if axis.name != "runtime"]
    notes = {cell.id: _write_note(cell, is_unstable=cell.id in unstable) for cell in cells}
    shown: tuple[Column[Cell], ...] = (
        figure.name_column(shared, address, only="the model"),
        figure.RUNTIME,
        Column("State", lambda cell: verdict_entry(open_states.get(cell.id, cell.status.value))),
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
    """Group the refused cells by reason, the largest group first; other cells are left out. `matrix`: the matrix of the
    run where the reader may run it with a change, else empty, and then no group has a button."""
    refused = [cell for cell in cells if cell.status == CellStatus.REFUSED]
    varying = axes.varying_axes(refused)

    def entry(cell: Cell) -> Entry:
        return Entry(axes.name_of(cell, varying) if varying else cell.id, href=address(cell.id))

    return refusals.group_refusals(refused, entry, matrix=matrix)


def _write_note(cell: Cell, *, is_unstable: bool) -> str:
    """Say what a reader should know before trusting the figures; empty where there is nothing."""
    parts = [
        f"A/A twin of {cell.twin_of}." if cell.twin_of else "",
        cell.reason.text if cell.reason else "",
        cell.parity.text if cell.parity.verdict == "fail" else "",
        simulated.NOTE if cell.simulated else "",
        "Launches fall into two groups." if cell.is_bimodal else "",
        stability.UNSTABLE if is_unstable else "",
        f"Executed in {cell.executed_precision}." if parities.ran_in_other_precision(cell) else "",
    ]
    return " ".join(filter(None, parts))
