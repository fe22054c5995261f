"""The chart of a watch's series: ratios to the pinned release over time or releases, with level shifts and alerts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from dashboard.figures import colours, scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure, thin_places
from farm.rules.comparing.quantities import judge_series_value
from farm.rules.presenting.tables import Table
from farm.rules.wording import numbers


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a line, as a ratio to the pinned release. `round`: the number of the watch's round, 0 for the pinned
    release itself; `low` and `high`: the interval, None without one; `outcome`: of the round."""

    at: datetime
    version: str
    ratio: float
    low: float | None
    high: float | None
    round: int
    run: int | None = None
    outcome: str = ""


@dataclass(frozen=True)
class Shift:
    """A level shift. `index`: of the first value on the new level; `ratio`: new level / old level."""

    index: int
    ratio: float


@dataclass(frozen=True)
class Mark:
    """An alert on a line, at the index of the value that raised it. `alert`: its number; `is_slower`: it is open and
    says that latency is slower."""

    index: int
    alert: int
    state: str
    is_slower: bool = False


@dataclass(frozen=True)
class Line:
    """A series on a node, with at least one point. `label`: all its settings; `name`: only those that differ from other
    lines; `words`: what more and less of its metric are called; `key`: its name in addresses; `last`: its last point.
    The `verdict` on a point is undecided where the outcome of its round is, without an interval, and where that allows
    both equal and a change; its `interval` is “not measured” where it has none."""

    series: str
    node: str
    label: str
    name: str
    points: Sequence[Point]
    shifts: Sequence[Shift] = field(default_factory=tuple)
    marks: Sequence[Mark] = field(default_factory=tuple)
    words: numbers.Words = numbers.TIMES

    @property
    def last(self) -> Point:
        return self.points[-1]

    def change(self, point: Point) -> str:
        """Return the change against the pinned release in words: `19 % slower`."""
        return numbers.change(point.ratio, point.low, point.high, words=self.words)

    def verdict(self, point: Point) -> str:
        is_open = point.outcome == "undecided"
        return judge_series_value(point.ratio, point.low, point.high, is_undecided=is_open, words=self.words)

    def describe(self, point: Point) -> str:
        """Return the change in words, followed by “undecided” where that is its verdict."""
        return mark_undecided(self.change(point), self.verdict(point) if point.round else "equal")

    def interval(self, point: Point) -> str:
        return numbers.change_interval(point.low, point.high, ratio=point.ratio, words=self.words)

    @property
    def key(self) -> str:
        return series_key(self.series, self.node)


@dataclass(frozen=True)
class XAxis:
    """The x axis of the lines: over `releases` in their order, or over time where that is empty. `rounds`: for each
    round that measured any line one of its points."""

    releases: Sequence[str]
    rounds: Mapping[int, Point]

    def x(self, point: Point) -> str:
        return str(point.version) if self.releases else f"{point.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

    def with_gaps(self, line: "Line", indexes: Sequence[int]) -> list[tuple[str, int | None, Point | None]]:
        """List the points of the line at these indexes, each with its x and its index. Where other lines have a value
        and this line has none, an x without index and point breaks the line."""
        known = [(self.x(line.points[index]), index, line.points[index]) for index in indexes]
        missing = set(self.releases) - {point.version for point in line.points}
        if not self.releases:
            others = [self.rounds[number] for number in self.rounds.keys() - {point.round for point in line.points}]
            missing = {self.x(point) for point in others if line.points[0].at < point.at < line.points[-1].at}
        order = {version: number for number, version in enumerate(self.releases)}
        drawn = [*known, *((x, None, None) for x in missing)]
        drawn.sort(key=lambda part: (order.get(part[0], 0), part[0]))
        # a single gap is enough to break the line, so further ones in sequence are dropped
        return [part for before, part in pairwise([("", 0, None), *drawn]) if (before[1], part[1]) != (None, None)]


def series_key(series: str, node: str) -> str:
    return f"{series[:12]}@{node}"


def mark_undecided(change: str, verdict: str) -> str:
    return f"{change}, undecided" if verdict == "undecided" else change


def describe_shift(line: Line, shift: Shift) -> str:
    return f"{numbers.change(shift.ratio, 0.98, 1.02, words=line.words)} with {line.points[shift.index].version}"


NAME = "trend"
# latency by the clock or, on a busy machine, processor time: whichever the verdict of the round rests on
LATENCY = "latency"
# how many lines have a colour of their own, and how many are drawn in all, the others in grey
COLOURED, DRAWN = 7, 30
MAX_POINTS, MAX_GREY_POINTS = 300, 80
# a line with more values has no whiskers, because they would hide it
WHISKERS = 60


