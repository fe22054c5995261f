"""One inference as a flame chart, nodes along the time, of a cell or of several, one below the other on one axis; and
the placement map of a cell: stretches of nodes on one provider, in the order in which they ran."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from dashboard.figures import colours, theme
from dashboard.figures.cell_bars import EDGE
from dashboard.figures.figure import Figure, empty_figure, end_of, rounded_entry
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, written
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles

ONE, SEVERAL = "timeline", "timelines"
# bars beyond this could not be told apart; the shortest are left out, so that what stood out still stands out
MAX_BARS = 1500
MAX_ROWS = 300
MAX_TYPES = 6
NOTHING = Timeline(runs=0, number=0, duration_us=0.0, spans=())


@dataclass(frozen=True)
class Traced:
    """A cell and its traced inference, or the sentence that says why there is none."""

    name: str
    trace: Timeline | str


@dataclass(frozen=True)
class _Bar:
    span: Span
    row: int
    has_moved: bool = False


def timeline(trace: Timeline | str, *, untraced_ms: float | None = None) -> Figure:
    """The timeline, or the sentence that says why there is none. `untraced_ms`: the cell's p50 without tracing."""
    if isinstance(trace, str):
        return empty_figure(ONE, trace, _table(NOTHING))
    longest = sorted(trace.spans, key=lambda span: -span.duration_us)[:MAX_BARS]
    drawn = sorted(longest, key=lambda span: span.start_us)
    if not drawn:
        return empty_figure(ONE, "The trace holds no executed node.", _table(NOTHING))
    # thread and depth of each row, top to bottom
    places = sorted({(span.lane, span.depth) for span in drawn})
    bars = [_Bar(span, places.index((span.lane, span.depth))) for span in drawn]
    return Figure(
        name=ONE,
        title=finding(trace),
        summary=_summary(trace, len(drawn)),
        data=_series(bars, trace.spans, is_compared=False),
        layout=_layout(
            [_row_name(*place) for place in places],
            [trace],
            "µs since the traced inference began",
            height=theme.row_height(len(places), per_row=44, least=160),
            bargap=0.1,
        ),
        table=_table(trace),
        note=_note(trace, untraced_ms),
        zooms=True,
    )


def timelines(traced: Sequence[Traced], moved: Collection[str]) -> Figure:
    """The inferences that are there. `moved`: the own nodes whose time moved between the cells, which are outlined."""
    known = [(cell.name, cell.trace) for cell in traced if not isinstance(cell.trace, str) and cell.trace.spans]
    table = Table.of(SEVERAL, "The traced inference of each cell", COLUMNS, known)
    if not known:
        why = next((cell.trace for cell in traced if isinstance(cell.trace, str)), "The traces hold no executed node.")
        return empty_figure(SEVERAL, why, table)
    rows: list[str] = []
    bars: list[_Bar] = []
    for name, trace in known:
        places = sorted({(span.lane, span.depth) for span in trace.spans})
        bars += [
            _Bar(span, len(rows) + places.index((span.lane, span.depth)), span.name in moved) for span in trace.spans
        ]
        rows += [_cell_row_name(name, *place) for place in places]
    bars = sorted(bars, key=lambda bar: -bar.span.duration_us)[:MAX_BARS]
    took = [f"{_us(trace.duration_us)} µs in {name}" for name, trace in known]
    return Figure(
        name=SEVERAL,
        title=numbers.unbroken(f"One traced inference: {numbers.listed(took, most=4)}"),
        summary=_summary_of_several(traced, known, drawn=len(bars)),
        data=_series(bars, [span for _, trace in known for span in trace.spans], is_compared=True),
        layout=_layout(
            rows,
            [trace for _, trace in known],
            "µs since the inference began",
            height=theme.row_height(len(rows), per_row=56, least=200),
            bargap=0.15,
        ),
        table=table,
        zooms=True,
    )


def finding(trace: Timeline) -> str:
    """How long the inference took, how much of it in nodes, and the longest."""
    longest = max(trace.spans, key=lambda span: span.self_us)
    share = numbers.share(trace.in_nodes_us / trace.duration_us if trace.duration_us else None)
    # a node without a name has its type for it
    node = longest.op_type if longest.name == longest.op_type else f"{longest.op_type} {shorten_name(longest.name)}"
    return (
        f"One traced inference of {_us(trace.duration_us)} µs, {share} of it in nodes; "
        f"longest: {node}, {_us(longest.self_us)} µs"
    )


