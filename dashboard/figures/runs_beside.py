"""One metric of the matched cells of whole runs: a row a cell, a point a run with its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.figures import colours, scales, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.metrics import axis_title, axis_value, metric_with_unit, title
from farm.contract.document_cells import Cell
from farm.rules.cells.metric import Metric
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.wording import numbers

NAME = "beside"
MOST_ROWS = 24
# beyond this spread small figures would be invisible on a linear axis
LOG_FROM = 6.0
# from a run's number and a cell's id to its page
Address = Callable[[int, str], str]


@dataclass(frozen=True)
class Matched:
    """A place of the matrix, and its cell in each run; None where a run has none."""

    name: str
    cells: Sequence[Cell | None]


def runs_beside(metric: Metric, runs: Sequence[int], rows: Sequence[Matched], address: Address) -> Figure:
    """The first rows that have a figure, in their order; the table has all of them."""
    table = Table.of(NAME, f"{title(metric)} of each cell", _columns(metric, runs), rows)
    drawn = [one for one in rows if any(_value(metric, cell) for cell in one.cells)][:MOST_ROWS]
    if not drawn:
        return nothing(NAME, f"No cell of these runs has a figure for {metric.title}.", table)
    values = [value for one in drawn for cell in one.cells if (value := _value(metric, cell))]
    reached = scales.ends([metric.interval_of(c) for one in drawn for c in one.cells if c is not None], *values)
    is_log = max(values) / min(values) > LOG_FROM and min(reached) > 0
    left = numbers.counted(len(rows) - len(drawn), "cell")
    rest = f" {left} not drawn." if len(rows) > len(drawn) else ""
    return Figure(
        name=NAME,
        title=f"{title(metric)} of {numbers.counted(len(drawn), 'cell')} in {numbers.counted(len(runs), 'run')}",
        summary=f"A point a run, whiskers are 95 % intervals; runs were not measured side by side.{rest}",
        data=[
            _points(metric, place, run, drawn, colour, address)
            for place, (run, colour) in enumerate(zip(runs, _colours(runs, rows), strict=True))
        ],
        layout=theme.layout(
            height=theme.row_height(len(drawn), per_row=32),
            xaxis=theme.axis(
                f"{axis_title(metric)}{' (logarithmic)' if is_log else ''}",
                **(scales.logarithmic(reached) if is_log else scales.linear(reached)),
            ),
            yaxis=theme.axis("", autorange="reversed", type="category", categoryarray=[one.name for one in drawn]),
            showlegend=True,
        ),
        table=table,
    )


def _colours(runs: Sequence[int], rows: Sequence[Matched]) -> list[str]:
    """Each run's release where every run has one of its own, else a colour a run."""
    releases = [{c.runtime for one in rows if (c := one.cells[place]) is not None} for place in range(len(runs))]
    own = [next(iter(one)) for one in releases if len(one) == 1]
    if len(set(own)) == len(runs):
        return [colours.runtime(name) for name in own]
    return colours.of_names([f"run {run}" for run in runs])


def _points(metric: Metric, place: int, run: int, drawn: Sequence[Matched], colour: str, address: Address) -> Json:
    mine = [(one.name, cell) for one in drawn if (cell := one.cells[place]) is not None and _value(metric, cell)]
    values = [_value(metric, cell) or 0.0 for _, cell in mine]
    own = [metric.interval_of(cell) or (value, value) for (_, cell), value in zip(mine, values, strict=True)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"run {run}{' (base)' if place == 0 else ''}",
        "x": values,
        "y": [name for name, _ in mine],
        "error_x": theme.whiskers(values, own, colour) if values else {},
        "marker": {"color": colour, "size": 9, "symbol": theme.MARKS[place]},
        "text": [metric_with_unit(metric, cell, has_interval=True) for _, cell in mine],
        "customdata": [address(run, cell.id) for _, cell in mine],
        "hovertemplate": "%{fullData.name}, %{y}<br>%{text}<extra></extra>",
    }


def _value(metric: Metric, cell: Cell | None) -> float | None:
    return None if cell is None else axis_value(metric, cell)


def _columns(metric: Metric, runs: Sequence[int]) -> tuple[Column[Matched], ...]:
    return (Column("Cell", lambda one: Entry(one.name)), *(_column(metric, at, run) for at, run in enumerate(runs)))


def _column(metric: Metric, place: int, run: int) -> Column[Matched]:
    def entry(one: Matched) -> Entry:
        cell = one.cells[place]
        return Entry() if cell is None else Entry(metric_with_unit(metric, cell), _value(metric, cell))

    return Number(f"run {run}", entry)
