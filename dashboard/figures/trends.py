"""Long series on one chart: ratios to the pinned release over time or over releases, with level shifts and alerts."""

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
class Spot:
    """One value of a line. `low`, `high`: its interval; None where it has none. `round` is 0 for the pinned release."""

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
    """A level shift: the place of the new level's first value, and new / old."""

    place: int
    ratio: float


@dataclass(frozen=True)
class Mark:
    """An alert on a line: the place of the value that raised it."""

    place: int
    alert: int
    state: str


@dataclass(frozen=True)
class Line:
    """One series on one node. `name` tells it apart from the others of its watch; `words`: what more and less are
    called."""

    series: str
    node: str
    label: str
    name: str
    spots: Sequence[Spot]
    shifts: Sequence[Shift] = field(default_factory=tuple)
    marks: Sequence[Mark] = field(default_factory=tuple)
    words: numbers.Words = numbers.TIMES

    @property
    def last(self) -> Spot:
        return self.spots[-1]

    def change(self, spot: Spot) -> str:
        """Write how far a value is from the pinned release: `19 % slower`."""
        return numbers.change(spot.ratio, spot.low, spot.high, words=self.words)

    def verdict(self, spot: Spot) -> str:
        is_open = spot.outcome == "undecided"
        return judge_series_value(spot.ratio, spot.low, spot.high, is_undecided=is_open, words=self.words)

    def describe(self, spot: Spot) -> str:
        """Write the change, and that it is undecided where its verdict is; of the pinned release itself the change
        alone."""
        return mark_undecided(self.change(spot), self.verdict(spot) if spot.round else "equal")

    def interval(self, spot: Spot) -> str:
        return numbers.change_interval(spot.low, spot.high, ratio=spot.ratio, words=self.words)

    @property
    def key(self) -> str:
        return series_key(self.series, self.node)


@dataclass(frozen=True)
class Across:
    """The axis of the lines: `releases` in their order or, without any, time. `rounds`: a spot of each round in which
    any line was measured."""

    releases: Sequence[str]
    rounds: Mapping[int, Spot]

    def x(self, spot: Spot) -> str:
        return str(spot.version) if self.releases else f"{spot.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

    def with_gaps(self, line: "Line", places: Sequence[int]) -> list[tuple[str, int | None, Spot | None]]:
        """List the values at these places of the line, each as its x, its place and its spot. Where other lines have
        a value and this one has none, one x without place and spot breaks the line."""
        known = [(self.x(line.spots[place]), place, line.spots[place]) for place in places]
        standing = set(self.releases) - {spot.version for spot in line.spots}
        if not self.releases:
            missing = [self.rounds[number] for number in self.rounds.keys() - {spot.round for spot in line.spots}]
            standing = {self.x(spot) for spot in missing if line.spots[0].at < spot.at < line.spots[-1].at}
        order = {version: number for number, version in enumerate(self.releases)}
        points = [*known, *((x, None, None) for x in standing)]
        points.sort(key=lambda point: (order.get(point[0], 0), point[0]))
        # one gap breaks a line, however long it is
        return [point for before, point in pairwise([("", 0, None), *points]) if (before[1], point[1]) != (None, None)]


def series_key(series: str, node: str) -> str:
    return f"{series[:12]}@{node}"


def mark_undecided(change: str, verdict: str) -> str:
    return f"{change}, undecided" if verdict == "undecided" else change


def describe_shift(line: Line, shift: Shift) -> str:
    return f"{numbers.change(shift.ratio, 0.98, 1.02, words=line.words)} with {line.spots[shift.place].version}"


