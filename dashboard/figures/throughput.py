"""The chart of throughput by batch, with a line for each combination of the other settings."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures import colours, figure, scales, theme, traces
from dashboard.figures.figure import Address, Figure, empty_figure
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import prefills
from farm.rules.presenting.lines import format_items_per_s
from farm.rules.presenting.tables import Column, Number, Table, as_count
from farm.rules.presenting.times import Times, format_items
from farm.rules.wording import numbers

NAME = "throughput"


def draw_throughput(cells: Sequence[Cell], address: Address, comparisons: Sequence[Comparison] = ()) -> Figure:
    """Draw items per second over the batch, for every cell with a batch except A/A twins, by the time that verdicts
    rest on. The title names the highest, of cells with right outputs if there are any. Without such cells the chart is
    empty and says so."""
    times = Times.of(cells, comparisons)
    known = [cell for cell in cells if cell.throughput is not None and cell.batch and cell.twin_of is None]
    measured = [times.with_compared_time(cell) for cell in known]
    others = [axis for axis in axes.varying_axes(measured) if axis.name != "batch"]
    shown: tuple[Column[Cell], ...] = (
        figure.name_column(others, address),
        Number("Batch", lambda cell: as_count(cell.batch or 0)),
        figure.items_column(times, measured),
        figure.p50_column(times, measured),
    )
    table = Table.of(NAME, "Throughput of each cell", shown, measured)
    if not measured:
        return empty_figure(NAME, "No cell with a batch has a throughput yet.", table)
    names = list(dict.fromkeys(axes.name_of(cell, others) for cell in measured))
    lines = [[cell for cell in measured if axes.name_of(cell, others) == name] for name in names]
    best = max(figure.select_right_cells(measured), key=lambda cell: cell.throughput or 0.0)
    most = format_items(best, is_processor=best.id in times.by_processor)
    batches = sorted({cell.batch for cell in measured if cell.batch})
    return Figure(
        name=NAME,
        title=f"Most: {most} at batch {best.batch}, {axes.name_of(best, others)}",
        summary=(
            f"Items per second over {numbers.counted(len(batches), 'batch size')}, "
            f"{numbers.counted(len(lines), 'line')}. The table below has every number."
        ),
        data=[
            _draw(line, batches, name=name, colour=colour, address=address)
            for name, line, colour in zip(names, lines, _choose_colours(lines, measured), strict=True)
        ],
        layout=theme.make_layout(
            height=320,
            xaxis=theme.make_axis("batch", **scales.make_categories([*map(str, batches)])),
            yaxis=theme.make_axis(
                times.heading("items/s", NAME, measured),
                **scales.make_linear([end for cell in measured for end in _items_interval(cell)]),
            ),
            showlegend=len(lines) > 1,
        ),
        table=table,
        note="Whiskers: the 95 % interval of the median, as items/s. A break in a line: not measured with that batch."
        + (f" Items are {prefills.ITEMS_NOTE}." if any(map(prefills.is_generated, measured)) else ""),
    )


def _choose_colours(lines: Sequence[Sequence[Cell]], measured: Sequence[Cell]) -> list[str]:
    """Choose the colours of the lines. Where there are many, only the SLOTS highest lines are coloured."""
    colour_of = colours.choose_cell_colour(measured)
    highest = sorted(range(len(lines)), key=lambda place: -max(cell.throughput or 0.0 for cell in lines[place]))
    return [colour_of(line[0]) if place in highest[: theme.SLOTS] else colours.GREY for place, line in enumerate(lines)]


def _draw(measured: Sequence[Cell], batches: Sequence[int], *, name: str, colour: str, address: Address) -> theme.Json:
    by_batch = {cell.batch: cell for cell in measured}
    # None breaks the line at a batch without a cell
    cells = [by_batch.get(batch) for batch in batches]
    values = [None if cell is None else cell.throughput for cell in cells]
    intervals = [None if cell is None else _items_interval(cell) for cell in cells]
    return traces.make_line(
        map(str, batches),
        values,
        colour,
        mark=colours.cell_mark(measured[0]),
        dash=colours.cell_dash(measured[0]),
        name=name,
        connectgaps=False,
        error_y=traces.make_whiskers(values, intervals, colour, thickness=1),
        customdata=["" if cell is None else address(cell.id) for cell in cells],
        text=["" if cell is None else format_items_per_s(cell) for cell in cells],
        hover="%{fullData.name}<br>batch %{x}: %{text} items/s",
        cliponaxis=False,
    )


def _items_interval(cell: Cell) -> tuple[float, float]:
    """Convert the interval of p50 to items per second. The low end of latency becomes the high end."""
    value, items = cell.throughput or 0.0, 1000 * (cell.batch or 0) * cell.concurrency
    low, high = cell.p50_ci_ms or (0.0, 0.0)
    return items / high if high > 0 else value, items / low if low > 0 else value
