"""The operators behind a comparison: time of each in baseline and candidate, side by side, largest change first."""

from collections.abc import Sequence
from typing import Protocol

from dashboard import numbers, words
from dashboard.figures import theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.tables import Column, Entry, Number, Prose, Table, verdict_entry, written
from farm.contract.document import Comparison, OperatorChange
from farm.rules.reporting.called_operators import called_operators

NAME = "operators"
MOST = 10


class Side(Protocol):
    """A cell, or whatever else names the runtime of one side."""

    @property
    def runtime(self) -> str: ...


def operators(comparison: Comparison, baseline: Side, candidate: Side) -> Figure:
    """The ten operators whose time changed most; the table has all of them."""
    caption = f"Time per inference of {_name(baseline)} and {_name(candidate)}"
    is_judged = any(change.verdict for change in comparison.operators)
    table = Table.of(NAME, caption, (*COLUMNS, *VERDICTS) if is_judged else COLUMNS, by_change(comparison))
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
    most = f"{op_type} ({numbers.count(len(nodes), 'node')}) changes most: {numbers.signed(time_us)} µs{part}"
    return f"{most}{_called(comparison)}"


def _called(comparison: Comparison) -> str:
    """How many operators have a verdict of their own, where that was asked for."""
    if not any(change.verdict for change in comparison.operators):
        return ""
    called = called_operators(comparison)
    if not called:
        return "; no operator is called slower or faster by itself"
    named = ", ".join(f"{_short(one)} {one.verdict}" for one in called[:2])
    more = f" and {len(called) - 2} more" if len(called) > 2 else ""
    return f"; called by themselves: {named}{more}"


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


COLUMNS: tuple[Column[OperatorChange], ...] = (
    Column("Operator", lambda change: Entry(change.node, is_name=True), "the model's own node"),
    Column("Type", lambda change: Entry(change.op_type), "as executed"),
    Number("baseline, µs", lambda change: written(change.baseline_us)),
    Number("candidate, µs", lambda change: written(change.candidate_us)),
    Number("change, µs", lambda change: written(change.candidate_us - change.baseline_us, numbers.signed)),
    Number("interval, µs", lambda change: Entry(_interval(change), change.change_low_us), "over paired traces"),
    Number(
        "explains",
        lambda change: written(change.share, numbers.share),
        "share of the whole change; may be negative or above 100 %",
    ),
    Prose(
        "Covers", lambda change: Entry(numbers.listed(change.covers, most=6), is_name=True), "own nodes fused into it"
    ),
)

# where rounds were traced
VERDICTS: tuple[Column[OperatorChange], ...] = (
    Column(
        "Verdict",
        lambda change: verdict_entry(change.verdict) if change.verdict else Entry(numbers.NOT_MEASURED),
        "by the operator's own pairs, over all operators of the comparison",
    ),
    Number("ratio", lambda change: written(change.ratio), "candidate / baseline over paired rounds"),
    Number("ratio from, to", lambda change: Entry(_ratios(change), change.ci_low), "95 % interval"),
    Number("rounds", lambda change: written(change.rounds)),
    Prose("Why", lambda change: Entry(change.reason or "")),
)


def _ratios(change: OperatorChange) -> str:
    low, high = change.ci_low, change.ci_high
    return numbers.NOT_MEASURED if low is None or high is None else f"{numbers.plain(low)} to {numbers.plain(high)}"


def _interval(change: OperatorChange) -> str:
    low, high = change.change_low_us, change.change_high_us
    return numbers.NOT_MEASURED if low is None or high is None else f"{numbers.signed(low)} to {numbers.signed(high)}"
