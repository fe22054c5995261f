"""The chart of traced inferences of several cells: a lane for each cell, one below the other, on the same time axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dashboard.figures import colours, theme, traces
from dashboard.figures.figure import Figure, empty_figure
from dashboard.figures.timelines import MAX_BARS, Bar, Matched, draw_bars, format_us, make_layout
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number
from farm.rules.tracing.graphs import list_beginnings
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording import numbers

NAME = "timelines"
# the free part of a lane, and how many pairs of bars are joined by lines
LANE_GAP, MAX_LINKS = 0.4, 12


@dataclass(frozen=True)
class Traced:
    """A cell's name and its traced inference, or the sentence that says why there is none."""

    name: str
    trace: Timeline | str


COLUMNS: tuple[Column[tuple[str, Timeline]], ...] = (
    Column("Cell", lambda row: Entry(row[0])),
    Number("inference, µs", lambda row: as_number(row[1].duration_us, format_us)),
    Number("in nodes, µs", lambda row: as_number(row[1].in_nodes_us, format_us)),
    Number("executed nodes", lambda row: as_count(len(row[1].spans))),
    Number("inferences traced", lambda row: as_count(row[1].runs)),
)


def draw_lanes(traced: Sequence[Traced], matched: Mapping[str, Matched]) -> Figure:
    """Draw traced inferences, one lane below the other, with at most the MAX_BARS longest bars of all. Cells without a
    trace are left out; without any trace the chart is empty and says why. Nodes whose time changed are coloured, and
    between exactly two cells the longest of these are joined by lines. `matched`: the group of each node of the model,
    by the node's name."""
    known = [
        (place, cell.name, cell.trace)
        for place, cell in enumerate(traced)
        if not isinstance(cell.trace, str) and cell.trace.spans
    ]
    table = Table.of(NAME, "The traced inference of each cell", COLUMNS, [(name, trace) for _, name, trace in known])
    if not known:
        why = next((cell.trace for cell in traced if isinstance(cell.trace, str)), "The traces hold no executed node.")
        return empty_figure(NAME, why, table)
    rows: list[str] = []
    bars: list[Bar] = []
    for place, name, trace in known:
        places = sorted({(span.lane, span.depth) for span in trace.spans})
        for number, (lane, depth) in enumerate(places, len(rows)):
            mine = [span for span in trace.spans if (span.lane, span.depth) == (lane, depth)]
            bars += _join_spans(mine, number, place, matched)
        rows += [_cell_row_name(name, *place) for place in places]
    bars = sorted(bars, key=lambda bar: -bar.length_us)[:MAX_BARS]
    took = [f"{format_us(trace.duration_us)} µs in {name}" for _, name, trace in known]
    return Figure(
        name=NAME,
        title=numbers.unbroken(f"One traced inference: {numbers.listed(took, most=4)}"),
        summary=_write_summary(traced, drawn=bars),
        data=[draw_bars(name, mine, colour) for name, colour, mine in _paint_bars(bars)],
        layout=make_layout(
            rows,
            [trace for _, _, trace in known],
            "µs since the inference began",
            height=theme.row_height(len(rows), per_row=72, least=240),
            bargap=LANE_GAP,
            shapes=_draw_links(bars) if len(known) == len(traced) == 2 else [],
        ),
        table=table,
        zooms=True,
    )


def _join_spans(spans: Sequence[Span], row: int, place: int, matched: Mapping[str, Matched]) -> list[Bar]:
    """Join spans of a row that follow each other and belong to the same group of nodes."""
    found = [
        (span, next((matched[part] for part in list_beginnings(span.name) if part in matched), None))
        for span in sorted(spans, key=lambda span: span.start_us)
    ]
    alike = groupby(enumerate(found), key=lambda each: each[1][1].name if each[1][1] is not None else each[0])
    return [_make_bar([each for _, each in some], row, place) for _, some in alike]


def _make_bar(found: Sequence[tuple[Span, Matched | None]], row: int, place: int) -> Bar:
    """Make a bar. A bar of the base, whose `place` is 0, has the sign of the first cell that changed against it."""
    matched = found[0][1]
    signs = matched.moved if matched is not None else ()
    sign = signs[place - 1] if place and signs else next(filter(None, signs), None)
    return Bar([span for span, _ in found], row, matched, sign)


def _paint_bars(bars: Sequence[Bar]) -> list[tuple[str, str, list[Bar]]]:
    """Group the bars by sign, each group with its name and colour; bars without a sign are grey."""
    signs = sorted({bar.sign for bar in bars if bar.sign is not None}, key=lambda sign: sign.word)
    painted = [
        (sign.word, theme.ACCENT if sign.tone == "quiet" else f"@{sign.tone}", [b for b in bars if b.sign == sign])
        for sign in signs
    ]
    still = [bar for bar in bars if bar.sign is None]
    return [*painted, *([("not moved", colours.GREY, still)] if still else [])]


def _draw_links(bars: Sequence[Bar]) -> list[theme.Json]:
    """Draw lines from the changed bars of the upper lane to the same nodes in the lower lane, for the longest bars."""
    half = (1 - LANE_GAP) / 2
    sides: dict[str, dict[int, Bar]] = {}
    for bar in bars:
        if bar.sign is not None and bar.matched is not None and bar.spans[0].depth == bar.spans[0].lane == 0:
            sides.setdefault(bar.matched.name, {}).setdefault(bar.row, bar)
    pairs = [[own[row] for row in sorted(own)] for own in sides.values() if len(own) == 2][:MAX_LINKS]
    return [
        {"type": "line", "layer": "below", "x0": x0, "x1": x1, "y0": upper.row + half, "y1": lower.row - half}
        | {"line": traces.make_pen(theme.SOFT, 1)}
        for upper, lower in pairs
        for x0, x1 in (
            (upper.start_us, lower.start_us),
            (upper.start_us + upper.length_us, lower.start_us + lower.length_us),
        )
    ]


def _write_summary(traced: Sequence[Traced], drawn: Sequence[Bar]) -> str:
    spans = sum(0 if isinstance(cell.trace, str) else len(cell.trace.spans) for cell in traced)
    left = spans - sum(len(bar.spans) for bar in drawn)
    rest = f" {numbers.counted(left, 'short node')} are not drawn." if left else ""
    missing = [f"{cell.name}: {cell.trace}" for cell in traced if isinstance(cell.trace, str)]
    return (
        "Same axis for every cell; nodes that run one after another for the same nodes of the model are one bar, "
        "painted where their time moved. Tracing takes time itself, so these inferences are longer than timed "
        f"ones.{rest}{' ' if missing else ''}{' '.join(missing)}"
    )


def _cell_row_name(name: str, lane: int, depth: int) -> str:
    """Name a row: by the cell for its first row, else by thread and depth."""
    where = [f"thread {lane + 1}"] if lane else []
    where += [f"inside, {depth} deep"] if depth else []
    return ", ".join(where) if where else name