def draw_trend(
    lines: Sequence[Line],
    *,
    reference: str,
    table: Table,
    releases: Sequence[str] = (),
    chosen: str = "",
    what: str = LATENCY,
) -> Figure:
    """Draw at most DRAWN lines of a watch over `releases`, or over time where that is empty. Without lines the chart is
    empty and says so. `reference`: the pinned release; `chosen`: the key of a line that is highlighted while the others
    are grey; `what`: the metric in words; `table`: the table of all lines."""
    if not lines:
        return empty_figure(
            NAME, "No data yet: the first round of this watch adds the first point of each series.", table
        )
    ordered = sorted(lines, key=lambda line: line.key != chosen)[:DRAWN]
    xaxis = XAxis(releases, {point.round: point for line in ordered for point in line.points})
    colour_of = _choose_colours(lines, chosen)
    data = [part for line in ordered[::-1] for part in _draw_series(line, xaxis, colour_of[line.series, line.node])]
    drawn_axis = theme.make_axis("release", **scales.make_categories(releases))
    if not releases:
        moments = [point.at.astimezone(UTC) for line in ordered for point in line.points]
        drawn_axis = theme.make_axis("measured, UTC", **scales.make_time(moments))
    whiskers = [(point.low, point.high) for line in ordered if _has_whiskers(line) for point in line.points]
    reached = scales.list_reached(whiskers, *(point.ratio for line in ordered for point in line.points))
    return Figure(
        name=NAME,
        title=write_finding(
            [line for line in ordered if line.key == chosen] or ordered, reference=reference, what=what
        ),
        summary=_write_summary(lines, ordered, reference, what),
        data=data,
        layout=theme.make_layout(
            height=360,
            margin={"l": 8, "r": 24, "t": 8, "b": 8},
            xaxis=drawn_axis,
            yaxis=theme.make_axis(f"{what} against {reference}, logarithmic", **scales.make_ratio(reached)),
            shapes=[traces.make_rule("y", 1)],
            showlegend=len(ordered) > 1,
            legend={"traceorder": "reversed"},
        ),
        table=table,
        note=_write_note(lines, releases),
    )


def write_finding(lines: Sequence[Line], *, reference: str, what: str = LATENCY) -> str:
    """Say what the last values are, and count the undecided ones of several lines and the level shifts. There must be a
    line. For a single line, its last value of a release other than the reference is named, as still slower where an
    alert was opened for an earlier release; for several lines, the smallest and the largest last value."""
    shifts = sum(len(line.shifts) for line in lines)
    shifted = f"; {numbers.counted(shifts, 'level shift')}" if shifts else ""
    if len(lines) == 1:
        [line] = lines
        measured = [point for point in line.points if point.version != reference]
        last = (measured or line.points)[-1]
        alerted = {line.points[mark.index].version for mark in line.marks if mark.is_slower}
        if what == LATENCY and alerted - {last.version} and line.verdict(last) == "slower":
            return f"{last.version} is still {line.change(last)} than {reference}{shifted}"
        return f"{last.version} against {reference}: {line.describe(last)}{shifted}"
    lasts = sorted(lines, key=lambda line: line.last.ratio)
    undecided = sum(line.verdict(line.last) == "undecided" for line in lines)
    ends = " to ".join(line.change(line.last) for line in (lasts[0], lasts[-1]))
    series = numbers.counted(len(lines), "series", "series")
    open_ones = f"; {undecided} undecided" if undecided else ""
    return f"{series} against {reference}, the last values from {ends}{open_ones}{shifted}"


def _write_note(lines: Sequence[Line], releases: Sequence[str]) -> str:
    """Explain the marks that the drawing shows."""
    parts = [
        f"Whiskers: 95 % interval{'' if all(map(_has_whiskers, lines)) else f', of lines of up to {WHISKERS} values'}.",
        f"A break in a line: not measured {'on that release' if releases else 'in that round'}.",
        "◇ level shift." if any(line.shifts for line in lines) else "",
    ]
    return " ".join(filter(None, parts))


def _write_summary(lines: Sequence[Line], drawn: Sequence[Line], reference: str, what: str) -> str:
    values = sum(len(line.points) for line in lines)
    left = f" {len(lines) - len(drawn)} further series are in the table only." if len(lines) > len(drawn) else ""
    return (
        f"{numbers.counted(values, 'ratio')} of {what} to {reference}, each measured in one block with it. Long "
        f"lines are thinned, their extremes kept.{left} The table has the last value of every series."
    )


