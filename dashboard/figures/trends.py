"""Long series on one chart: ratios to the pinned release over time or over releases, with level shifts and alerts."""

from collections.abc import Sequence
from datetime import UTC
from math import log10

from dashboard import numbers
from dashboard.figures import theme
from dashboard.figures.excerpts import kept
from dashboard.figures.figure import Figure, nothing
from dashboard.figures.lines import Line, Spot, shift_words
from dashboard.figures.ratios import ticks
from dashboard.figures.theme import Json
from dashboard.tables import Table

NAME = "trend"
# lines with a colour of their own, and further ones in grey
COLOURED, DRAWN = 7, 30
MOST_SPOTS, MOST_GREY_SPOTS = 300, 80
# with more, whiskers hide the line
WHISKERS = 60


def trend(lines: Sequence[Line], *, reference: str, table: Table, by: str = "time", chosen: str = "") -> Figure:
    """The lines of a watch. `chosen`: the key of one that stands out, the others are grey then."""
    if not lines:
        return nothing(NAME, "No data yet: the first round of this watch adds the first point of each series.", table)
    ordered = sorted(lines, key=lambda line: line.key != chosen)[:DRAWN]
    coloured = 1 if chosen and ordered[0].key == chosen else COLOURED
    data: list[Json] = []
    for place, line in reversed(list(enumerate(ordered))):
        data += _drawn(line, colour=_colour(place, coloured), by=by)
    low, high = _range(ordered)
    return Figure(
        name=NAME,
        title=finding(ordered, reference=reference),
        summary=_summary(lines, ordered, reference),
        data=data,
        layout=theme.layout(
            height=360,
            margin={"l": 8, "r": 24, "t": 8, "b": 8},
            xaxis=_axis(ordered, by),
            yaxis=theme.axis(
                f"p50 against {reference}, logarithmic", type="log", range=[low, high], **ticks(low, high)
            ),
            shapes=[_level()],
            showlegend=len(ordered) > 1,
        ),
        table=table,
    )


def finding(lines: Sequence[Line], *, reference: str) -> str:
    """Where the last values stand, and how often a level shifted."""
    shifts = sum(len(line.shifts) for line in lines)
    told = f"; {numbers.count(shifts, 'level shift')}" if shifts else ""
    if len(lines) == 1:
        last = lines[0].spots[-1]
        return f"{last.version} stands at {numbers.change(last.ratio, last.low, last.high)} against {reference}{told}"
    lasts = sorted((line.spots[-1] for line in lines), key=lambda spot: spot.ratio)
    ends = " to ".join(numbers.change(spot.ratio, spot.low, spot.high) for spot in (lasts[0], lasts[-1]))
    return f"{numbers.count(len(lines), 'series', 'series')} against {reference}, the last values from {ends}{told}"


def _summary(lines: Sequence[Line], drawn: Sequence[Line], reference: str) -> str:
    values = sum(len(line.spots) for line in lines)
    left = f" {len(lines) - len(drawn)} further series are in the table only." if len(lines) > len(drawn) else ""
    return (
        f"{numbers.count(values, 'ratio')} of p50 latency to {reference}, each measured in one block with it. Long "
        f"lines are thinned, their extremes kept.{left} The table has the last value of every series."
    )


def _colour(place: int, coloured: int) -> str:
    return f"@series-{place + 1}" if place < coloured else theme.OTHER


def _axis(lines: Sequence[Line], by: str) -> Json:
    if by != "release":
        return theme.axis("measured, UTC", type="date")
    order = list(dict.fromkeys(spot.version for line in lines for spot in line.spots))
    return theme.axis("release", type="category", categoryorder="array", categoryarray=order)


def _level() -> Json:
    across = {"xref": "paper", "x0": 0, "x1": 1}
    return {"type": "line", **across, "y0": 1, "y1": 1, "line": {"width": 1, "color": theme.SOFT}}


