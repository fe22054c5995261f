"""Charts of a traced inference: its timeline as a flame chart, and the placement map, which shows in order of execution
how the provider changes from node to node."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from dashboard.figures import colours, scales, theme, traces
from dashboard.figures.cell_bars import EDGE
from dashboard.figures.figure import Figure, empty_figure, rounded_entry, shorten_start
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign

ONE = "timeline"
# more bars could not be distinguished; the shortest bars are left out, because the long ones matter
MAX_BARS = 1500
MAX_ROWS = 300
MAX_TYPES = 6
# at most so many operator types are named in the title
TYPES_NAMED = 3
NOTHING = Timeline(runs=0, number=0, duration_us=0.0, spans=())


@dataclass(frozen=True)
class Matched:
    """A group of nodes that several cells have in common. `moved`: for each cell except the base the sign of its
    change, None where its time changed too little or not for certain."""

    name: str
    moved: Sequence[Sign | None]


@dataclass(frozen=True)
class Bar:
    """Spans that run one after another and are drawn as a bar. In a timeline each span is a bar; where several cells
    are compared, spans of the same nodes share a bar. `length_us`: from the start of the first span to the last end of
    any."""

    spans: Sequence[Span]
    row: int
    matched: Matched | None = None
    sign: Sign | None = None

    @property
    def start_us(self) -> float:
        return self.spans[0].start_us

    @property
    def length_us(self) -> float:
        return max(span.start_us + span.duration_us for span in self.spans) - self.start_us


def draw_timeline(trace: Timeline | str, *, untraced_ms: float | None = None) -> Figure:
    """Draw the timeline of a traced inference with its MAX_BARS longest nodes; the table has MAX_ROWS, those that take
    most time themselves. `trace`: the trace, or a sentence that says why there is none, which an empty chart then
    shows; `untraced_ms`: the cell's p50 without tracing."""
    if isinstance(trace, str):
        return empty_figure(ONE, trace, _make_table(NOTHING))
    longest = sorted(trace.spans, key=lambda span: -span.duration_us)[:MAX_BARS]
    drawn = sorted(longest, key=lambda span: span.start_us)
    if not drawn:
        return empty_figure(ONE, "The trace holds no executed node.", _make_table(NOTHING))
    # thread and depth of each row, top to bottom
    places = sorted({(span.lane, span.depth) for span in drawn})
    bars = [Bar([span], places.index((span.lane, span.depth))) for span in drawn]
    return Figure(
        name=ONE,
        title=write_finding(((span.op_type, span.self_us) for span in trace.spans), trace.duration_us),
        summary=_write_summary(trace, len(drawn)),
        data=_draw_series(bars, trace.spans),
        layout=make_layout(
            [_name_row(*place) for place in places],
            [trace],
            "µs since the traced inference began",
            height=theme.row_height(len(places), per_row=44, least=160),
            bargap=0.1,
        ),
        table=_make_table(trace),
        note=_write_note(trace, untraced_ms),
        zooms=True,
    )


def write_finding(times_us: Iterable[tuple[str, float]], whole_us: float) -> str:
    """Say which share of a traced inference of `whole_us` the TYPES_NAMED longest operator types take. `times_us`: the
    type and the own time, without nodes inside it, of each node, at least one."""
    times = sum_by_type(times_us)
    leading = sorted(times, key=lambda op_type: -times[op_type])[:TYPES_NAMED]
    (first, share), *others = [(op_type, numbers.share(times[op_type] / (whole_us or 1.0))) for op_type in leading]
    return ", ".join([f"{first} takes {share} of a traced inference", *(f"{name} {part}" for name, part in others)])


def sum_by_type(times_us: Iterable[tuple[str, float]]) -> dict[str, float]:
    times: dict[str, float] = {}
    for op_type, time_us in times_us:
        times[op_type] = times.get(op_type, 0.0) + time_us
    return times


def shorten_name(name: str) -> str:
    return shorten_start(name, most=60)


def _write_summary(trace: Timeline, drawn: int) -> str:
    left = len(trace.spans) - drawn
    rest = f" {numbers.counted(left, 'shortest node')} are not drawn." if left else ""
    return (
        f"The inference of median length among {trace.runs} traced ones; tracing takes time itself, so it is longer "
        f"than a timed one.{rest} The table below has the longest nodes."
    )


