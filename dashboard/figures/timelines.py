"""One traced inference of each compared cell, one below the other on one axis; what moved is outlined."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dashboard.figures import colours, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.figures.timeline import short, types_of
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles

NAME = "timelines"
# over all cells: bars beyond this could not be told apart, and the longest are drawn
MOST_BARS = 1500


@dataclass(frozen=True)
class Traced:
    """A cell and its traced inference, or the sentence that says why there is none."""

    name: str
    trace: Timeline | str


@dataclass(frozen=True)
class _Bar:
    span: Span
    row: int
    has_moved: bool


def timelines(traced: Sequence[Traced], moved: Collection[str]) -> Figure:
    """The inferences that are there. `moved`: the own nodes whose time moved between the cells."""
    known = [(one.name, one.trace) for one in traced if not isinstance(one.trace, str) and one.trace.spans]
    table = Table.of(NAME, "The traced inference of each cell", COLUMNS, known)
    if not known:
        why = next((one.trace for one in traced if isinstance(one.trace, str)), "The traces hold no executed node.")
        return nothing(NAME, why, table)
    rows, bars = _drawn(known, moved)
    types = types_of([span for _, trace in known for span in trace.spans])
    coloured = colours.operators(types)
    return Figure(
        name=NAME,
        title=finding(known),
        summary=_summary(traced, known, drawn=len(bars)),
        data=[drawn for name in [*types, ""] if (drawn := _series(name, bars, coloured)) is not None],
        layout=_layout(rows, max(_end(trace) for _, trace in known)),
        table=table,
        zooms=True,
    )


def finding(known: Sequence[tuple[str, Timeline]]) -> str:
    """How long each inference took."""
    took = [f"{_us(trace.duration_us)} µs in {name}" for name, trace in known]
    return numbers.unbroken(f"One traced inference: {numbers.listed(took, most=4)}")


def _summary(traced: Sequence[Traced], known: Sequence[tuple[str, Timeline]], *, drawn: int) -> str:
    left = sum(len(trace.spans) for _, trace in known) - drawn
    rest = f" {numbers.counted(left, 'short node')} are not drawn." if left else ""
    missing = [f"{one.name}: {one.trace}" for one in traced if isinstance(one.trace, str)]
    return (
        "Same axis for every cell; nodes whose time moved are outlined. Tracing takes time itself, so these inferences "
        f"are longer than timed ones.{rest}{' ' if missing else ''}{' '.join(missing)}"
    )


def _drawn(known: Sequence[tuple[str, Timeline]], moved: Collection[str]) -> tuple[list[str], list[_Bar]]:
    """The names of rows from top to bottom, a cell's threads and depths below it, and the longest bars on them."""
    rows: list[str] = []
    bars: list[_Bar] = []
    for name, trace in known:
        places = sorted({(span.lane, span.depth) for span in trace.spans})
        first = len(rows)
        rows += [_row_name(name, *place) for place in places]
        bars += [_Bar(span, first + places.index((span.lane, span.depth)), span.name in moved) for span in trace.spans]
    return rows, sorted(bars, key=lambda one: -one.span.duration_us)[:MOST_BARS]


def _row_name(name: str, lane: int, depth: int) -> str:
    where = [f"thread {lane + 1}"] if lane else []
    where += [f"inside, {depth} deep"] if depth else []
    return ", ".join(where) if where else name


def _series(name: str, bars: Sequence[_Bar], coloured: Mapping[str, str]) -> Json | None:
    mine = [one for one in bars if (one.span.op_type == name if name else one.span.op_type not in coloured)]
    if not mine:
        return None
    return {
        "type": "bar",
        "orientation": "h",
        "name": name or "others",
        "base": [round(one.span.start_us, 1) for one in mine],
        "x": [round(one.span.duration_us, 1) for one in mine],
        "y": [one.row for one in mine],
        "marker": {
            "color": coloured.get(name, theme.OTHER),
            "line": {
                "color": [theme.INK if one.has_moved else "@paper" for one in mine],
                "width": [2 if one.has_moved else 0.5 for one in mine],
            },
        },
        "customdata": [[short(one.span.name), one.span.op_type, _said(one)] for one in mine],
        "hovertemplate": (
            "%{customdata[1]} %{customdata[0]}<br>%{x:.4~g} µs from %{base:.4~g} µs on, %{customdata[2]}<extra></extra>"
        ),
    }


def _said(one: _Bar) -> str:
    return f"{titles.provider(one.span.provider)}{', moved' if one.has_moved else ''}"


def _layout(rows: Sequence[str], longest_us: float) -> Json:
    return theme.layout(
        height=theme.row_height(len(rows), per_row=56, least=200),
        xaxis=theme.axis(
            "µs since the inference began", range=[0, round(longest_us, 1)], fixedrange=False, zeroline=False
        ),
        yaxis=theme.axis(
            "",
            tickvals=list(range(len(rows))),
            ticktext=list(rows),
            range=[len(rows) - 0.5, -0.5],
            showgrid=False,
            zeroline=False,
        ),
        barmode="overlay",
        bargap=0.15,
        showlegend=True,
        dragmode="zoom",
    )


def _end(trace: Timeline) -> float:
    """The end of the inference, or of the last node where that is later."""
    return max(trace.duration_us, *(span.start_us + span.duration_us for span in trace.spans))


def _us(value: float | None) -> str:
    """The profiler knows whole microseconds."""
    return numbers.fixed(value or 0.0, 0)


COLUMNS: tuple[Column[tuple[str, Timeline]], ...] = (
    Column("Cell", lambda one: Entry(one[0])),
    Number("inference, µs", lambda one: written(one[1].duration_us, _us)),
    Number("in nodes, µs", lambda one: written(one[1].in_nodes_us, _us)),
    Number("executed nodes", lambda one: Entry(str(len(one[1].spans)), len(one[1].spans))),
    Number("inferences traced", lambda one: Entry(str(one[1].runs), one[1].runs)),
)
