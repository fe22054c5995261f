"""The charts of latency with its interval: of a run's cells, and of the best settings of a model."""

from collections.abc import Callable, Mapping, Sequence

from dashboard import axes
from dashboard.figures import colours, figure, scales, theme, traces
from dashboard.figures.figure import Address, Figure, empty_figure, select_right_cells
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import hardware_words
from farm.rules.presenting.hardware import MeasuredSetting
from farm.rules.presenting.tables import Column, Number, Table, as_count
from farm.rules.presenting.times import Times, clock_title
from farm.rules.wording import numbers, titles

NAME = "latency"
WHISKERS = "Whiskers: 95 % interval of the median over process launches."


def draw_latency(cells: Sequence[Cell], comparisons: Sequence[Comparison], address: Address) -> Figure:
    """Draw every measured cell except A/A twins as a point with its interval, also those with wrong outputs. There is a
    row for each combination of the other settings and a series for each runtime. The time is the one that verdicts rest
    on. Without a measured cell the chart is empty and says so. `address`: links a cell by its id."""
    times = Times.of(cells, comparisons)
    measured = [times.with_compared_time(cell) for cell in cells if cell.p50_ms is not None and cell.twin_of is None]
    others = [axis for axis in axes.varying_axes(measured) if axis.name != "runtime"]
    shown: tuple[Column[Cell], ...] = (
        figure.name_column(others, address, only="all cells"),
        figure.RUNTIME,
        figure.p50_column(times, measured),
        figure.HALF_WIDTH,
        Number("launches", lambda cell: as_count(len(cell.samples_ms))),
    )
    table = Table.of(NAME, "Median latency of each cell", shown, measured)
    if not measured:
        return empty_figure(NAME, "No cell has ended with a latency.", table)
    rows = axes.places(measured, others)
    titled = times.title(measured, "p50 latency")
    runtimes = sorted({cell.runtime for cell in measured}, key=axes.runtime_sort_key)
    # where there are many runtimes, only the oldest and the newest ones are coloured
    coloured = {*runtimes[:1], *runtimes[1 - theme.SLOTS :]}
    return Figure(
        name=NAME,
        title=write_finding(measured, comparisons),
        summary=_write_summary(measured, titled),
        data=[
            _draw_series(
                [cell for cell in measured if cell.runtime == runtime],
                others,
                address,
                colours.runtime_colour(runtime) if runtime in coloured else colours.GREY,
                times,
            )
            for runtime in runtimes
        ],
        layout=_make_layout(titled, measured, list(map(_join_labels, rows)), showlegend=len(runtimes) > 1),
        table=table,
        note=WHISKERS,
    )


def draw_settings(
    rows: Mapping[str, MeasuredSetting], title: str, table: Table, address: Callable[[MeasuredSetting], str]
) -> Figure:
    """Draw measured settings with their intervals, each in a row of its own. `rows`: the settings by the name of their
    row, at least one; `table`: the table that has every number."""
    measured = list(rows.values())
    time = clock_title([best.is_processor for best in measured])
    hovers = [f"{hardware_words.format_setting(best)}<br>{hardware_words.format_latency(best)}" for best in measured]
    return Figure(
        name="settings",
        title=title,
        summary=f"{title}, by {time}. The table has every number.",
        data=[
            traces.make_row_points(
                [best.cell.p50_ms or 0.0 for best in measured],
                [best.cell.p50_ci_ms for best in measured],
                list(rows),
                theme.ACCENT,
                "circle",
                hover="%{y}<br>%{text}",
                text=hovers,
                customdata=[address(best) for best in measured],
            )
        ],
        layout=_make_layout(time, [best.cell for best in measured], list(rows), showlegend=False),
        table=table,
        note=WHISKERS,
    )


def write_finding(cells: Sequence[Cell], comparisons: Sequence[Comparison]) -> str:
    """Say how many comparisons of runtimes are slower or faster. Where none is, name the fastest cell, of those with
    right outputs if there are any. There must be a measured cell."""
    judged = [c for c in comparisons if c.axis == "runtime"]
    slower, faster = (sum(c.verdict == verdict for c in judged) for verdict in ("slower", "faster"))
    if slower or faster:
        parts = [f"{number} {word}" for number, word in ((slower, "slower"), (faster, "faster")) if number]
        return f"Of {numbers.counted(len(judged), 'comparison')} of runtimes: {' and '.join(parts)}"
    best = min(select_right_cells(cells), key=lambda cell: cell.p50_ms or 0.0)
    named = axes.name_of(best, axes.varying_axes(cells))
    return f"Fastest: {named}, {numbers.latency(best.p50_ms, best.p50_ci_ms)}"


def _write_summary(cells: Sequence[Cell], titled: str) -> str:
    values = sorted(cell.p50_ms for cell in cells if cell.p50_ms is not None)
    return (
        f"{numbers.counted(len(values), 'cell')}: {titled} from {numbers.milliseconds(values[0])} to "
        f"{numbers.milliseconds(values[-1])} ms. The table below has every number."
    )


def _make_layout(time: str, measured: Sequence[Cell], rows: Sequence[str], *, showlegend: bool) -> theme.Json:
    values = [cell.p50_ms or 0.0 for cell in measured]
    scale = scales.choose_scale(values, scales.list_reached([cell.p50_ci_ms for cell in measured], *values))
    return theme.make_layout(
        height=theme.row_height(len(rows), per_row=32),
        xaxis=theme.make_axis(f"{time}, ms{', logarithmic' if 'type' in scale else ''}", **scale),
        yaxis=theme.make_named_rows(rows),
        showlegend=showlegend,
    )


def _join_labels(labels: Sequence[str]) -> str:
    return " · ".join(labels) or "all cells"


def _draw_series(
    mine: Sequence[Cell], others: Sequence[axes.Axis], address: Address, colour: str, times: Times
) -> theme.Json:
    runtime = mine[0].runtime
    return traces.make_row_points(
        [cell.p50_ms or 0.0 for cell in mine],
        [cell.p50_ci_ms for cell in mine],
        [_join_labels(axes.place_of(cell, others)) for cell in mine],
        colour,
        colours.runtime_mark(runtime),
        name=titles.runtime(runtime),
        text=[times.format_latency(cell) for cell in mine],
        customdata=[address(cell.id) for cell in mine],
    )
