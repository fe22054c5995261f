"""Comparisons on one axis: candidate / baseline on a logarithmic scale around 1, with interval and margin."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures import scales, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.quantities import Change
from farm.rules.presenting.lines import Line
from farm.rules.presenting.tables import Column, Entry, Number, Table, verdict_entry
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import rank

NAME = "comparisons"
_QUANTITIES = {"items": "items per second", "rate": "the highest rate"}
MOST = 40


@dataclass(frozen=True)
class Named:
    """A comparison with its name on this page: where both cells are, and the step from one to the other.

    `line`: what it comes to, where both cells are known.
    """

    comparison: Comparison
    where: str
    step: str = ""
    href: str = ""
    line: Line | None = None

    @property
    def change(self) -> Change:
        """Its word, ratio and interval, of latency or of items per second."""
        one = self.comparison
        return self.line.change if self.line else Change("latency", one.verdict, one.ratio, one.ci_low, one.ci_high)

    @property
    def caveat(self) -> str:
        """What a verdict must not be read without."""
        return "wrong outputs" if self.line is not None and self.line.is_wrong else ""

    @property
    def name(self) -> str:
        """The whole name."""
        return f"{self.where}: {self.step}" if self.step else self.where


def _change(one: Named) -> Entry:
    change = one.change
    return Entry(change.text or numbers.NOT_MEASURED, change.ratio)


def _interval(one: Named) -> Entry:
    change = one.change
    return Entry(change.interval, change.low)


VERDICT: Column[Named] = Column("Verdict", lambda one: verdict_entry(one.change.word, soft=one.caveat))
CHANGE: Column[Named] = Number("change", _change)
INTERVAL: Column[Named] = Number("95 % interval", _interval)
MARGIN: Column[Named] = Number(
    "margin", lambda one: Entry(f"± {numbers.share(one.comparison.margin)}", one.comparison.margin)
)
NAMED: Column[Named] = Column("Comparison", lambda one: Entry(one.name, href=one.href))


def ratios(named: Sequence[Named]) -> Figure:
    """A row for each comparison; at most 40 are drawn, the largest changes first when there are more."""
    drawn = [one for one in named if one.change.ratio is not None]
    table = Table.of(NAME, "Candidate against baseline", (NAMED, VERDICT, CHANGE, INTERVAL, MARGIN), named)
    if not drawn:
        return nothing(NAME, "No two cells have been compared yet.", table)
    if len(drawn) > MOST:
        drawn = sorted(drawn, key=lambda one: -one.change.size)[:MOST]
    reached = scales.ends([(one.change.low, one.change.high, one.change.ratio) for one in drawn])
    of = {one.change.quantity for one in drawn}
    quantity = _QUANTITIES.get(next(iter(of)), "latency") if len(of) == 1 else "latency"
    return Figure(
        name=NAME,
        title=finding(named),
        summary=(
            f"Change of {quantity} of {numbers.counted(len(drawn), 'comparison')}, with 95 % intervals; the grey band "
            "is the margin within which a change is called equal. The table has every number."
        ),
        data=[_points(verdict, drawn) for verdict in dict.fromkeys(one.change.word for one in drawn)],
        layout=theme.layout(
            height=theme.row_height(len(drawn), per_row=26),
            xaxis=theme.axis(
                f"change of {quantity}{_step(drawn)}, logarithmic",
                tickangle=0,
                **scales.ratio(reached),
            ),
            yaxis=theme.axis(
                "", autorange="reversed", type="category", categoryarray=[_label(one, drawn) for one in drawn]
            ),
            shapes=_shapes(drawn),
            showlegend=len({one.change.word for one in drawn}) > 1,
        ),
        table=table,
        note="Whiskers: 95 % interval. Grey band: the margin within which a change is called equal.",
    )


def _step(named: Sequence[Named]) -> str:
    """The step that all comparisons share; empty where they differ."""
    steps = {one.step for one in named}
    return f" {next(iter(steps))}" if len(steps) == 1 else ""


def _label(one: Named, drawn: Sequence[Named]) -> str:
    """What tells a comparison apart from the others that are drawn."""
    return one.where if _step(drawn) else one.name


def finding(named: Sequence[Named]) -> str:
    """How many comparisons came out which way."""
    words = Counter(
        f"{one.change.word}{one.change.unit}" for one in sorted(named, key=lambda one: rank(one.change.word))
    )
    parts = [f"{count} {word}" for word, count in words.items()]
    return f"{numbers.counted(len(named), 'comparison')}: {numbers.listed(parts, most=5)}"


def _points(verdict: str, drawn: Sequence[Named]) -> Json:
    mine = [one for one in drawn if one.change.word == verdict]
    values = [one.change.ratio or 1.0 for one in mine]
    ends = [(one.change.low or value, one.change.high or value) for one, value in zip(mine, values, strict=True)]
    colour = theme.verdict_colour(verdict)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{verdict}{mine[0].change.unit}",
        "x": values,
        "y": [_label(one, drawn) for one in mine],
        "error_x": theme.whiskers(values, ends, colour),
        "marker": {"color": colour, "size": 9, "symbol": theme.verdict_mark(verdict)},
        "text": [_in_words(one.change) for one in mine],
        "customdata": [one.href for one in mine],
        "hovertemplate": "%{y}<br>%{text}<extra></extra>",
    }


def _in_words(change: Change) -> str:
    told = change.text if change.is_decided else f"{change.word}, {change.text}"
    return f"{told} ({change.interval})"


def _shapes(drawn: Sequence[Named]) -> list[Json]:
    margin = max(one.comparison.margin for one in drawn)
    down = {"yref": "paper", "y0": 0, "y1": 1}
    return [
        {"type": "rect", **down, "x0": 1 / (1 + margin), "x1": 1 + margin, "line": {"width": 0}, "fillcolor": "@ink/8"},
        {"type": "line", **down, "x0": 1, "x1": 1, "line": {"width": 1, "color": theme.SOFT}},
    ]
