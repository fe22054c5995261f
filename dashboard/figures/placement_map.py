"""The placement map of one cell: stretches of nodes on one provider, in the order in which they ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from dashboard.figures import colours, theme
from dashboard.figures.cell_bars import EDGE
from dashboard.figures.figure import Figure, nothing, rounded
from dashboard.figures.theme import Json
from dashboard.figures.timelines import short
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, written
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles

NAME = "placement-map"
MAX_STRETCHES = 400


@dataclass(frozen=True)
class Stretch:
    """Nodes that ran one after another on one provider."""

    provider: str
    spans: Sequence[Span]

    @property
    def time_us(self) -> float:
        return sum(span.duration_us for span in self.spans)


def placed(trace: Timeline | str) -> Figure:
    """A bar in the order of execution; a sentence where nothing switches, or nothing was traced."""
    if isinstance(trace, str):
        return nothing(NAME, trace, _table([]))
    nodes = [span for span in trace.spans if span.depth == 0]
    stretches = [Stretch(name, list(mine)) for name, mine in groupby(nodes, key=lambda span: span.provider)]
    table = _table(stretches[:MAX_STRETCHES])
    if len(stretches) <= 1:
        return nothing(NAME, finding(stretches), table)
    providers = list(dict.fromkeys(stretch.provider for stretch in stretches))
    return Figure(
        name=NAME,
        title=finding(stretches),
        summary=(
            f"{numbers.counted(len(nodes), 'executed node')} of the main graph in the order in which they ran, by "
            "provider, as wide as their time. The table below has every stretch."
        ),
        data=[_bars(name, stretches[:MAX_STRETCHES]) for name in providers],
        layout=theme.layout(
            height=160,
            xaxis=theme.axis(
                "µs in nodes, in the order of execution",
                zeroline=False,
                **theme.linear([sum(stretch.time_us for stretch in stretches[:MAX_STRETCHES])]),
            ),
            yaxis=theme.axis("", showticklabels=False, showgrid=False, zeroline=False),
            barmode="overlay",
            showlegend=True,
        ),
        table=table,
        note="Times are from a trace. Tracing adds time to every node.",
    )


def finding(stretches: Sequence[Stretch]) -> str:
    """How often execution changes its provider."""
    nodes = sum(len(stretch.spans) for stretch in stretches)
    if not stretches:
        return "The trace holds no executed node."
    if len(stretches) == 1:
        ran = numbers.counted(nodes, "executed node")
        return f"All {ran} of the main graph ran on {titles.provider(stretches[0].provider)}, one after another."
    names = [titles.provider(name) for name in dict.fromkeys(stretch.provider for stretch in stretches)]
    switches = numbers.counted(len(stretches) - 1, "switch", "switches")
    return f"{switches} between {numbers.listed(names)} in one inference"


def _bars(name: str, stretches: Sequence[Stretch]) -> Json:
    begins = accumulate((stretch.time_us for stretch in stretches), initial=0.0)
    mine = [(start, stretch) for start, stretch in zip(begins, stretches, strict=False) if stretch.provider == name]
    return theme.bars(
        [round(stretch.time_us, 1) for _, stretch in mine],
        [0] * len(mine),
        base=[round(start, 1) for start, _ in mine],
        name=titles.provider(name),
        marker={"color": colours.provider(name), "line": EDGE},
        customdata=[[len(stretch.spans), short(stretch.spans[0].name)] for _, stretch in mine],
        hover="%{fullData.name}: %{customdata[0]} nodes from %{customdata[1]} on, %{x:.4~g} µs",
    )


def _table(stretches: Sequence[Stretch]) -> Table:
    columns: tuple[Column[tuple[int, Stretch]], ...] = (
        Number("Stretch", lambda each: counted(each[0])),
        Column("Provider", lambda each: Entry(titles.provider(each[1].provider))),
        Number("nodes", lambda each: rounded(len(each[1].spans))),
        Number("µs", lambda each: written(each[1].time_us)),
        Column("First node", lambda each: Entry(each[1].spans[0].name, is_name=True)),
        Column("Last node", lambda each: Entry(each[1].spans[-1].name, is_name=True)),
    )
    return Table.of(NAME, "Stretches of nodes on one provider", columns, list(enumerate(stretches, start=1)))
