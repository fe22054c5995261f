"""The chart of a cell's launches: a point for each in time order, with their median, its interval, and their groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from dashboard.figures import scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count, as_number
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.wording import numbers, titles

NAME = "samples"
# a relative spread above this is written as its two ends and not as a percentage
WIDE = 0.5


@dataclass(frozen=True)
class Groups:
    """The two groups of a bimodal cell's launches, in ms. `edge`: the time between them; `low` and `high`: the median
    of each."""

    edge: float
    low: float
    high: float


def split_launches(samples_ms: Sequence[float]) -> Groups:
    """Sort the launches and split them in two groups at the largest ratio between neighbours. The caller decides
    whether the cell is bimodal, which needs several launches."""
    ordered = sorted(samples_ms)
    gaps = [after / before for before, after in pairwise(ordered)]
    split = gaps.index(max(gaps)) + 1
    lower, upper = ordered[:split], ordered[split:]
    return Groups(edge=(lower[-1] + upper[0]) / 2, low=median(lower), high=median(upper))


def draw_samples(cell: Cell, times: Times = BY_CLOCK) -> Figure:
    """Draw a point for each launch and a band for the 95 % interval of their median. Without a launch the chart is
    empty and says so. Launches far above the others may be beyond the axis; the note says how many. `times`: decides
    between processor time and the clock."""
    title, timed = times.title([cell]), times.with_compared_time(cell)
    # whether a cell is bimodal was decided by the clock, so processor times are not split
    groups = split_launches(cell.samples_ms) if cell.is_bimodal and timed is cell else None
    samples_ms, interval = timed.samples_ms, timed.p50_ci_ms
    table = _make_table(samples_ms, groups, title)
    if not samples_ms:
        return empty_figure(NAME, "No launch has been timed yet.", table)
    levels = [groups.low, groups.high] if groups is not None else []
    end, beyond = scales.find_axis_end(samples_ms)
    reached = [ms for ms in scales.list_reached([interval], timed.p50_ms, *levels, *samples_ms) if ms <= end]
    count = len(samples_ms)
    shapes = [traces.make_band("y", *interval, percent=10)] if interval is not None else []
    shapes += [traces.make_rule("y", timed.p50_ms, colour=theme.INK)] if timed.p50_ms is not None else []
    places = {"range": [0.5, count + 0.5], "tickvals": [*range(1, count + 1, max(1, count // 12))]}
    return Figure(
        name=NAME,
        title=write_finding(samples_ms, groups),
        summary=(
            f"{numbers.counted(count, 'process launch', 'process launches')} from "
            f"{numbers.milliseconds(min(samples_ms))} to {numbers.milliseconds(max(samples_ms))} ms. "
            "The table below has every launch."
        ),
        data=[
            traces.make_points(
                range(1, count + 1),
                samples_ms,
                name=titles.runtime(cell.runtime),
                marker={"color": theme.ACCENT, "size": 9},
                hover="launch %{x}: %{y:.5~g} ms",
            )
        ],
        layout=theme.make_layout(
            height=260,
            xaxis=theme.make_axis("process launch, in time order", zeroline=False, **places),
            yaxis=theme.make_axis(
                f"{title} of the launch, ms", zeroline=False, **scales.make_linear(reached, from_zero=False)
            ),
            shapes=[*shapes, *(traces.make_rule("y", level, dash="dot") for level in levels)],
            annotations=[_label_group(level) for level in levels],
            # leave room on the right for the labels of groups, so that they do not cover launches
            margin={"l": 8, "r": 16 if groups is None else 72, "t": 8, "b": 8},
        ),
        table=table,
        note=f"{'Line: the median of all launches. Band: its 95 % interval.' if interval is not None else ''}{beyond}",
    )


def write_finding(samples_ms: Sequence[float], groups: Groups | None) -> str:
    """Say that the launches fall into two groups, or how far they spread. There must be a launch."""
    if groups is not None:
        return (
            f"Launches fall into two groups: {numbers.milliseconds(groups.low)} and "
            f"{numbers.milliseconds(groups.high)} ms ({numbers.change(groups.high / groups.low)})"
        )
    if len(samples_ms) == 1:
        return "One launch: no spread is known"
    low, high = min(samples_ms), max(samples_ms)
    if high / low - 1 > WIDE:
        ends = f"{numbers.milliseconds(low)} to {numbers.milliseconds(high)} ms"
        return f"{len(samples_ms)} launches spread from {ends}"
    return f"{len(samples_ms)} launches within {numbers.share(high / low - 1)} of each other"


def _label_group(level: float) -> theme.Json:
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "y": level,
        "yanchor": "middle",
        "showarrow": False,
        "text": f"{numbers.milliseconds(level)} ms",
        "font": {"size": 11, "color": theme.SOFT},
    }


def _make_table(samples_ms: Sequence[float], groups: Groups | None, title: str) -> Table:
    def name_group(ms: float) -> str:
        return "one group" if groups is None else "upper" if ms > groups.edge else "lower"

    columns: tuple[Column[int], ...] = (
        Number("Launch", lambda place: as_count(place + 1)),
        Number(f"{title}, ms", lambda place: as_number(samples_ms[place])),
        Column("Group", lambda place: Entry(name_group(samples_ms[place]))),
    )
    return Table.of(NAME, "The median of each process launch", columns, range(len(samples_ms)))
