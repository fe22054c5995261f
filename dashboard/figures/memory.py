"""Peak memory of each cell's process, beside the bytes of the model it had loaded."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures import colours, columns, scales, theme
from dashboard.figures.excerpts import barred
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.wording import numbers, titles
from farm.rules.wording.numbers import MIB

NAME = "memory"


def memory(cells: Sequence[Cell], address: Address) -> Figure:
    """A bar for each cell whose memory is known; where there are many, the least, the most and some between."""
    known = [cell for cell in cells if cell.twin_of is None and cell.peak_memory_bytes]
    if not known:
        return nothing(NAME, "No cell has reported its memory yet.", _table([], [], address))
    along = axes.varying(known)
    shown, rest = barred(known, _peak)
    return Figure(
        name=NAME,
        title=finding(known, along),
        summary=(
            f"Peak memory of the process of {numbers.counted(len(known), 'cell')}, measured in one process each, so "
            f"without an interval.{rest} The table below has every number."
        ),
        data=[_bars(shown, along, address)],
        layout=theme.row_layout(
            len(shown),
            theme.axis(
                "peak memory of the process, MiB",
                **scales.linear([_peak(cell) / MIB for cell in shown], room=scales.FOR_LABELS),
            ),
        ),
        table=_table(known, along, address),
    )


def finding(cells: Sequence[Cell], along: Sequence[axes.Axis]) -> str:
    """The least beside the most."""
    most, least = max(cells, key=_peak), min(cells, key=_peak)
    if most is least:
        return f"At most {numbers.memory(_peak(most))}"
    return (
        f"From {numbers.memory(_peak(least))} ({axes.name_of(least, along)}) "
        f"to {numbers.memory(_peak(most))} ({axes.name_of(most, along)})"
    )


def _peak(cell: Cell) -> float:
    return float(cell.peak_memory_bytes or 0)


def _bars(cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Json:
    colour_of = colours.of_cells(cells)
    return {
        "type": "bar",
        "orientation": "h",
        "y": [axes.name_of(cell, along) for cell in cells],
        "x": [round(_peak(cell) / MIB, 2) for cell in cells],
        "text": [numbers.memory(_peak(cell)) for cell in cells],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 11, "color": theme.SOFT},
        "marker": {"color": [colour_of(cell) for cell in cells]},
        "customdata": [[address(cell.id), titles.runtime(cell.runtime)] for cell in cells],
        "hovertemplate": "%{y}, %{customdata[1]}<br>%{x:.4~g} MiB<extra></extra>",
    }


def _table(cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Table:
    shown: tuple[Column[Cell], ...] = (
        columns.name(along, address),
        columns.RUNTIME,
        Number(
            "peak, MiB",
            lambda cell: Entry(numbers.plain(_peak(cell) / MIB), _peak(cell)),
            note="of the whole process: Python, ONNX Runtime, model, inputs and outputs",
        ),
        Number(
            "model, MiB",
            lambda cell: Entry(numbers.plain(cell.model_bytes / MIB if cell.model_bytes else None), cell.model_bytes),
        ),
    )
    return Table.of(NAME, "Peak memory of each cell's process", shown, cells)
