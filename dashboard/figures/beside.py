"""One metric of the compared cells as bars from zero, the base first, each with its interval where it has one."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures import colours, scales, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.metrics import axis_title, axis_value, metric_with_unit, title
from farm.contract.document_cells import Cell
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import METRICS
from farm.rules.presenting.tables import Column, Entry, Number, Table
from farm.rules.wording import numbers

NAME = "beside"


@dataclass(frozen=True)
class Bar:
    """A compared cell: what it is called, its page, and what is said of its figure beside it."""

    name: str
    cell: Cell
    href: str
    change: str = ""


def drawable(cells: Sequence[Cell]) -> list[Metric]:
    """The metrics that bars can show: less or more is better, and one of the cells has a figure."""
    known = [one for one in METRICS if one.title and one.better]
    return [one for one in known if any(one.value(cell) is not None for cell in cells)]


def beside(metric: Metric, bars: Sequence[Bar]) -> Figure:
    """The cells with a figure; those without one are named in the summary."""
    table = Table.of(NAME, f"{metric.title} of each cell", _columns(metric), bars)
    drawn = [one for one in bars if metric.value(one.cell) is not None]
    if not drawn:
        return nothing(NAME, f"None of these cells has a figure for {metric.title}.", table)
    values = [_value(metric, one) for one in drawn]
    colour_of = colours.of_cells(one.cell for one in drawn)
    return Figure(
        name=NAME,
        title=finding(metric, drawn),
        summary=_summary(metric, bars, drawn),
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "x": values,
                "y": list(range(len(drawn))),
                "marker": {"color": [colour_of(one.cell) for one in drawn]},
                "error_x": theme.whiskers(values, [_ends(metric, one) for one in drawn], theme.INK),
                "text": [_said(metric, one) for one in drawn],
                "textposition": "none",
                "customdata": [one.href for one in drawn],
                "hovertemplate": "%{text}<extra></extra>",
            }
        ],
        layout=_layout(metric, drawn),
        table=table,
    )


def finding(metric: Metric, drawn: Sequence[Bar]) -> str:
    """From where to where the figures go; no verdict, which stands above."""
    least, most = (pick(drawn, key=lambda one: _value(metric, one)) for pick in (min, max))
    if least is most or _value(metric, least) == _value(metric, most):
        return f"{title(metric)}: {metric_with_unit(metric, least.cell)}"
    ends = (f"{metric_with_unit(metric, one.cell)} ({one.name})" for one in (least, most))
    return numbers.unbroken(f"{title(metric)} from {' to '.join(ends)}")


def _layout(metric: Metric, drawn: Sequence[Bar]) -> Json:
    base = _value(metric, drawn[0])
    reached = scales.ends([_ends(metric, one) for one in drawn])
    return theme.layout(
        height=theme.row_height(len(drawn), per_row=44, least=120),
        xaxis=theme.axis(axis_title(metric), **scales.linear(reached)),
        yaxis=theme.axis(
            "",
            tickvals=list(range(len(drawn))),
            ticktext=[f"{_short(one.name)}<br>{_said_short(metric, one)}" for one in drawn],
            range=[len(drawn) - 0.5, -0.5],
            showgrid=False,
            zeroline=False,
        ),
        bargap=0.4,
        shapes=[
            {
                "type": "line",
                "x0": base,
                "x1": base,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": theme.SOFT, "width": 1.5, "dash": "dot"},
            }
        ],
    )


def _value(metric: Metric, one: Bar) -> float:
    return axis_value(metric, one.cell) or 0.0


def _ends(metric: Metric, one: Bar) -> tuple[float, float]:
    value = _value(metric, one)
    return metric.interval_of(one.cell) or (value, value)


def _said(metric: Metric, one: Bar) -> str:
    figure = metric_with_unit(metric, one.cell, has_interval=True)
    return f"{one.name}<br>{figure}{f', {one.change} against the base' if one.change else ''}"


def _said_short(metric: Metric, one: Bar) -> str:
    return f"{metric_with_unit(metric, one.cell)}{f' ({one.change})' if one.change else ''}"


def _short(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _summary(metric: Metric, bars: Sequence[Bar], drawn: Sequence[Bar]) -> str:
    marks = "The dotted line is the base" + (
        ", whiskers are 95 % intervals." if any(metric.interval_of(one.cell) for one in drawn) else "."
    )
    without = [one.name for one in bars if one not in drawn]
    missing = f" Not measured: {numbers.listed(without)}." if without else ""
    return f"{metric.title} of {numbers.counted(len(drawn), 'cell')}, the base first. {marks}{missing}"


def _columns(metric: Metric) -> tuple[Column[Bar], ...]:
    return (
        Column("Cell", lambda one: Entry(one.name, href=one.href)),
        Number(metric.title, lambda one: Entry(metric_with_unit(metric, one.cell, has_interval=True))),
        Number("change", lambda one: Entry(one.change), "against the base"),
    )