def shorten_name(name: str) -> str:
    return end_of(name, most=60)


def _summary(trace: Timeline, drawn: int) -> str:
    left = len(trace.spans) - drawn
    rest = f" {numbers.counted(left, 'shortest node')} are not drawn." if left else ""
    return (
        f"The inference of median length among {trace.runs} traced ones; tracing takes time itself, so it is longer "
        f"than a timed one.{rest} The table below has the longest nodes."
    )


def _summary_of_several(traced: Sequence[Traced], known: Sequence[tuple[str, Timeline]], *, drawn: int) -> str:
    left = sum(len(trace.spans) for _, trace in known) - drawn
    rest = f" {numbers.counted(left, 'short node')} are not drawn." if left else ""
    missing = [f"{cell.name}: {cell.trace}" for cell in traced if isinstance(cell.trace, str)]
    return (
        "Same axis for every cell; nodes whose time moved are outlined. Tracing takes time itself, so these inferences "
        f"are longer than timed ones.{rest}{' ' if missing else ''}{' '.join(missing)}"
    )


def _note(trace: Timeline, untraced_ms: float | None) -> str:
    """That tracing adds time, and how much where it is known."""
    general = "Tracing adds time: read shares and order from it, and latency from p50."
    if untraced_ms is None:
        return general
    took, untraced = _us(trace.duration_us), _us(1000 * untraced_ms)
    return f"{general} This inference took {took} µs; p50 without tracing is {untraced} µs."


def _row_name(lane: int, depth: int) -> str:
    inside = "nodes" if depth == 0 else "inside" if depth == 1 else f"inside, {depth} deep"
    return f"thread {lane + 1}, {inside}" if lane else inside


def _cell_row_name(name: str, lane: int, depth: int) -> str:
    """A cell's threads and depths stand below it."""
    where = [f"thread {lane + 1}"] if lane else []
    where += [f"inside, {depth} deep"] if depth else []
    return ", ".join(where) if where else name


def _layout(rows: Sequence[str], traces: Sequence[Timeline], title: str, *, height: int, bargap: float) -> theme.Json:
    """Until the end of the longest inference, or of the last node where that is later."""
    end = max(max(trace.duration_us, *(span.start_us + span.duration_us for span in trace.spans)) for trace in traces)
    return theme.layout(
        height=height,
        xaxis=theme.axis(title, range=[0, round(end, 1)], fixedrange=False, zeroline=False),
        yaxis=theme.numbered_rows(rows),
        barmode="overlay",
        bargap=bargap,
        showlegend=True,
        dragmode="zoom",
    )


def _series(bars: Sequence[_Bar], spans: Sequence[Span], *, is_compared: bool) -> list[theme.Json]:
    """A series for each of the types of operator with most time; the others share one."""
    times: dict[str, float] = {}
    for span in spans:
        times[span.op_type] = times.get(span.op_type, 0.0) + span.self_us
    types = sorted(filter(None, times), key=lambda name: -times[name])[:MAX_TYPES]
    coloured = {**colours.operators(types), "": colours.GREY}
    of_type = {name: [bar for bar in bars if bar.span.op_type == name] for name in types}
    of_type[""] = [bar for bar in bars if bar.span.op_type not in types]
    return [_bars(name, mine, coloured[name], is_compared) for name, mine in of_type.items() if mine]


def _bars(name: str, bars: Sequence[_Bar], colour: str, is_compared: bool) -> theme.Json:
    outlined = {
        "color": [theme.INK if bar.has_moved else "@paper" for bar in bars],
        "width": [2 if bar.has_moved else 0.5 for bar in bars],
    }
    return theme.bars(
        [round(bar.span.duration_us, 1) for bar in bars],
        [bar.row for bar in bars],
        base=[round(bar.span.start_us, 1) for bar in bars],
        name=name or "others",
        marker={"color": colour, "line": outlined if is_compared else theme.pen("@paper", 0.5)},
        customdata=[
            [
                shorten_name(bar.span.name),
                bar.span.op_type,
                f"{titles.provider(bar.span.provider)}{', moved' if bar.has_moved else ''}",
            ]
            for bar in bars
        ],
        hover="%{customdata[1]} %{customdata[0]}<br>%{x:.4~g} µs from %{base:.4~g} µs on, %{customdata[2]}",
    )


def _us(value: float | None) -> str:
    """The profiler knows whole microseconds."""
    return numbers.fixed(value or 0.0, 0)


