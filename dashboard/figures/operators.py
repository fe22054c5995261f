"""The operators behind a comparison: time of each in baseline and candidate, side by side, largest change first."""

from collections.abc import Sequence
from typing import Protocol

from dashboard import numbers, words
from dashboard.figures import theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.tables import Entry, Head, Table
from farm.contract.document import Comparison, OperatorChange

NAME = "operators"
MOST = 10
HEADS = (
    Head("Operator", note="the model's own node"),
    Head("Type", note="as executed"),
    Head("baseline, µs", is_number=True),
    Head("candidate, µs", is_number=True),
    Head("change, µs", is_number=True),
    Head("interval, µs", is_number=True, note="over paired traces"),
    Head("explains", is_number=True, note="share of the whole change; may be negative or above 100 %"),
    Head("Covers", is_text=True, note="own nodes fused into it"),
)


class Side(Protocol):
    """A cell, or whatever else names the runtime of one side."""

    @property
    def runtime(self) -> str: ...


def operators(comparison: Comparison, baseline: Side, candidate: Side) -> Figure:
    """The ten operators whose time changed most; the table has all of them."""
    table = Table(NAME, f"Time per inference of {_name(baseline)} and {_name(candidate)}", HEADS, _rows(comparison))
    if not comparison.operators:
        return nothing(NAME, "These two cells have not been traced side by side yet.", table)
    largest = by_change(comparison)[:MOST]
    return Figure(
        name=NAME,
        title=finding(comparison),
        summary=(
            f"Time per inference of the {numbers.count(len(largest), 'operator')} that changed most, {_name(baseline)} "
            f"beside {_name(candidate)}, over {numbers.count(comparison.traces, 'paired trace')}."
        ),
        data=[
            _bars(_name(baseline), [c.baseline_us for c in largest], largest, theme.runtime_colour(baseline.runtime)),
            _bars(_name(candidate), [c.candidate_us for c in largest], largest, _colour_beside(candidate, baseline)),
        ],
        layout=theme.layout(
            height=theme.row_height(len(largest), per_row=34),
            xaxis=theme.axis("time per inference, µs", rangemode="tozero"),
            yaxis=theme.axis("", autorange="reversed", type="category"),
            barmode="group",
            bargap=0.3,
            bargroupgap=0.08,
            showlegend=True,
        ),
        table=table,
    )


def by_change(comparison: Comparison) -> list[OperatorChange]:
    """Operators with the largest change of time first."""
    return sorted(comparison.operators, key=lambda change: -abs(change.candidate_us - change.baseline_us))


def finding(comparison: Comparison) -> str:
    """The type of operator that explains most of the change, and with how many nodes."""
    if not comparison.operators:
        return "Not traced side by side yet"
    moved: dict[str, float] = {}
    for change in comparison.operators:
        moved[change.op_type] = moved.get(change.op_type, 0.0) + change.candidate_us - change.baseline_us
    op_type, time_us = max(moved.items(), key=lambda pair: abs(pair[1]))
    nodes = [change for change in comparison.operators if change.op_type == op_type]
    shares = [change.share for change in nodes if change.share is not None]
    part = f", {numbers.share(sum(shares))} of the change" if shares else ""
    return f"{op_type} ({numbers.count(len(nodes), 'node')}) changes most: {numbers.signed(time_us)} µs{part}"


def _name(cell: Side) -> str:
    return words.runtime(cell.runtime)


def _colour_beside(candidate: Side, baseline: Side) -> str:
    """The candidate's own colour, unless it is the baseline's too."""
    colour = theme.runtime_colour(candidate.runtime)
    return theme.OTHER if colour == theme.runtime_colour(baseline.runtime) else colour


def _bars(name: str, values: Sequence[float], changes: Sequence[OperatorChange], colour: str) -> Json:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [_short(change) for change in changes],
        "x": list(values),
        "text": [numbers.plain(value) for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"size": 11, "color": theme.SOFT},
        "marker": {"color": colour},
        "customdata": [change.op_type for change in changes],
        "hovertemplate": "%{fullData.name}, %{y} (%{customdata})<br>%{x:.4~g} µs per inference<extra></extra>",
    }


def _short(change: OperatorChange, most: int = 44) -> str:
    """A node's name from its end, which tells nodes of one model apart better than the beginning."""
    return change.node if len(change.node) <= most else f"…{change.node[-most + 1 :]}"


def _rows(comparison: Comparison) -> list[tuple[Entry, ...]]:
    return [_row(change) for change in by_change(comparison)]


def _row(change: OperatorChange) -> tuple[Entry, ...]:
    moved = change.candidate_us - change.baseline_us
    low, high = change.change_low_us, change.change_high_us
    interval = f"{numbers.signed(low)} to {numbers.signed(high)}" if low is not None and high is not None else ""
    return (
        Entry(change.node, is_name=True),
        Entry(change.op_type),
        Entry(numbers.plain(change.baseline_us), change.baseline_us),
        Entry(numbers.plain(change.candidate_us), change.candidate_us),
        Entry(numbers.signed(moved), moved),
        Entry(interval or numbers.NOT_MEASURED, low),
        Entry(numbers.share(change.share), change.share),
        Entry(numbers.listed(change.covers, most=6), is_name=True),
    )
