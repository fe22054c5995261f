"""Charts of the compare page: one metric of the compared cells as bars, and of matched cells as a point for each run.
Only metrics can be drawn of which more or less is better, and which a cell has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.figures import colours, scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure, shorten_end
from dashboard.metrics import axis_title, axis_value, metric_with_unit, title
from farm.contract.document_cells import Cell
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.wording import numbers

NAME = "beside"
MAX_ROWS = 24
# maps a run's number and a cell's id to the address of the cell's page
RunAddress = Callable[[int, str], str]


@dataclass(frozen=True)
class Bar:
    """A compared cell. `href`: its page; `change`: its change against the base, in words, which labels the bar;
    `tone`: the tone of the verdict on the drawn metric, empty for the base and where there is none."""

    name: str
    cell: Cell
    href: str
    change: str = ""
    tone: str = ""


def drawable_metrics(cells: Sequence[Cell]) -> list[Metric]:
    known = [metric for metric in METRICS if metric.title and metric.better]
    return [metric for metric in known if any(metric.value(cell) is not None for cell in cells)]


def draw_cells(metric: Metric, bars: Sequence[Bar]) -> Figure:
    """Draw the cells as bars from zero, the base first, and a dotted line at the first that has a figure. Bars have the
    colour of their verdict; the base and bars without a change are grey. Cells without a figure have no bar; the
    summary names at most three of them and counts the others; without any figure the chart is empty and says so."""
    columns = (
        Column[Bar]("Cell", lambda bar: Entry(bar.name, href=bar.href)),
        Number[Bar](metric.title, lambda bar: Entry(metric_with_unit(metric, bar.cell, has_interval=True))),
        Number[Bar]("change", lambda bar: Entry(bar.change), "against the base"),
    )
    table = Table.of(NAME, f"{metric.title} of each cell", columns, bars)
    drawn = [bar for bar in bars if metric.value(bar.cell) is not None]
    if not drawn:
        return empty_figure(NAME, f"None of these cells has a figure for {metric.title}.", table)
    values = [axis_value(metric, bar.cell) or 0.0 for bar in drawn]
    intervals = [metric.interval_of(bar.cell) for bar in drawn]
    return Figure(
        name=NAME,
        title=write_finding(metric, drawn, values),
        summary=_write_summary(metric, bars, drawn),
        data=[
            traces.make_bars(
                values,
                range(len(drawn)),
                marker={"color": [theme.OTHER if bar.tone in ("", "quiet") else f"@{bar.tone}" for bar in drawn]},
                error_x=traces.make_whiskers(values, intervals, theme.INK),
                text=[
                    f"{bar.name}<br>{metric_with_unit(metric, bar.cell, has_interval=True)}"
                    f"{f', {bar.change} against the base' if bar.change else ''}"
                    for bar in drawn
                ],
                textposition="none",
                customdata=[bar.href for bar in drawn],
                hover="%{text}",
            )
        ],
        layout=theme.make_layout(
            height=theme.row_height(len(drawn), per_row=44, least=120),
            xaxis=theme.make_axis(axis_title(metric), **scales.make_linear(scales.list_reached(intervals, *values))),
            yaxis=theme.make_numbered_rows(
                [
                    f"{shorten_end(bar.name, most=34)}<br>{metric_with_unit(metric, bar.cell)}"
                    f"{f' ({bar.change})' if bar.change else ''}"
                    for bar in drawn
                ]
            ),
            bargap=0.4,
            shapes=[traces.make_rule("x", values[0], width=1.5, dash="dot")],
        ),
        table=table,
    )


def write_finding(metric: Metric, drawn: Sequence[Bar], values: Sequence[float]) -> str:
    """Name the smallest and the largest figure with their cells. This gives no verdict; the page shows that above the
    chart."""
    low, high = (drawn[values.index(pick(values))] for pick in (min, max))
    if min(values) == max(values):
        return f"{title(metric)}: {metric_with_unit(metric, low.cell)}"
    ends = (f"{metric_with_unit(metric, bar.cell)} ({bar.name})" for bar in (low, high))
    return numbers.unbroken(f"{title(metric)} from {' to '.join(ends)}")


def _write_summary(metric: Metric, bars: Sequence[Bar], drawn: Sequence[Bar]) -> str:
    marks = "The dotted line is the base" + (
        ", whiskers are 95 % intervals." if any(metric.interval_of(bar.cell) for bar in drawn) else "."
    )
    without = [bar.name for bar in bars if bar not in drawn]
    missing = f" Not measured: {numbers.listed(without)}." if without else ""
    return f"{metric.title} of {numbers.counted(len(drawn), 'cell')}, the base first. {marks}{missing}"


@dataclass(frozen=True)
class Matched:
    """A set of settings, and the cell with these settings in each run; None where a run has no such cell."""

    name: str
    cells: Sequence[Cell | None]


def draw_runs(metric: Metric, runs: Sequence[int], rows: Sequence[Matched], address: RunAddress) -> Figure:
    """Draw a point for each run in the first MAX_ROWS rows that have a figure other than 0, without the runs that have
    none. Where no row has one the chart is empty and says so. The table has all rows."""
    name = Column[Matched]("Cell", lambda row: Entry(row.name))
    columns = (name, *(_make_run_column(metric, place, run) for place, run in enumerate(runs)))
    table = Table.of(NAME, f"{title(metric)} of each cell", columns, rows)
    drawn = [row for row in rows if any(_read_value(metric, cell) for cell in row.cells)][:MAX_ROWS]
    if not drawn:
        return empty_figure(NAME, f"No cell of these runs has a figure for {metric.title}.", table)
    values = [value for row in drawn for cell in row.cells if (value := _read_value(metric, cell))]
    intervals = [metric.interval_of(cell) for row in drawn for cell in row.cells if cell is not None]
    whiskers = ", whiskers are 95 % intervals" if any(intervals) else ""
    scale = scales.choose_scale(values, scales.list_reached(intervals, *values))
    left = sum(cell is not None for row in rows for cell in row.cells) - len(values)
    rest = f" {numbers.counted(left, 'cell')} not drawn." if left else ""
    return Figure(
        name=NAME,
        title=f"{title(metric)} of {numbers.counted(len(values), 'cell')} in {numbers.counted(len(runs), 'run')}",
        summary=f"One point for each run{whiskers}; the runs were not measured side by side.{rest}",
        data=[
            _draw_points(metric, place, run, drawn, colour, address)
            for place, (run, colour) in enumerate(zip(runs, _choose_colours(runs, rows), strict=True))
        ],
        layout=theme.make_layout(
            height=theme.row_height(len(drawn), per_row=32),
            xaxis=theme.make_axis(f"{axis_title(metric)}{' (logarithmic)' if 'type' in scale else ''}", **scale),
            yaxis=theme.make_named_rows([row.name for row in drawn]),
            showlegend=True,
        ),
        table=table,
    )


def _choose_colours(runs: Sequence[int], rows: Sequence[Matched]) -> list[str]:
    """Choose the runs' colours: the colour of its release where every run measured another release, else any colours
    that differ."""
    releases = [{c.runtime for row in rows if (c := row.cells[place]) is not None} for place in range(len(runs))]
    own = [next(iter(names)) for names in releases if len(names) == 1]
    if len(set(own)) == len(runs):
        return [colours.runtime_colour(name) for name in own]
    return colours.assign_name_colours([f"run {run}" for run in runs])


def _draw_points(
    metric: Metric, place: int, run: int, drawn: Sequence[Matched], colour: str, href: RunAddress
) -> theme.Json:
    mine = [(row.name, cell) for row in drawn if (cell := row.cells[place]) is not None and _read_value(metric, cell)]
    return traces.make_row_points(
        [_read_value(metric, cell) or 0.0 for _, cell in mine],
        [metric.interval_of(cell) for _, cell in mine],
        [name for name, _ in mine],
        colour,
        theme.MARKS[place],
        name=f"run {run}{' (base)' if place == 0 else ''}",
        text=[metric_with_unit(metric, cell, has_interval=True) for _, cell in mine],
        customdata=[href(run, cell.id) for _, cell in mine],
    )


def _read_value(metric: Metric, cell: Cell | None) -> float | None:
    return None if cell is None else axis_value(metric, cell)


def _make_run_column(metric: Metric, place: int, run: int) -> Column[Matched]:
    def entry(row: Matched) -> Entry:
        cell = row.cells[place]
        return Entry() if cell is None else Entry(metric_with_unit(metric, cell), _read_value(metric, cell))

    return Number(f"run {run}", entry)
