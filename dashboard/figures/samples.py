"""A cell's launches: a point for each, in time order, with their interval and groups; and how a process settles, its
timings one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from dashboard.figures import colours, theme
from dashboard.figures.figure import Figure, empty_figure, rounded_entry, thin_places
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table, counted, written
from farm.rules.presenting.times import BY_CLOCK, Times
from farm.rules.wording import numbers, titles

NAME = "samples"
# beyond this a percentage says less than the ends
WIDE = 0.5


@dataclass(frozen=True)
class Groups:
    """Launches split at the widest gap between neighbours, for a cell that was found bimodal."""

    edge: float
    low: float
    high: float


def split_launches(samples: Sequence[float]) -> Groups | None:
    """The two groups of launches: split where neighbours lie furthest apart, by ratio. None for fewer than four."""
    ordered = sorted(samples)
    if len(ordered) < 4:
        return None
    gaps = [(after / before, place) for place, (before, after) in enumerate(pairwise(ordered))]
    _, place = max(gaps)
    return Groups(
        edge=(ordered[place] + ordered[place + 1]) / 2,
        low=median(ordered[: place + 1]),
        high=median(ordered[place + 1 :]),
    )


def draw_samples(cell: Cell, times: Times = BY_CLOCK) -> Figure:
    """One point a launch, of the time that is told; the band is the 95 % interval of their median."""
    title, told = times.title([cell]), times.with_compared_time(cell)
    # groups were found by the clock
    groups, cell = split_launches(cell.samples_ms) if cell.is_bimodal and told is cell else None, told
    table = _table(cell.samples_ms, groups, title)
    if not cell.samples_ms:
        return empty_figure(NAME, "No launch has been timed yet.", table)
    levels = [groups.low, groups.high] if groups is not None else []
    end, beyond = theme.cut(cell.samples_ms)
    reached = [ms for ms in theme.ends([cell.p50_ci_ms], cell.p50_ms, *levels, *cell.samples_ms) if ms <= end]
    count = len(cell.samples_ms)
    shapes = [theme.band("y", *cell.p50_ci_ms, percent=10)] if cell.p50_ci_ms is not None else []
    shapes += [theme.rule("y", cell.p50_ms, colour=theme.INK)] if cell.p50_ms is not None else []
    places = {"range": [0.5, count + 0.5], "tickvals": [*range(1, count + 1, max(1, count // 12))]}
    return Figure(
        name=NAME,
        title=write_finding(cell, groups),
        summary=(
            f"{numbers.counted(len(cell.samples_ms), 'process launch', 'process launches')} from "
            f"{numbers.milliseconds(min(cell.samples_ms))} to {numbers.milliseconds(max(cell.samples_ms))} ms. "
            "The table below has every launch."
        ),
        data=[
            theme.points(
                range(1, count + 1),
                cell.samples_ms,
                name=titles.runtime(cell.runtime),
                marker={"color": colours.runtime_colour(cell.runtime), "size": 9},
                hover="launch %{x}: %{y:.5~g} ms",
            )
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis("process launch, in time order", zeroline=False, **places),
            yaxis=theme.axis(f"{title} of the launch, ms", zeroline=False, **theme.linear(reached, from_zero=False)),
            shapes=[*shapes, *(theme.rule("y", level, dash="dot") for level in levels)],
            annotations=[_note(level) for level in levels],
            # the names of groups stand beside the launches, not over them
            margin={"l": 8, "r": 16 if groups is None else 72, "t": 8, "b": 8},
        ),
        table=table,
        note=("Line: the median of all launches. Band: its 95 % interval." if cell.p50_ci_ms is not None else "")
        + beyond,
    )


def write_finding(cell: Cell, groups: Groups | None) -> str:
    """How the launches lie: in two groups, or how closely together."""
    if groups is not None:
        return (
            f"Launches fall into two groups: {numbers.milliseconds(groups.low)} and "
            f"{numbers.milliseconds(groups.high)} ms ({numbers.change(groups.high / groups.low)})"
        )
    if len(cell.samples_ms) == 1:
        return "One launch: no spread is known"
    low, high = min(cell.samples_ms), max(cell.samples_ms)
    spread = high / low - 1
    if spread > WIDE:
        ends = f"{numbers.milliseconds(low)} to {numbers.milliseconds(high)} ms"
        return f"{len(cell.samples_ms)} launches spread from {ends}"
    return f"{len(cell.samples_ms)} launches within {numbers.share(spread)} of each other"


def _note(level: float) -> theme.Json:
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


def _table(values: Sequence[float], groups: Groups | None, title: str) -> Table:
    def group_of(value: float) -> str:
        return "one group" if groups is None else "upper" if value > groups.edge else "lower"

    columns: tuple[Column[tuple[int, float]], ...] = (
        Number("Launch", lambda launch: counted(launch[0])),
        Number(f"{title}, ms", lambda launch: written(launch[1])),
        Column("Group", lambda launch: Entry(group_of(launch[1]))),
    )
    return Table.of(NAME, "The median of each process launch", columns, list(enumerate(values, start=1)))


WARM_UP = "warm-up"
WARM_UP_COLUMNS: tuple[Column[tuple[int, Sequence[float]]], ...] = (
    Number("Launch", lambda launch: Entry(str(launch[0] + 1), launch[0])),
    Number("timings", lambda launch: rounded_entry(len(launch[1]))),
    Number("first tenth, ms", lambda launch: written(_ends(launch[1])[0], numbers.milliseconds)),
    Number("last half, ms", lambda launch: written(_ends(launch[1])[1], numbers.milliseconds)),
    Number(
        "begins", lambda launch: written(_beginning(launch[1]), numbers.change), "the first tenth against the last half"
    ),
    Number("slowest, ms", lambda launch: written(max(launch[1]), numbers.milliseconds)),
)
# points of all launches together: some 100 kB of JSON
MAX_POINTS = 4000
MAX_LAUNCHES = 16
# windows of a launch agree within this much (docs/samples.md)
STEADY = 0.05
MIN_TIMINGS = 10

Launches = Sequence[tuple[int, Sequence[float]]]


def draw_warm_up(cell: Cell, launches: Launches) -> Figure:
    """Draw a thin line for each launch: the last in the runtime's colour, earlier ones in grey. Long launches are
    thinned, but keep their lowest and highest timings."""
    known = [(number, values) for number, values in launches if len(values) >= MIN_TIMINGS]
    table = Table.of(WARM_UP, "How each launch begins", WARM_UP_COLUMNS, known)
    if not known:
        return empty_figure(WARM_UP, f"No launch has the {MIN_TIMINGS} timings that show how it settles.", table)
    shown = known[-MAX_LAUNCHES:]
    each = MAX_POINTS // len(shown)
    end, beyond = theme.cut([ms for _, values in shown for ms in values])
    return Figure(
        name=WARM_UP,
        title=_settling(known),
        summary=(
            f"Every timing of {numbers.counted(len(shown), 'process launch', 'process launches')} in the order in "
            "which they were taken, after the warm-up that is not counted. The table below says how each begins."
        ),
        data=[
            _line(cell, number, values, most=each, is_last=place == len(shown))
            for place, (number, values) in enumerate(shown, start=1)
        ],
        layout=theme.layout(
            height=260,
            xaxis=theme.axis(
                "inference of the launch", zeroline=False, **theme.linear([len(values) for _, values in shown])
            ),
            yaxis=theme.axis("ms by the clock", **theme.linear([end])),
        ),
        table=table,
        note=f"In colour: the last launch. Grey: those before it.{beyond}",
    )


def _settling(launches: Launches) -> str:
    """Whether launches begin slower than they end."""
    ratio = median(_beginning(values) for _, values in launches)
    if abs(ratio - 1) <= STEADY:
        return "Settled: launches begin as fast as they end"
    word = "slower" if ratio > 1 else "faster"
    return f"The first tenth of a launch is {numbers.share(abs(ratio - 1))} {word} than its last half"


def _beginning(values: Sequence[float]) -> float:
    first, last = _ends(values)
    return first / last


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return median(values[: max(1, len(values) // 10)]), median(values[len(values) // 2 :])


def _line(cell: Cell, number: int, values: Sequence[float], *, most: int, is_last: bool) -> theme.Json:
    places = thin_places(values, most=max(4, most))
    colour = colours.runtime_colour(cell.runtime) if is_last else theme.OTHER
    return theme.points(
        [place + 1 for place in places],
        [float(f"{values[place]:.4g}") for place in places],
        mode="lines",
        name=f"launch {number + 1}",
        line=theme.pen(colour, 1),
        opacity=1.0 if is_last else 0.45,
        hover=f"launch {number + 1}, inference %{{x}}: %{{y:.4~g}} ms",
    )
