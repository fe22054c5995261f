"""Cold start: what a fresh process pays before its first answer, part by part, for each cell."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dashboard import axes
from dashboard.figures import columns, scales, theme
from dashboard.figures.excerpts import barred
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Number, Table, written
from farm.rules.wording import numbers

NAME = "cold-start"

Part = tuple[str, str, Callable[[Cell], float | None]]
PARTS: tuple[Part, ...] = (
    ("import", theme.OTHER, lambda cell: cell.import_ms),
    ("session creation", "@accent/45", lambda cell: cell.session_ms),
    ("first inference", "@accent", lambda cell: cell.first_ms),
)


def cold_start(cells: Sequence[Cell], address: Address) -> Figure:
    """A stacked bar for each cell that was started; where there are many, the fastest, the slowest and some between."""
    known = [cell for cell in cells if cell.twin_of is None and None not in (cell.session_ms, cell.first_ms)]
    if not known:
        return nothing(NAME, "No cell has created a session yet.", _table([], [], address))
    along = axes.varying(known)
    shown, rest = barred(known, _whole)
    return Figure(
        name=NAME,
        title=finding(known, along),
        summary=(
            f"Import, session creation and first inference of {numbers.counted(len(known), 'cell')}, each in one fresh "
            f"process, so without an interval.{rest} The table below has every number."
        ),
        data=[_bars(part, shown, along, address) for part in PARTS],
        layout=theme.row_layout(
            len(shown),
            theme.axis(
                "ms until the first answer, in one fresh process", **scales.linear([_whole(one) for one in shown])
            ),
            barmode="stack",
            showlegend=True,
        ),
        table=_table(known, along, address),
    )


def finding(cells: Sequence[Cell], along: Sequence[axes.Axis]) -> str:
    """The slowest start beside the fastest."""
    slowest, fastest = max(cells, key=_whole), min(cells, key=_whole)
    if len(cells) == 1:
        return f"{numbers.plain(_whole(slowest))} ms until the first answer"
    return (
        f"Until the first answer: {numbers.plain(_whole(fastest))} ms ({axes.name_of(fastest, along)}) "
        f"to {numbers.plain(_whole(slowest))} ms ({axes.name_of(slowest, along)})"
    )


def _whole(cell: Cell) -> float:
    return sum(of(cell) or 0.0 for _, _, of in PARTS)


def _bars(part: Part, cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Json:
    name, colour, of = part
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [axes.name_of(cell, along) for cell in cells],
        "x": [float(f"{of(cell) or 0.0:.4g}") for cell in cells],
        "marker": {"color": colour, "line": {"color": "@paper", "width": 1}},
        "customdata": [address(cell.id) for cell in cells],
        "hovertemplate": "%{y}<br>%{fullData.name}: %{x:.4~g} ms<extra></extra>",
    }


def _table(cells: Sequence[Cell], along: Sequence[axes.Axis], address: Address) -> Table:
    shown: tuple[Column[Cell], ...] = (
        columns.name(along, address),
        Number("import, ms", lambda cell: written(cell.import_ms), note="of ONNX Runtime, in a fresh process"),
        Number("session creation, ms", lambda cell: written(cell.session_ms)),
        Number("first inference, ms", lambda cell: written(cell.first_ms)),
        Number("together, ms", lambda cell: written(_whole(cell))),
        replace(columns.P50, text="then p50, ms"),
    )
    return Table.of(NAME, "Cold start of each cell", shown, cells)
