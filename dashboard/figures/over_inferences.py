"""Cells on fresh inputs: resident memory over inferences."""

from collections.abc import Sequence

from dashboard.figures import scales, theme
from dashboard.figures.cell_lines import CellLines
from dashboard.figures.figure import Address, Figure
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import growth
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.presenting.tables import Number, Table, written
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB

NAME = "memory-course"
# processes of one cell differ by up to 2 MiB
LEAST_SPAN_MIB = 8.0


def readings_of(cell: Cell) -> list[CellPhase]:
    """The readings of a launch in the middle, in order."""
    return [one for one in cell.phases if "resident_bytes" in one.metrics]


def figure(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A line for each cell that has readings."""
    lines = CellLines(cells, address)
    after = [one.row.metrics["inferences"] for one in lines.rows(readings_of)]
    resident = [one.row.metrics["resident_bytes"] / MIB for one in lines.rows(readings_of)]
    columns = (
        Number[CellPhase]("inferences", lambda one: written(one.metrics["inferences"], _whole)),
        Number[CellPhase]("resident, MiB", lambda one: written(one.metrics["resident_bytes"] / MIB, _one_digit)),
    )
    launches = max(one.row.launches for one in lines.rows(readings_of))
    return Figure(
        name=NAME,
        title=_finding(lines),
        summary=(
            f"Resident memory of {numbers.counted(len(cells), 'cell')} at {numbers.counted(len(after), 'point')}, the "
            f"median of {numbers.counted(launches, 'launch', 'launches')}. The table has every point."
        ),
        data=[
            lines.line(
                cell,
                [one.metrics["inferences"] for one in readings_of(cell)],
                [one.metrics["resident_bytes"] / MIB for one in readings_of(cell)],
                hover="%{x:.4~g}: %{y:.5~g} MiB",
            )
            for cell in cells
        ],
        layout=theme.layout(
            height=240,
            xaxis=theme.axis("inferences", **scales.linear(after)),
            yaxis=theme.axis("resident, MiB", **scales.linear(_spanned(resident), from_zero=False)),
            showlegend=not lines.is_alone,
        ),
        table=Table.of(NAME, "Memory over inferences", lines.columns(columns), lines.rows(readings_of)),
    )


def _finding(lines: CellLines) -> str:
    """What a cell alone says of itself; of several how many grow."""
    if lines.is_alone:
        return lines.cells[0].scenario_text.rstrip(".") or "Memory over inferences"
    told = [(cell, cell.figures[GROWTH]) for cell in lines.cells if GROWTH in cell.figures]
    growing = [cell for cell, figure in told if growth.is_growing(figure)]
    of = f"of {numbers.counted(len(lines.cells), 'cell')}"
    if growing:
        return f"Memory grows in {len(growing)} {of}: {', '.join(lines.name(one) for one in growing[:3])}"
    return f"Memory settles in {sum(growth.is_settled(figure) for _, figure in told)} {of}"


def _spanned(resident: Sequence[float]) -> list[float]:
    """The values, and so much around them that what comes and goes in any process looks as small as it is."""
    room = max(0.0, LEAST_SPAN_MIB - (max(resident) - min(resident))) / 2
    return [min(resident) - room, *resident, max(resident) + room]


def _whole(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 0)


def _one_digit(value: float | None) -> str:
    return "" if value is None else numbers.fixed(value, 1)
