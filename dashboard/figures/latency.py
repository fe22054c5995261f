"""Latency with its interval, by runtime and provider: a row for each workload, a point for each runtime."""

from collections.abc import Sequence
from math import ceil, floor, log10

from dashboard import axes, numbers, words
from dashboard.figures import columns, theme
from dashboard.figures.figure import Address, Figure, nothing
from dashboard.figures.theme import Json
from dashboard.tables import Column, Number, Table, counted
from farm.contract.document import Cell, Comparison

NAME = "latency"
# beyond this spread small latencies would be invisible on a linear axis
LOG_FROM = 6.0


def latency(cells: Sequence[Cell], comparisons: Sequence[Comparison], address: Address) -> Figure:
    """Every measured cell as a point with its interval."""
    measured = [cell for cell in cells if cell.p50_ms is not None and cell.twin_of is None]
    if not measured:
        return nothing(NAME, "No cell has a latency yet.", _table([], [], address))
    others = [axis for axis in axes.varying(measured) if axis.name != "runtime"]
    rows = axes.places(measured, others)
    values = [cell.p50_ms for cell in measured if cell.p50_ms is not None]
    is_log = max(values) / min(values) > LOG_FROM
    return Figure(
        name=NAME,
        title=finding(measured, comparisons),
        summary=_summary(measured),
        data=[_series(runtime, measured, others, address) for runtime in _runtimes(measured)],
        layout=theme.layout(
            height=theme.row_height(len(rows), per_row=32),
            xaxis=theme.axis(
                f"p50 latency, ms{' (logarithmic)' if is_log else ''}; whiskers: 95 % interval",
                type="log" if is_log else "linear",
                **(_log_ticks(min(values), max(values)) if is_log else {"rangemode": "tozero"}),
            ),
            yaxis=theme.axis("", autorange="reversed", type="category", categoryarray=[_name(row) for row in rows]),
            showlegend=True,
        ),
        table=_table(measured, others, address),
    )


def finding(cells: Sequence[Cell], comparisons: Sequence[Comparison]) -> str:
    """What the picture shows, in a sentence: how many comparisons of runtimes changed, else the fastest cell."""
    judged = [c for c in comparisons if c.axis == "runtime"]
    slower, faster = (sum(c.verdict == verdict for c in judged) for verdict in ("slower", "faster"))
    if slower or faster:
        parts = [f"{number} {word}" for number, word in ((slower, "slower"), (faster, "faster")) if number]
        return f"Of {numbers.count(len(judged), 'comparison')} of runtimes: {' and '.join(parts)}"
    best = min(cells, key=lambda cell: cell.p50_ms or 0.0)
    named = axes.name_of(best, axes.varying(cells))
    return f"Fastest: {named}, {numbers.latency(best.p50_ms, best.p50_ci_ms)}"


def _log_ticks(low: float, high: float) -> Json:
    """1, 2 and 5 of each power of ten around the values, with room beside the outermost."""
    steps = [digit * 10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1) for digit in (1, 2, 5)]
    shown = [step for step in steps if low / 2 <= step <= high * 2]
    text = [numbers.fixed(step, max(0, -floor(log10(step)))) for step in shown]
    return {"tickvals": shown, "ticktext": text, "range": [log10(low / 1.3), log10(high * 1.3)]}


def _summary(cells: Sequence[Cell]) -> str:
    values = sorted(cell.p50_ms for cell in cells if cell.p50_ms is not None)
    return (
        f"Median latency of {numbers.count(len(values), 'cell')}, from {numbers.milliseconds(values[0])} "
        f"to {numbers.milliseconds(values[-1])} ms. The table below has every number."
    )


def _runtimes(cells: Sequence[Cell]) -> list[str]:
    return sorted({cell.runtime for cell in cells}, key=axes.version_key)


def _name(labels: Sequence[str]) -> str:
    return " · ".join(labels) or "all cells"


def _series(runtime: str, cells: Sequence[Cell], others: Sequence[axes.Axis], address: Address) -> Json:
    mine = [cell for cell in cells if cell.runtime == runtime]
    values = [cell.p50_ms or 0.0 for cell in mine]
    ends = [cell.p50_ci_ms or (value, value) for cell, value in zip(mine, values, strict=True)]
    colour = theme.runtime_colour(runtime)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": words.runtime(runtime),
        "x": values,
        "y": [_name(axes.place_of(cell, others)) for cell in mine],
        "error_x": theme.whiskers(values, ends, colour),
        "marker": {"color": colour, "size": 9, "symbol": theme.MARKS[theme.runtime_slot(runtime) % len(theme.MARKS)]},
        "text": [numbers.latency(cell.p50_ms, cell.p50_ci_ms) for cell in mine],
        "customdata": [address(cell.id) for cell in mine],
        "hovertemplate": "%{fullData.name}, %{y}<br>%{text}<extra></extra>",
    }


def _table(cells: Sequence[Cell], others: Sequence[axes.Axis], address: Address) -> Table:
    shown: tuple[Column[Cell], ...] = (
        columns.name(others, address, only="all cells"),
        columns.RUNTIME,
        columns.P50,
        columns.HALF_WIDTH,
        Number("launches", lambda cell: counted(len(cell.samples_ms))),
    )
    return Table.of(NAME, "Median latency of each cell", shown, cells)