def _write_note(trace: Timeline, untraced_ms: float | None) -> str:
    """Say that tracing adds time, and compare with p50 where that is known."""
    general = "Tracing adds time: read shares and order from it, and latency from p50."
    if untraced_ms is None:
        return general
    took, untraced = format_us(trace.duration_us), format_us(1000 * untraced_ms)
    return f"{general} This inference took {took} µs; p50 without tracing is {untraced} µs."


def _name_row(lane: int, depth: int) -> str:
    inside = "nodes" if depth == 0 else "inside" if depth == 1 else f"inside, {depth} deep"
    return f"thread {lane + 1}, {inside}" if lane else inside


def make_layout(
    rows: Sequence[str], traces: Sequence[Timeline], title: str, *, height: int, bargap: float, **more: object
) -> theme.Json:
    """Make the layout of traced inferences in rows, the first at the top. The axis ends with the longest inference, or
    with the last node where that is later. `title`: of the axis. Every trace must have a node."""
    end = max(max(trace.duration_us, *(span.start_us + span.duration_us for span in trace.spans)) for trace in traces)
    return theme.make_layout(
        height=height,
        xaxis=theme.make_axis(title, range=[0, round(end, 1)], fixedrange=False, zeroline=False),
        yaxis=theme.make_numbered_rows(rows),
        barmode="overlay",
        bargap=bargap,
        showlegend=True,
        dragmode="zoom",
        **more,
    )


def _draw_series(bars: Sequence[Bar], spans: Sequence[Span]) -> list[theme.Json]:
    """Draw a series for each operator type with most time; the others share one."""
    times = sum_by_type((span.op_type, span.self_us) for span in spans)
    types = sorted(filter(None, times), key=lambda name: -times[name])[:MAX_TYPES]
    coloured = {**colours.assign_operator_colours(types), "": colours.GREY}
    of_type = {name: [bar for bar in bars if bar.spans[0].op_type == name] for name in types}
    of_type[""] = [bar for bar in bars if bar.spans[0].op_type not in types]
    return [draw_bars(name or "others", mine, coloured[name]) for name, mine in of_type.items() if mine]


def draw_bars(name: str, bars: Sequence[Bar], colour: str) -> theme.Json:
    """Make the series of these bars in one colour, with times in µs. `name`: its name in the key."""
    return traces.make_bars(
        [round(bar.length_us, 1) for bar in bars],
        [bar.row for bar in bars],
        base=[round(bar.start_us, 1) for bar in bars],
        name=name,
        marker={"color": colour, "line": traces.make_pen("@paper", 0.5)},
        customdata=[
            [
                shorten_name(bar.matched.name if bar.matched is not None else bar.spans[0].name),
                " + ".join(dict.fromkeys(span.op_type for span in bar.spans)),
                titles.provider(bar.spans[0].provider) + (f", {bar.sign.word}" if bar.sign is not None else ""),
            ]
            for bar in bars
        ],
        hover="%{customdata[1]} %{customdata[0]}<br>%{x:.4~g} µs from %{base:.4~g} µs on, %{customdata[2]}",
    )


def format_us(value: float | None) -> str:
    """Format a time as whole microseconds, without the unit; None as 0."""
    return numbers.fixed(value or 0.0, 0)


def _make_table(trace: Timeline) -> Table:
    longest = sorted(trace.spans, key=lambda span: -span.self_us)[:MAX_ROWS]
    columns: tuple[Column[Span], ...] = (
        Column("Executed node", lambda span: Entry(span.name, is_name=True)),
        Column("Type", lambda span: Entry(span.op_type)),
        Column("Provider", lambda span: Entry(titles.provider(span.provider))),
        Number("from, µs", lambda span: as_number(span.start_us, format_us), note="since the inference began"),
        Number("takes, µs", lambda span: as_number(span.duration_us, format_us), note="with what runs inside it"),
        Number("itself, µs", lambda span: as_number(span.self_us, format_us)),
        Number(
            "share",
            lambda span: as_number(span.self_us / (trace.duration_us or 1), numbers.share),
            note="of the inference",
        ),
    )
    left = len(trace.spans) - len(longest)
    caption = "Executed nodes in the order in which they began"
    caption += f"; {numbers.counted(left, 'shorter one')} left out" if left else ""
    return Table.of(ONE, caption, columns, sorted(longest, key=lambda span: span.start_us))