def _range(lines: Sequence[Line]) -> tuple[float, float]:
    """The axis' ends as powers of ten: all values and 1, with a little room."""
    values = [spot.ratio for line in lines for spot in line.spots]
    low, high = log10(min(1.0, *values)), log10(max(1.0, *values))
    room = max(0.1 * (high - low), log10(1.03))
    return low - room, high + room


def _drawn(line: Line, *, colour: str, by: str) -> list[Json]:
    is_grey = colour == theme.OTHER
    marked = {shift.place for shift in line.shifts} | {mark.place for mark in line.marks}
    places = kept([spot.ratio for spot in line.spots], most=MOST_GREY_SPOTS if is_grey else MOST_SPOTS)
    shown = sorted({*places, *marked})
    drawn = [_line(line, shown, colour=colour, by=by)]
    if line.shifts:
        drawn.append(_shifts(line, colour=colour, by=by))
    if line.marks:
        drawn.append(_alerts(line, by=by))
    return drawn


def _x(spot: Spot, by: str) -> str:
    return str(spot.version) if by == "release" else f"{spot.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _line(line: Line, places: Sequence[int], *, colour: str, by: str) -> Json:
    spots = [line.spots[place] for place in places]
    drawn: Json = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": line.name,
        "x": [_x(spot, by) for spot in spots],
        "y": [round(spot.ratio, 5) for spot in spots],
        "line": {"color": colour, "width": 1.5, "shape": "hv" if by == "time" else "linear"},
        "marker": {"color": colour, "size": 6},
        "text": [f"{spot.version}, {_words(spot)}" for spot in spots],
        "customdata": _links(line, places),
        "hovertemplate": "%{fullData.name}<br>%{text}<extra></extra>",
    }
    if len(spots) <= WHISKERS:
        ends = [(spot.low or spot.ratio, spot.high or spot.ratio) for spot in spots]
        drawn["error_y"] = theme.whiskers([spot.ratio for spot in spots], ends, colour, thickness=1)
    return drawn


def _links(line: Line, places: Sequence[int]) -> list[str]:
    """Where a click leads: to the alert that a value raised, else to the run that measured it."""
    alerts = {mark.place: f"/alerts/{mark.alert}/" for mark in line.marks}
    return [alerts.get(place) or _run(line.spots[place].run) for place in places]


def _run(run_id: int | None) -> str:
    return f"/runs/{run_id}/" if run_id else ""


def _words(spot: Spot) -> str:
    if spot.round == 0:
        return "the pinned release itself"
    change = numbers.change(spot.ratio, spot.low, spot.high)
    if spot.low is None:
        return change
    return f"{change} ({numbers.change_interval(spot.low, spot.high, ratio=spot.ratio)})"


def _shifts(line: Line, *, colour: str, by: str) -> Json:
    return _marked(line, [shift.place for shift in line.shifts], by=by) | {
        "mode": "markers",
        "marker": {"color": colour, "size": 14, "symbol": "diamond-open", "line": {"width": 2}},
        "text": [shift_words(line, shift) for shift in line.shifts],
        "hovertemplate": "level shift of %{fullData.name}<br>%{text}<extra></extra>",
    }


def _alerts(line: Line, *, by: str) -> Json:
    return _marked(line, [mark.place for mark in line.marks], by=by) | {
        "mode": "markers+text",
        "text": [f"alert {mark.alert}" for mark in line.marks],
        "textposition": "top center",
        "textfont": {"size": 11, "color": theme.INK},
        "cliponaxis": False,
        "marker": {"color": theme.VERDICT_COLOURS["slower"], "size": 12, "symbol": "triangle-up"},
        "customdata": [f"/alerts/{mark.alert}/" for mark in line.marks],
        "hovertemplate": "%{text} of %{fullData.name}, a click opens it<extra></extra>",
    }


def _marked(line: Line, places: Sequence[int], *, by: str) -> Json:
    spots = [line.spots[place] for place in places]
    return {
        "type": "scatter",
        "showlegend": False,
        "name": line.name,
        "x": [_x(spot, by) for spot in spots],
        "y": [round(spot.ratio, 5) for spot in spots],
        "customdata": _links(line, places),
    }
