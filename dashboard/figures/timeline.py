"""One inference as a flame chart: nodes along the time, those inside control flow below the node that holds them."""

from collections.abc import Sequence

from dashboard.figures import colours, theme
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.theme import Json
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers, titles

NAME = "timeline"
# bars beyond this could not be told apart; the shortest are left out, so that what stood out still stands out
MOST_BARS = 1500
MOST_ROWS = 300
MOST_TYPES = 6
LONGEST = 60
ROW = 44
NOTHING = Timeline(runs=0, number=0, duration_us=0.0, spans=())


def timeline(trace: Timeline | str, *, untraced_ms: float | None = None) -> Figure:
    """The timeline, or the sentence that says why there is none. `untraced_ms`: the cell's p50 without tracing."""
    if isinstance(trace, str):
        return nothing(NAME, trace, _table(NOTHING))
    drawn = sorted(sorted(trace.spans, key=lambda one: -one.duration_us)[:MOST_BARS], key=lambda one: one.start_us)
    if not drawn:
        return nothing(NAME, "The trace holds no executed node.", _table(NOTHING))
    types = types_of(trace.spans)
    rows = _rows(drawn)
    return Figure(
        name=NAME,
        title=finding(trace),
        summary=_summary(trace, len(drawn)),
        data=[_bars(name, drawn, types, trace) for name in [*types, ""] if _of(name, drawn, types)],
        layout=theme.layout(
            height=theme.row_height(len(rows), per_row=ROW, least=160),
            xaxis=theme.axis(
                "µs since the traced inference began", range=[0, _end(trace, drawn)], fixedrange=False, zeroline=False
            ),
            yaxis=theme.axis(
                "", tickvals=list(range(len(rows))), ticktext=[_row_name(row) for row in rows],
                range=[len(rows) - 0.5, -0.5], showgrid=False, zeroline=False,
            ),
            barmode="overlay",
            bargap=0.1,
            showlegend=True,
            dragmode="zoom",
        ),
        table=_table(trace),
        note=_note(trace, untraced_ms),
        zooms=True,
    )  # fmt: skip


def finding(trace: Timeline) -> str:
    """How long the inference took, how much of it in nodes, and the longest."""
    longest = max(trace.spans, key=lambda one: one.self_us)
    share = numbers.share(trace.in_nodes_us / trace.duration_us if trace.duration_us else None)
    return (
        f"One traced inference of {_us(trace.duration_us)} µs, {share} of it in nodes; "
        f"longest: {_node(longest)}, {_us(longest.self_us)} µs"
    )


def _node(one: Span) -> str:
    """Its type and its name, which is the type alone of a node without one."""
    return one.op_type if one.name == one.op_type else f"{one.op_type} {short(one.name)}"


def _summary(trace: Timeline, drawn: int) -> str:
    left = len(trace.spans) - drawn
    rest = f" {numbers.counted(left, 'shortest node')} are not drawn." if left else ""
    return (
        f"The inference of median length among {trace.runs} traced ones; tracing takes time itself, so it is longer "
        f"than a timed one.{rest} The table below has the longest nodes."
    )


def _note(trace: Timeline, untraced_ms: float | None) -> str:
    """That tracing adds time, and how much where it is known."""
    told = "Tracing adds time: read shares and order from it, and latency from p50."
    if untraced_ms is None:
        return told
    return (
        f"{told} This inference took {_us(trace.duration_us)} µs; p50 without tracing is {_us(1000 * untraced_ms)} µs."
    )


def _end(trace: Timeline, drawn: Sequence[Span]) -> float:
    """The end of the inference, or of the last node where that is later."""
    return round(max(trace.duration_us, *(one.start_us + one.duration_us for one in drawn)), 1)


def types_of(spans: Sequence[Span]) -> list[str]:
    """The types of operator with most time; the others share one colour."""
    times: dict[str, float] = {}
    for one in spans:
        times[one.op_type] = times.get(one.op_type, 0.0) + one.self_us
    return sorted(filter(None, times), key=lambda name: -times[name])[:MOST_TYPES]


def _of(name: str, spans: Sequence[Span], types: Sequence[str]) -> list[Span]:
    return [one for one in spans if (one.op_type == name if name else one.op_type not in types)]


def _rows(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Thread and depth of each row, top to bottom."""
    return sorted({(one.lane, one.depth) for one in spans})


def _row_name(row: tuple[int, int]) -> str:
    lane, depth = row
    inside = "nodes" if depth == 0 else "inside" if depth == 1 else f"inside, {depth} deep"
    return f"thread {lane + 1}, {inside}" if lane else inside


def _bars(name: str, spans: Sequence[Span], types: Sequence[str], trace: Timeline) -> Json:
    mine, rows = _of(name, spans, types), _rows(spans)
    return {
        "type": "bar",
        "orientation": "h",
        "name": name or "others",
        "base": [round(one.start_us, 1) for one in mine],
        "x": [round(one.duration_us, 1) for one in mine],
        "y": [rows.index((one.lane, one.depth)) for one in mine],
        "marker": {
            "color": colours.operators(types)[name] if name else colours.GREY,
            "line": {"color": "@paper", "width": 0.5},
        },
        "customdata": [[short(one.name), one.op_type, titles.provider(one.provider)] for one in mine],
        "hovertemplate": (
            "%{customdata[1]} %{customdata[0]}<br>%{x:.4~g} µs from %{base:.4~g} µs on, %{customdata[2]}<extra></extra>"
        ),
    }


def short(name: str) -> str:
    """A node's name from its end, which tells nodes of one model apart."""
    return name if len(name) <= LONGEST else f"…{name[-LONGEST + 1 :]}"


def _us(value: float | None) -> str:
    """The profiler knows whole microseconds."""
    return numbers.fixed(value or 0.0, 0)


def _table(trace: Timeline) -> Table:
    longest = sorted(trace.spans, key=lambda one: -one.self_us)[:MOST_ROWS]
    columns: tuple[Column[Span], ...] = (
        Column("Executed node", lambda one: Entry(one.name, is_name=True)),
        Column("Type", lambda one: Entry(one.op_type)),
        Column("Provider", lambda one: Entry(titles.provider(one.provider))),
        Number("from, µs", lambda one: written(one.start_us, _us), note="since the inference began"),
        Number("takes, µs", lambda one: written(one.duration_us, _us), note="with what runs inside it"),
        Number("itself, µs", lambda one: written(one.self_us, _us)),
        Number(
            "share",
            lambda one: Entry(numbers.share(one.self_us / (trace.duration_us or 1)), one.self_us),
            note="of the inference",
        ),
    )
    rows = sorted(longest, key=lambda one: one.start_us)
    left = len(trace.spans) - len(rows)
    caption = "Executed nodes in the order in which they began"
    caption += f"; {numbers.counted(left, 'shorter one')} left out" if left else ""
    return Table.of(NAME, caption, columns, rows)