PLACEMENT_MAP = "placement-map"
MAX_STRETCHES = 400


@dataclass(frozen=True)
class Stretch:
    """Nodes that ran one after another on one provider. `time_us`: the sum of their times, without the time between
    them."""

    provider: str
    spans: Sequence[Span]

    @property
    def time_us(self) -> float:
        return sum(span.duration_us for span in self.spans)


def draw_placement(trace: Timeline | str) -> Figure:
    """Draw the nodes of the main graph in the order of execution as a bar of stretches, each on a single provider. At
    most the first MAX_STRETCHES are drawn. The chart is empty and says why where the provider never changes or there is
    no trace (`trace` is then the sentence)."""
    if isinstance(trace, str):
        return empty_figure(PLACEMENT_MAP, trace, _make_stretch_table([]))
    nodes = [span for span in trace.spans if span.depth == 0]
    stretches = [Stretch(name, list(mine)) for name, mine in groupby(nodes, key=lambda span: span.provider)]
    table = _make_stretch_table(stretches[:MAX_STRETCHES])
    if len(stretches) <= 1:
        return empty_figure(PLACEMENT_MAP, _count_switches(stretches), table)
    providers = list(dict.fromkeys(stretch.provider for stretch in stretches))
    return Figure(
        name=PLACEMENT_MAP,
        title=_count_switches(stretches),
        summary=(
            f"{numbers.counted(len(nodes), 'executed node')} of the main graph in the order in which they ran, by "
            "provider, as wide as their time. The table below has every stretch."
        ),
        data=[_draw_stretches(name, stretches[:MAX_STRETCHES]) for name in providers],
        layout=theme.make_layout(
            height=160,
            xaxis=theme.make_axis(
                "µs in nodes, in the order of execution",
                zeroline=False,
                **scales.make_linear([sum(stretch.time_us for stretch in stretches[:MAX_STRETCHES])]),
            ),
            yaxis=theme.make_numbered_rows([""]),
            barmode="overlay",
            showlegend=True,
        ),
        table=table,
        note="Times are from a trace. Tracing adds time to every node.",
    )


def _count_switches(stretches: Sequence[Stretch]) -> str:
    """Say how often execution switches to another provider, or that it never does."""
    nodes = sum(len(stretch.spans) for stretch in stretches)
    if not stretches:
        return "The trace holds no executed node."
    if len(stretches) == 1:
        ran = numbers.counted(nodes, "executed node")
        return f"All {ran} of the main graph ran on {titles.provider(stretches[0].provider)}, one after another."
    names = [titles.provider(name) for name in dict.fromkeys(stretch.provider for stretch in stretches)]
    switches = numbers.counted(len(stretches) - 1, "switch", "switches")
    return f"{switches} between {numbers.listed(names)} in one inference"


def _draw_stretches(name: str, stretches: Sequence[Stretch]) -> theme.Json:
    begins = accumulate((stretch.time_us for stretch in stretches), initial=0.0)
    mine = [(start, stretch) for start, stretch in zip(begins, stretches, strict=False) if stretch.provider == name]
    return traces.make_bars(
        [round(stretch.time_us, 1) for _, stretch in mine],
        [0] * len(mine),
        base=[round(start, 1) for start, _ in mine],
        name=titles.provider(name),
        marker={"color": colours.provider_colour(name), "line": EDGE},
        customdata=[[len(stretch.spans), shorten_name(stretch.spans[0].name)] for _, stretch in mine],
        hover="%{fullData.name}: %{customdata[0]} nodes from %{customdata[1]} on, %{x:.4~g} µs",
    )


def _make_stretch_table(stretches: Sequence[Stretch]) -> Table:
    columns: tuple[Column[tuple[int, Stretch]], ...] = (
        Number("Stretch", lambda each: as_count(each[0])),
        Column("Provider", lambda each: Entry(titles.provider(each[1].provider))),
        Number("nodes", lambda each: rounded_entry(len(each[1].spans))),
        Number("µs", lambda each: as_number(each[1].time_us)),
        Column("First node", lambda each: Entry(each[1].spans[0].name, is_name=True)),
        Column("Last node", lambda each: Entry(each[1].spans[-1].name, is_name=True)),
    )
    return Table.of(PLACEMENT_MAP, "Stretches of nodes on one provider", columns, list(enumerate(stretches, start=1)))
