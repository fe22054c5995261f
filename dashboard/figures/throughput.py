"""Throughput by batch: a line for each runtime, provider and precision."""

from collections.abc import Sequence

from dashboard import axes, numbers
from dashboard.figures import columns, theme
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from dashboard.tables import Column, Number, Table, counted, written
from farm.contract.document import Cell

NAME = "throughput"


def throughput(cells: Sequence[Cell], address: Address) -> Figure:
    """Items per second of every cell that has a batch."""
    measured = [cell for cell in cells if cell.throughput is not None and cell.batch and cell.twin_of is None]
    if not measured:
        return nothing(NAME, "No cell with a batch has a throughput yet.", _table([], [], address))
    others = [axis for axis in axes.varying(measured) if axis.name != "batch"]
    names = list(dict.fromkeys(axes.name_of(cell, others) for cell in measured))
    lines = [[cell for cell in measured if axes.name_of(cell, others) == name] for name in names]
    best = max(measured, key=lambda cell: cell.throughput or 0.0)
    batches = sorted({cell.batch for cell in measured if cell.batch})
    return Figure(
        name=NAME,
        title=f"Most: {numbers.plain(best.throughput)} items/s at batch {best.batch}, {axes.name_of(best, others)}",
        summary=(
            f"Items per second over {numbers.count(len(batches), 'batch size')}, "
            f"{numbers.count(len(lines), 'line')}. The table below has every number."
        ),
        data=[_line(name, line, place, address) for place, (name, line) in enumerate(zip(names, lines, strict=True))],
        layout=theme.layout(
            height=320,
            xaxis=theme.axis("batch", type="category", categoryarray=[str(batch) for batch in batches]),
            yaxis=theme.axis("items/s", rangemode="tozero"),
            showlegend=True,
        ),
        table=_table(measured, others, address),
    )


def _line(name: str, cells: Sequence[Cell], place: int, address: Address) -> Json:
    cells = sorted(cells, key=lambda cell: cell.batch or 0)
    colour = theme.runtime_colour(cells[0].runtime)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [str(cell.batch) for cell in cells],
        "y": [cell.throughput for cell in cells],
        "error_y": _errors(cells, colour),
        "line": {"color": colour, "width": 1.5, "dash": theme.DASHES[place % len(theme.DASHES)]},
        "marker": {"color": colour, "size": 7, "symbol": theme.MARKS[place % len(theme.MARKS)]},
        "customdata": [address(cell.id) for cell in cells],
        "hovertemplate": "%{fullData.name}<br>batch %{x}: %{y:.4~g} items/s<extra></extra>",
    }


def _errors(cells: Sequence[Cell], colour: str) -> Json:
    """The interval of p50 carried over to items per second: fast latencies are the high end."""
    ends = []
    for cell in cells:
        value, items = cell.throughput or 0.0, 1000 * (cell.batch or 0) * cell.concurrency
        low, high = cell.p50_ci_ms or (0.0, 0.0)
        ends.append((items / high if high > 0 else value, items / low if low > 0 else value))
    return theme.whiskers([cell.throughput or 0.0 for cell in cells], ends, colour, thickness=1)


def _table(cells: Sequence[Cell], others: Sequence[axes.Axis], address: Address) -> Table:
    shown: tuple[Column[Cell], ...] = (
        columns.name(others, address),
        Number("Batch", lambda cell: counted(cell.batch or 0)),
        Number("items/s", lambda cell: written(cell.throughput)),
        columns.P50,
    )
    return Table.of(NAME, "Throughput of each cell", shown, cells)
