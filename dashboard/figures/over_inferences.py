"""Cells on fresh inputs: resident memory over inferences."""

from collections.abc import Sequence

from dashboard.figures import scales, theme
from dashboard.figures.cell_lines import CellLines, Curve
from dashboard.figures.columns import rounded
from dashboard.figures.figure import Address, Figure
from farm.contract.document_cells import Cell, CellPhase
from farm.rules.cells import growth
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.presenting.tables import Number
from farm.rules.wording import numbers
from farm.rules.wording.numbers import MIB

NAME = "memory-course"
# processes of one cell differ by up to 2 MiB
MIN_SPAN_MIB = 8.0


def readings_of(cell: Cell) -> list[CellPhase]:
    """The readings of a launch in the middle, in order."""
    return [phase for phase in cell.phases if "resident_bytes" in phase.metrics]


def figure(cells: Sequence[Cell], address: Address | None = None) -> Figure:
    """A line for each cell that has readings."""
    lines = CellLines(cells, address)
    readings = [placed.row for placed in lines.rows(readings_of)]
    launches = max(reading.launches for reading in readings)
    resident = [_resident_mib(reading) for reading in readings]
    # what comes and goes in any process looks as small as it is
    room = max(0.0, MIN_SPAN_MIB - (max(resident) - min(resident))) / 2
    reached = [min(resident) - room, *resident, max(resident) + room]
    return lines.figure(
        CURVE,
        title=_finding(lines),
        summary=(
            f"Resident memory of {numbers.counted(len(cells), 'cell')} at {numbers.counted(len(readings), 'point')}, "
            f"the median of {numbers.counted(launches, 'launch', 'launches')}. The table has every point."
        ),
        xaxis=theme.axis("inferences", **scales.linear([_inferences(reading) for reading in readings])),
        yaxis=theme.axis("resident, MiB", **scales.linear(reached, from_zero=False)),
    )


def _inferences(reading: CellPhase) -> float:
    return reading.metrics["inferences"]


def _resident_mib(reading: CellPhase) -> float:
    return reading.metrics["resident_bytes"] / MIB


def _finding(lines: CellLines) -> str:
    """What a cell alone says of itself; of several how many grow."""
    if lines.is_alone:
        return lines.cells[0].scenario_text.rstrip(".") or "Memory over inferences"
    known = [(cell, cell.figures[GROWTH]) for cell in lines.cells if GROWTH in cell.figures]
    growing = [cell for cell, figure in known if growth.is_growing(figure)]
    of = f"of {numbers.counted(len(lines.cells), 'cell')}"
    if growing:
        return f"Memory grows in {len(growing)} {of}: {', '.join(lines.name(cell) for cell in growing[:3])}"
    return f"Memory settles in {sum(growth.is_settled(figure) for _, figure in known)} {of}"


CURVE = Curve(
    NAME,
    "Memory over inferences",
    readings_of,
    _inferences,
    _resident_mib,
    "%{x:.4~g}: %{y:.5~g} MiB",
    (
        Number("inferences", lambda reading: rounded(_inferences(reading))),
        Number("resident, MiB", lambda reading: rounded(_resident_mib(reading), 1)),
    ),
)
