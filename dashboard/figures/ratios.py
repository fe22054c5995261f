"""The chart of comparisons: candidate / baseline on a logarithmic scale around 1, with interval and margin."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures import scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.quantities import Change
from farm.rules.presenting.lines import PROCESSOR, ComparisonLine
from farm.rules.presenting.tables import Column, Entry, Number, Table, verdict_entry
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import rank

NAME = "comparisons"
MAX_ROWS = 40


@dataclass(frozen=True)
class Named:
    """A comparison with its name. `where`: the settings that both cells share; `step`: from baseline to candidate;
    `line`: the comparison in words; `change`: of the quantity that the line compares."""

    comparison: Comparison
    where: str
    step: str
    href: str
    line: ComparisonLine

    @property
    def change(self) -> Change:
        return self.line.change

    @property
    def quantity(self) -> str:
        return self.line.quantity.removeprefix("p50 ")

    @property
    def name(self) -> str:
        return f"{self.where}: {self.step}"


def change_entry(change: Change | None) -> Entry:
    return Entry(change.text, change.ratio) if change else Entry()


def interval_entry(change: Change | None) -> Entry:
    return Entry(change.interval, change.low) if change else Entry()


VERDICT: Column[Named] = Column("Verdict", lambda row: verdict_entry(row.change.word, soft=row.line.wrong))
CHANGE: Column[Named] = Number(
    "change", lambda row: Entry(row.change.text if row.change.ratio else numbers.NOT_MEASURED, row.change.ratio)
)
INTERVAL: Column[Named] = Number("95 % interval", lambda row: interval_entry(row.change))
MARGIN: Column[Named] = Number(
    "margin", lambda row: Entry(f"± {numbers.share(row.comparison.margin)}", row.comparison.margin)
)
NAMED: Column[Named] = Column("Comparison", lambda row: Entry(row.name, href=row.href))


def draw_ratios(named: Sequence[Named]) -> Figure:
    """Draw a row for each comparison that has a ratio, in the order given. Where there are more than MAX_ROWS, only the
    largest changes are drawn, the largest first. The table has all comparisons. Without any ratio the chart is empty
    and says so."""
    drawn = [row for row in named if row.change.ratio is not None]
    table = Table.of(NAME, "Candidate against baseline", (NAMED, VERDICT, CHANGE, INTERVAL, MARGIN), named)
    if not drawn:
        return empty_figure(NAME, "No two cells have been compared yet.", table)
    if len(drawn) > MAX_ROWS:
        drawn = sorted(drawn, key=lambda row: -row.change.size)[:MAX_ROWS]
    reached = scales.list_reached([(row.change.low, row.change.high, row.change.ratio) for row in drawn])
    margin = max(row.comparison.margin for row in drawn)
    of = {row.quantity for row in drawn}
    quantity = next(iter(of)) if len(of) == 1 else "latency or processor time" if PROCESSOR in of else "latency"
    return Figure(
        name=NAME,
        title=write_finding(named),
        summary=(
            f"Change of {quantity} of {numbers.counted(len(drawn), 'comparison')}, with 95 % intervals; the grey band "
            "is the margin within which a change is called equal. The table has every number."
        ),
        data=[_draw_points(verdict, drawn) for verdict in dict.fromkeys(row.change.word for row in drawn)],
        layout=theme.make_layout(
            height=theme.row_height(len(drawn), per_row=26),
            # any longer it would be cut on a phone
            xaxis=theme.make_axis(
                f"change of {quantity}{_shared_step(drawn)}", tickangle=0, **scales.make_ratio(reached)
            ),
            yaxis=theme.make_named_rows([_make_label(row, drawn) for row in drawn]),
            shapes=[traces.make_band("x", 1 / (1 + margin), 1 + margin, percent=8), traces.make_rule("x", 1)],
            showlegend=len({row.change.word for row in drawn}) > 1,
        ),
        table=table,
        note=(
            "Logarithmic axis. Whiskers: 95 % interval. Slower or faster: the whisker is clear of 0 and the point "
            "beyond the grey band. Equal: even the 97.5 % interval lies in it."
        ),
    )


def _shared_step(named: Sequence[Named]) -> str:
    steps = {row.step for row in named}
    return f" {next(iter(steps))}" if len(steps) == 1 else ""


def _make_label(row: Named, drawn: Sequence[Named]) -> str:
    return row.where if _shared_step(drawn) else row.name


def write_finding(named: Sequence[Named]) -> str:
    """Count the comparisons by verdict, the gravest verdict first."""
    words = Counter(
        f"{row.change.word}{row.change.unit}" for row in sorted(named, key=lambda row: rank(row.change.word))
    )
    parts = [f"{count} {word}" for word, count in words.items()]
    return f"{numbers.counted(len(named), 'comparison')}: {numbers.listed(parts, most=5)}"


def _draw_points(verdict: str, drawn: Sequence[Named]) -> theme.Json:
    mine = [row for row in drawn if row.change.word == verdict]
    return traces.make_row_points(
        [row.change.ratio or 1.0 for row in mine],
        [(row.change.low, row.change.high) for row in mine],
        [_make_label(row, drawn) for row in mine],
        theme.verdict_colour(verdict),
        theme.verdict_mark(verdict),
        name=f"{verdict}{mine[0].change.unit}",
        text=[_describe_change(row) for row in mine],
        customdata=[row.href for row in mine],
        hover="%{y}<br>%{text}",
    )


def _describe_change(row: Named) -> str:
    """Write the change with its interval, and on a second line the quantity and the two medians."""
    change = row.change
    words = change.text if change.is_decided else ", ".join(filter(None, (change.word, change.text)))
    return f"{words} ({change.interval})<br>{f'{row.quantity} {row.line.values}'.rstrip()}"
