"""Throughput by batch: a line for each runtime, provider and precision."""

from collections.abc import Sequence

from dashboard import axes, numbers, words
from dashboard.figures import theme
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from dashboard.tables import Entry, Head, Table
from farm.contract.document import Cell

NAME = "throughput"
HEADS = (Head("Cell"), Head("Batch", is_number=True), Head("items/s", is_number=True), Head("p50, ms", is_number=True))


def throughput(cells: Sequence[Cell], address: Address) -> Figure:
    """Items per second of every cell that has a batch."""
    measured = [cell for cell in cells if cell.throughput is not None and cell.batch and cell.twin_of is None]
    if not measured:
        return nothing(NAME, "No cell with a batch has a throughput yet.", Table(NAME, "Throughput", HEADS))
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
    up, down = [], []
    for cell in cells:
        value, items = cell.throughput or 0.0, 1000 * (cell.batch or 0) * cell.concurrency
        low, high = cell.p50_ci_ms or (0.0, 0.0)
        up.append(max(0.0, items / low - value) if low > 0 else 0.0)
        down.append(max(0.0, value - items / high) if high > 0 else 0.0)
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "color": colour,
        "thickness": 1,
        "width": 3,
    }


def _table(cells: Sequence[Cell], others: Sequence[axes.Axis], address: Address) -> Table:
    rows = [
        (
            Entry(axes.name_of(cell, others) if others else words.runtime(cell.runtime), href=address(cell.id)),
            Entry(str(cell.batch), cell.batch),
            Entry(numbers.plain(cell.throughput), cell.throughput),
            Entry(numbers.milliseconds(cell.p50_ms, cell.p50_ci_ms), cell.p50_ms),
        )
        for cell in cells
    ]
    return Table(NAME, "Throughput of each cell", HEADS, rows)