NAME = "trend"
# by the clock or, where the machine was busy, as processor time: what the verdict of its round rests on
LATENCY = "latency"
# lines with a colour of their own, and further ones in grey
COLOURED, DRAWN = 7, 30
MAX_SPOTS, MAX_GREY_SPOTS = 300, 80
# with more, whiskers hide the line
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
    """Draw the lines of a watch over time or, with `releases`, over these, at most DRAWN of them; without lines the
    figure is empty and says so. `chosen`: the key of a line that stands out, with the others in grey. `what`: the
    metric."""
    if not lines:
        return empty_figure(
            NAME, "No data yet: the first round of this watch adds the first point of each series.", table
        )
    ordered = sorted(lines, key=lambda line: line.key != chosen)[:DRAWN]
    across = Across(releases, {spot.round: spot for line in ordered for spot in line.spots})
    colour_of = _choose_colours(lines, chosen)
    data = [part for line in ordered[::-1] for part in _draw_series(line, across, colour_of[line.series, line.node])]
    xaxis = theme.make_axis("release", **scales.make_categories(releases))
    if not releases:
        moments = [spot.at.astimezone(UTC) for line in ordered for spot in line.spots]
        xaxis = theme.make_axis("measured, UTC", **scales.make_time(moments))
    whiskers = [(spot.low, spot.high) for line in ordered if _has_whiskers(line) for spot in line.spots]
    reached = scales.list_reached(whiskers, *(spot.ratio for line in ordered for spot in line.spots))
    return Figure(
        name=NAME,
        title=write_finding([line for line in ordered if line.key == chosen] or ordered, reference=reference),
        summary=_write_summary(lines, ordered, reference, what),
        data=data,
        layout=theme.make_layout(
            height=360,
            margin={"l": 8, "r": 24, "t": 8, "b": 8},
            xaxis=xaxis,
            yaxis=theme.make_axis(f"{what} against {reference}, logarithmic", **scales.make_ratio(reached)),
            shapes=[traces.make_rule("y", 1)],
            showlegend=len(ordered) > 1,
            legend={"traceorder": "reversed"},
        ),
        table=table,
        note=_write_note(lines, releases),
    )


def write_finding(lines: Sequence[Line], *, reference: str) -> str:
    """Say where the last values stand, and how often a level shifted. Of one line it is the last value that is not
    of the reference itself; of several the smallest and the largest."""
    shifts = sum(len(line.shifts) for line in lines)
    shifted = f"; {numbers.counted(shifts, 'level shift')}" if shifts else ""
    if len(lines) == 1:
        measured = [spot for spot in lines[0].spots if spot.version != reference]
        last = (measured or lines[0].spots)[-1]
        return f"{last.version} against {reference}: {lines[0].describe(last)}{shifted}"
    lasts = sorted(lines, key=lambda line: line.last.ratio)
    undecided = sum(line.verdict(line.last) == "undecided" for line in lines)
    ends = " to ".join(line.change(line.last) for line in (lasts[0], lasts[-1]))
    series = numbers.counted(len(lines), "series", "series")
    open_ones = f"; {undecided} undecided" if undecided else ""
    return f"{series} against {reference}, the last values from {ends}{open_ones}{shifted}"


def _write_note(lines: Sequence[Line], releases: Sequence[str]) -> str:
    """Explain the signs that are in the drawing."""
    parts = [
        f"Whiskers: 95 % interval{'' if all(map(_has_whiskers, lines)) else f', of lines of up to {WHISKERS} values'}.",
        f"A break in a line: not measured {'on that release' if releases else 'in that round'}.",
        "◇ level shift." if any(line.shifts for line in lines) else "",
    ]
    return " ".join(filter(None, parts))


def _write_summary(lines: Sequence[Line], drawn: Sequence[Line], reference: str, what: str) -> str:
    values = sum(len(line.spots) for line in lines)
    left = f" {len(lines) - len(drawn)} further series are in the table only." if len(lines) > len(drawn) else ""
    return (
        f"{numbers.counted(values, 'ratio')} of {what} to {reference}, each measured in one block with it. Long "
        f"lines are thinned, their extremes kept.{left} The table has the last value of every series."
    )


def _choose_colours(lines: Sequence[Line], chosen: str) -> dict[tuple[str, str], str]:
    """Choose the colour of each series on a node, which it keeps when it is chosen."""
    own = dict(
        zip(
            [(line.series, line.node) for line in lines],
            colours.assign_name_colours([line.name for line in lines]),
            strict=True,
        )
    )
    wanted = [(line.series, line.node) for line in lines if line.key == chosen]
    if not wanted:
        return own
    shown = own[wanted[0]] if own[wanted[0]] != colours.GREY else theme.ACCENT
    return {**dict.fromkeys(own, colours.GREY), wanted[0]: shown}


