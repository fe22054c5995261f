"""The placement map of one cell: stretches of nodes on one provider, in the order in which they ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dashboard.figures import colours, scales, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from dashboard.figures.timeline import short
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, written
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles

NAME = "placement-map"
MOST_STRETCHES = 400


@dataclass(frozen=True)
class Stretch:
    """Nodes that ran one after another on one provider."""

    provider: str
    spans: Sequence[Span]

    @property
    def time_us(self) -> float:
        return sum(one.duration_us for one in self.spans)


def placed(trace: Timeline | str) -> Figure:
    """A bar in the order of execution; a sentence where nothing switches, or nothing was traced."""
    if isinstance(trace, str):
        return nothing(NAME, trace, _table([]))
    nodes = [one for one in trace.spans if one.depth == 0]
    stretches = [Stretch(name, list(mine)) for name, mine in groupby(nodes, key=lambda one: one.provider)]
    table = _table(stretches[:MOST_STRETCHES])
    if len(stretches) <= 1:
        return nothing(NAME, finding(stretches), table)
    providers = list(dict.fromkeys(one.provider for one in stretches))
    return Figure(
        name=NAME,
        title=finding(stretches),
        summary=(
            f"{numbers.counted(len(nodes), 'executed node')} of the main graph in the order in which they ran, by "
            "provider, as wide as their time. The table below has every stretch."
        ),
        data=[_bars(name, stretches[:MOST_STRETCHES]) for name in providers],
        layout=theme.layout(
            height=160,
            xaxis=theme.axis(
                "µs in nodes, in the order of execution",
                zeroline=False,
                **scales.linear([sum(one.time_us for one in stretches[:MOST_STRETCHES])]),
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
    nodes = sum(len(one.spans) for one in stretches)
    if not stretches:
        return "The trace holds no executed node."
    if len(stretches) == 1:
        ran = numbers.counted(nodes, "executed node")
        return f"All {ran} of the main graph ran on {titles.provider(stretches[0].provider)}, one after another."
    names = [titles.provider(name) for name in dict.fromkeys(one.provider for one in stretches)]
    switches = numbers.counted(len(stretches) - 1, "switch", "switches")
    return f"{switches} between {numbers.listed(names)} in one inference"


def _bars(name: str, stretches: Sequence[Stretch]) -> Json:
    begins, mine = 0.0, []
    for one in stretches:
        if one.provider == name:
            mine.append((begins, one))
        begins += one.time_us
    return {
        "type": "bar",
        "orientation": "h",
        "name": titles.provider(name),
        "base": [round(base, 1) for base, _ in mine],
        "x": [round(one.time_us, 1) for _, one in mine],
        "y": [0] * len(mine),
        "marker": {"color": colours.provider(name), "line": {"color": "@paper", "width": 1}},
        "customdata": [[len(one.spans), short(one.spans[0].name)] for _, one in mine],
        "hovertemplate": (
            "%{fullData.name}: %{customdata[0]} nodes from %{customdata[1]} on, %{x:.4~g} µs<extra></extra>"
        ),
    }


def _table(stretches: Sequence[Stretch]) -> Table:
    columns: tuple[Column[tuple[int, Stretch]], ...] = (
        Number("Stretch", lambda each: counted(each[0])),
        Column("Provider", lambda each: Entry(titles.provider(each[1].provider))),
        Number("nodes", lambda each: Entry(numbers.fixed(len(each[1].spans), 0), len(each[1].spans))),
        Number("µs", lambda each: written(each[1].time_us)),
        Column("First node", lambda each: Entry(each[1].spans[0].name, is_name=True)),
        Column("Last node", lambda each: Entry(each[1].spans[-1].name, is_name=True)),
    )
    return Table.of(NAME, "Stretches of nodes on one provider", columns, list(enumerate(stretches, start=1)))
