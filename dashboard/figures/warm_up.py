"""How a process settles: its timings one after another, from the first that counts to the last."""

from collections.abc import Sequence
from statistics import median

from dashboard.figures import colours, theme
from dashboard.figures.excerpts import thinned
from dashboard.figures.figure import Figure, nothing, rounded
from dashboard.figures.theme import Json
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table, written
from farm.rules.wording import numbers

NAME = "warm-up"
COLUMNS: tuple[Column[tuple[int, Sequence[float]]], ...] = (
    Number("Launch", lambda launch: Entry(str(launch[0] + 1), launch[0])),
    Number("timings", lambda launch: rounded(len(launch[1]))),
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


def warm_up(cell: Cell, launches: Launches) -> Figure:
    """A thin line for each launch; the last is drawn in ink. Every lowest and highest timing is among the points."""
    known = [(number, values) for number, values in launches if len(values) >= MIN_TIMINGS]
    table = Table.of(NAME, "How each launch begins", COLUMNS, known)
    if not known:
        return nothing(NAME, f"No launch has {MIN_TIMINGS} timings, too few to show how it settles.", table)
    shown = known[-MAX_LAUNCHES:]
    each = MAX_POINTS // len(shown)
    return Figure(
        name=NAME,
        title=finding(known),
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
            yaxis=theme.axis("ms", **theme.linear([max(values) for _, values in shown])),
        ),
        table=table,
        note="In colour: the last launch. Grey: those before it.",
    )


def finding(launches: Launches) -> str:
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


def _line(cell: Cell, number: int, values: Sequence[float], *, most: int, is_last: bool) -> Json:
    places = thinned(values, most=max(4, most))
    colour = colours.runtime(cell.runtime) if is_last else theme.OTHER
    return theme.points(
        [place + 1 for place in places],
        [float(f"{values[place]:.4g}") for place in places],
        mode="lines",
        name=f"launch {number + 1}",
        line=theme.pen(colour, 1),
        opacity=1.0 if is_last else 0.45,
        hover=f"launch {number + 1}, inference %{{x}}: %{{y:.4~g}} ms",
    )