def _has_whiskers(line: Line) -> bool:
    return len(line.spots) <= WHISKERS


def _draw_series(line: Line, across: Across, colour: str) -> list[theme.Json]:
    is_grey = colour == colours.GREY
    marked = {shift.place for shift in line.shifts} | {mark.place for mark in line.marks}
    places = thin_places([spot.ratio for spot in line.spots], most=MAX_GREY_SPOTS if is_grey else MAX_SPOTS)
    shown = sorted({*places, *marked})
    drawn = [_draw_line(line, shown, across, colour=colour)]
    if line.shifts:
        drawn.append(_draw_shifts(line, across, colour=colour))
    if line.marks:
        drawn.append(_draw_alerts(line, across))
    return drawn


def _draw_line(line: Line, places: Sequence[int], across: Across, *, colour: str) -> theme.Json:
    """Draw the values, with a gap wherever others were measured and this line was not."""
    points = across.with_gaps(line, places)
    spots = [spot for _, _, spot in points]
    more: theme.Json = {}
    if _has_whiskers(line):
        values = [1.0 if spot is None else spot.ratio for spot in spots]
        ends = [
            (value, value) if spot is None else (spot.low or value, spot.high or value)
            for value, spot in zip(values, spots, strict=True)
        ]
        more["error_y"] = traces.make_whiskers(values, ends, colour, thickness=1)
    return traces.make_points(
        [x for x, _, _ in points],
        [None if spot is None else round(spot.ratio, 5) for spot in spots],
        mode="lines+markers",
        name=line.name,
        connectgaps=False,
        line={**traces.make_pen(colour, 1.5), "shape": "linear" if across.releases else "hv"},
        marker={"color": colour, "size": 6},
        text=["" if spot is None else f"{spot.version}, {_describe_spot(line, spot)}" for spot in spots],
        customdata=_list_links(line, [place for _, place, _ in points]),
        hover="%{fullData.name}<br>%{text}",
        **more,
    )


def _list_links(line: Line, places: Sequence[int | None]) -> list[str]:
    """List where each of these places leads: to its alert, else to its run; empty for a gap."""
    runs = {place: f"/runs/{spot.run}/" for place, spot in enumerate(line.spots) if spot.run}
    pages = {**runs, **{mark.place: f"/alerts/{mark.alert}/" for mark in line.marks}}
    return ["" if place is None else pages.get(place, "") for place in places]


def _describe_spot(line: Line, spot: Spot) -> str:
    if spot.round == 0:
        return "the pinned release itself"
    return line.describe(spot) if spot.low is None else f"{line.describe(spot)} ({line.interval(spot)})"


def _draw_shifts(line: Line, across: Across, *, colour: str) -> theme.Json:
    return _draw_marks(
        line,
        [shift.place for shift in line.shifts],
        across,
        marker={"color": colour, "size": 14, "symbol": "diamond-open", "line": {"width": 2}},
        text=[describe_shift(line, shift) for shift in line.shifts],
        hover="level shift of %{fullData.name}<br>%{text}",
    )


def _draw_alerts(line: Line, across: Across) -> theme.Json:
    return _draw_marks(
        line,
        [mark.place for mark in line.marks],
        across,
        mode="markers+text",
        text=[f"alert {mark.alert}" for mark in line.marks],
        textposition="top center",
        textfont={"size": 11, "color": theme.INK},
        cliponaxis=False,
        marker={"color": theme.verdict_colour("slower"), "size": 12, "symbol": "triangle-up"},
        customdata=[f"/alerts/{mark.alert}/" for mark in line.marks],
        hover="%{text} of %{fullData.name}, a click opens it",
    )


def _draw_marks(
    line: Line, places: Sequence[int], across: Across, *, hover: str, mode: str = "markers", **more: object
) -> theme.Json:
    spots = [line.spots[place] for place in places]
    return traces.make_points(
        [across.x(spot) for spot in spots],
        [round(spot.ratio, 5) for spot in spots],
        mode=mode,
        showlegend=False,
        name=line.name,
        hover=hover,
        **{"customdata": _list_links(line, places), **more},
    )