def _table(trace: Timeline) -> Table:
    longest = sorted(trace.spans, key=lambda span: -span.self_us)[:MAX_ROWS]
    columns: tuple[Column[Span], ...] = (
        Column("Executed node", lambda span: Entry(span.name, is_name=True)),
        Column("Type", lambda span: Entry(span.op_type)),
        Column("Provider", lambda span: Entry(titles.provider(span.provider))),
        Number("from, µs", lambda span: written(span.start_us, _us), note="since the inference began"),
        Number("takes, µs", lambda span: written(span.duration_us, _us), note="with what runs inside it"),
        Number("itself, µs", lambda span: written(span.self_us, _us)),
        Number(
            "share",
            lambda span: written(span.self_us / (trace.duration_us or 1), numbers.share),
            note="of the inference",
        ),
    )
    left = len(trace.spans) - len(longest)
    caption = "Executed nodes in the order in which they began"
    caption += f"; {numbers.counted(left, 'shorter one')} left out" if left else ""
    return Table.of(ONE, caption, columns, sorted(longest, key=lambda span: span.start_us))


COLUMNS: tuple[Column[tuple[str, Timeline]], ...] = (
    Column("Cell", lambda row: Entry(row[0])),
    Number("inference, µs", lambda row: written(row[1].duration_us, _us)),
    Number("in nodes, µs", lambda row: written(row[1].in_nodes_us, _us)),
    Number("executed nodes", lambda row: counted(len(row[1].spans))),
    Number("inferences traced", lambda row: counted(row[1].runs)),
)


PLACEMENT_MAP = "placement-map"
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
        return empty_figure(PLACEMENT_MAP, trace, _stretch_table([]))
    nodes = [span for span in trace.spans if span.depth == 0]
    stretches = [Stretch(name, list(mine)) for name, mine in groupby(nodes, key=lambda span: span.provider)]
    table = _stretch_table(stretches[:MAX_STRETCHES])
    if len(stretches) <= 1:
        return empty_figure(PLACEMENT_MAP, _switches(stretches), table)
    providers = list(dict.fromkeys(stretch.provider for stretch in stretches))
    return Figure(
        name=PLACEMENT_MAP,
        title=_switches(stretches),
        summary=(
            f"{numbers.counted(len(nodes), 'executed node')} of the main graph in the order in which they ran, by "
            "provider, as wide as their time. The table below has every stretch."
        ),
        data=[_stretch_bars(name, stretches[:MAX_STRETCHES]) for name in providers],
        layout=theme.layout(
            height=160,
            xaxis=theme.axis(
                "µs in nodes, in the order of execution",
                zeroline=False,
                **theme.linear([sum(stretch.time_us for stretch in stretches[:MAX_STRETCHES])]),
            ),
            yaxis=theme.numbered_rows([""]),
            barmode="overlay",
            showlegend=True,
        ),
        table=table,
        note="Times are from a trace. Tracing adds time to every node.",
    )


def _switches(stretches: Sequence[Stretch]) -> str:
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


def _stretch_bars(name: str, stretches: Sequence[Stretch]) -> theme.Json:
    begins = accumulate((stretch.time_us for stretch in stretches), initial=0.0)
    mine = [(start, stretch) for start, stretch in zip(begins, stretches, strict=False) if stretch.provider == name]
    return theme.bars(
        [round(stretch.time_us, 1) for _, stretch in mine],
        [0] * len(mine),
        base=[round(start, 1) for start, _ in mine],
        name=titles.provider(name),
        marker={"color": colours.provider(name), "line": EDGE},
        customdata=[[len(stretch.spans), shorten_name(stretch.spans[0].name)] for _, stretch in mine],
        hover="%{fullData.name}: %{customdata[0]} nodes from %{customdata[1]} on, %{x:.4~g} µs",
    )


def _stretch_table(stretches: Sequence[Stretch]) -> Table:
    columns: tuple[Column[tuple[int, Stretch]], ...] = (
        Number("Stretch", lambda each: counted(each[0])),
        Column("Provider", lambda each: Entry(titles.provider(each[1].provider))),
        Number("nodes", lambda each: rounded_entry(len(each[1].spans))),
        Number("µs", lambda each: written(each[1].time_us)),
        Column("First node", lambda each: Entry(each[1].spans[0].name, is_name=True)),
        Column("Last node", lambda each: Entry(each[1].spans[-1].name, is_name=True)),
    )
    return Table.of(PLACEMENT_MAP, "Stretches of nodes on one provider", columns, list(enumerate(stretches, start=1)))