def _choose_colours(lines: Sequence[Line], chosen: str) -> dict[tuple[str, str], str]:
    """Choose the colour of each line, by series and node. A chosen line keeps its colour and the others become grey."""
    own = colours.assign_name_colours([line.name for line in lines])
    colour_of = {(line.series, line.node): colour for line, colour in zip(lines, own, strict=True)}
    wanted = next(((line.series, line.node) for line in lines if line.key == chosen), None)
    if wanted is None:
        return colour_of
    shown = colour_of[wanted] if colour_of[wanted] != colours.GREY else theme.ACCENT
    return {**dict.fromkeys(colour_of, colours.GREY), wanted: shown}


def _has_whiskers(line: Line) -> bool:
    return len(line.points) <= WHISKERS


def _draw_series(line: Line, xaxis: XAxis, colour: str) -> list[theme.Json]:
    is_grey = colour == colours.GREY
    marked = {shift.index for shift in line.shifts} | {mark.index for mark in line.marks}
    indexes = thin_places([point.ratio for point in line.points], most=MAX_GREY_POINTS if is_grey else MAX_POINTS)
    shown = sorted({*indexes, *marked})
    drawn = [_draw_line(line, shown, xaxis, colour=colour)]
    if line.shifts:
        drawn.append(_draw_shifts(line, xaxis, colour=colour))
    if line.marks:
        drawn.append(_draw_alerts(line, xaxis))
    return drawn


def _draw_line(line: Line, indexes: Sequence[int], xaxis: XAxis, *, colour: str) -> theme.Json:
    """Draw the values, with a gap where other lines were measured and this line was not."""
    drawn = xaxis.with_gaps(line, indexes)
    points = [point for _, _, point in drawn]
    ratios = [None if point is None else round(point.ratio, 5) for point in points]
    more: theme.Json = {}
    if _has_whiskers(line):
        intervals = [None if point is None else (point.low, point.high) for point in points]
        more["error_y"] = traces.make_whiskers(ratios, intervals, colour, thickness=1)
    return traces.make_points(
        [x for x, _, _ in drawn],
        ratios,
        mode="lines+markers",
        name=line.name,
        connectgaps=False,
        line={**traces.make_pen(colour, 1.5), "shape": "linear" if xaxis.releases else "hv"},
        marker={"color": colour, "size": 6},
        text=["" if point is None else f"{point.version}, {_describe_point(line, point)}" for point in points],
        customdata=_list_links(line, [index for _, index, _ in drawn]),
        hover="%{fullData.name}<br>%{text}",
        **more,
    )


def _list_links(line: Line, indexes: Sequence[int | None]) -> list[str]:
    """List the address of each of these points: its alert, else its run; empty for a gap and for neither."""
    runs = {index: f"/runs/{point.run}/" for index, point in enumerate(line.points) if point.run}
    pages = {**runs, **{mark.index: f"/alerts/{mark.alert}/" for mark in line.marks}}
    return ["" if index is None else pages.get(index, "") for index in indexes]


def _describe_point(line: Line, point: Point) -> str:
    if point.round == 0:
        return "the pinned release itself"
    return line.describe(point) if point.low is None else f"{line.describe(point)} ({line.interval(point)})"


def _draw_shifts(line: Line, xaxis: XAxis, *, colour: str) -> theme.Json:
    return _draw_marks(
        line,
        [shift.index for shift in line.shifts],
        xaxis,
        marker={"color": colour, "size": 14, "symbol": "diamond-open", "line": {"width": 2}},
        text=[describe_shift(line, shift) for shift in line.shifts],
        hover="level shift of %{fullData.name}<br>%{text}",
    )


def _draw_alerts(line: Line, xaxis: XAxis) -> theme.Json:
    return _draw_marks(
        line,
        [mark.index for mark in line.marks],
        xaxis,
        mode="markers+text",
        text=[f"alert {mark.alert}" for mark in line.marks],
        textfont={"size": 11, "color": theme.INK},
        cliponaxis=False,
        marker={"color": theme.verdict_colour("slower"), "size": 12, "symbol": "triangle-up"},
        customdata=[f"/alerts/{mark.alert}/" for mark in line.marks],
        hover="%{text} of %{fullData.name}, a click opens it",
    )


def _draw_marks(
    line: Line, indexes: Sequence[int], xaxis: XAxis, *, hover: str, mode: str = "markers", **more: object
) -> theme.Json:
    points = [line.points[index] for index in indexes]
    return traces.make_points(
        [xaxis.x(point) for point in points],
        [round(point.ratio, 5) for point in points],
        mode=mode,
        showlegend=False,
        name=line.name,
        hover=hover,
        **{"customdata": _list_links(line, indexes), **more},
    )
