"""How a process settles: the timings of each launch, one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.figures import colours, scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure, rounded_entry, thin_places
from farm.contract.document_cells import Cell
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_number
from farm.rules.wording import numbers

NAME = "warm-up"
# points of all launches together: some 100 kB of JSON
MAX_POINTS = 4000
MAX_LAUNCHES = 16
# windows of a launch agree within this much (docs/samples.md)
STEADY = 0.05
MIN_TIMINGS = 10


@dataclass(frozen=True)
class Launch:
    """A process and the times of its inferences, in their order. `number`: from 0."""

    number: int
    times_ms: Sequence[float]

    @property
    def name(self) -> str:
        return f"launch {self.number + 1}"

    @property
    def first_tenth_ms(self) -> float:
        return median(self.times_ms[: max(1, len(self.times_ms) // 10)])

    @property
    def last_half_ms(self) -> float:
        return median(self.times_ms[len(self.times_ms) // 2 :])

    @property
    def change(self) -> float:
        """Return the median of the first tenth against that of the last half, as a ratio; above 1 the launch began
        slower."""
        return self.first_tenth_ms / self.last_half_ms


COLUMNS: tuple[Column[Launch], ...] = (
    Number("Launch", lambda launch: Entry(str(launch.number + 1), launch.number)),
    Number("timings", lambda launch: rounded_entry(len(launch.times_ms))),
    Number("first tenth, ms", lambda launch: as_number(launch.first_tenth_ms, numbers.milliseconds)),
    Number("last half, ms", lambda launch: as_number(launch.last_half_ms, numbers.milliseconds)),
    Number("begins", lambda launch: as_number(launch.change, numbers.change), "the first tenth against the last half"),
    Number("slowest, ms", lambda launch: as_number(max(launch.times_ms), numbers.milliseconds)),
)


def draw_warm_up(cell: Cell, timings: Sequence[tuple[int, Sequence[float]]]) -> Figure:
    """Draw a thin line for each of the last MAX_LAUNCHES launches: the last in the runtime's colour, earlier ones in
    grey. Launches of fewer than MIN_TIMINGS timings are left out; long ones are thinned, but keep their lowest and
    highest times. `timings`: each launch's number, from 0, and its times in ms."""
    launches = [Launch(number, times) for number, times in timings if len(times) >= MIN_TIMINGS]
    table = Table.of(NAME, "How each launch begins", COLUMNS, launches)
    if not launches:
        return empty_figure(NAME, f"No launch has the {MIN_TIMINGS} timings that show how it settles.", table)
    drawn = launches[-MAX_LAUNCHES:]
    lengths = [len(launch.times_ms) for launch in drawn]
    end, beyond = scales.find_axis_end([ms for launch in drawn for ms in launch.times_ms])
    return Figure(
        name=NAME,
        title=_write_finding(launches),
        summary=(
            f"Every timing of {numbers.counted(len(drawn), 'process launch', 'process launches')} in the order in "
            "which they were taken, after the warm-up that is not counted. The table below says how each begins."
        ),
        data=[
            _draw_line(cell, launch, max_points=MAX_POINTS // len(drawn), is_last=launch is drawn[-1])
            for launch in drawn
        ],
        layout=theme.make_layout(
            height=260,
            xaxis=theme.make_axis("inference of the launch", zeroline=False, **scales.make_linear(lengths)),
            yaxis=theme.make_axis("ms by the clock", **scales.make_linear([end])),
        ),
        table=table,
        note=f"In colour: the last launch. Grey: those before it.{beyond}",
    )


def _write_finding(launches: Sequence[Launch]) -> str:
    ratio = median(launch.change for launch in launches)
    if abs(ratio - 1) <= STEADY:
        return "Settled: launches begin as fast as they end"
    word = "slower" if ratio > 1 else "faster"
    return f"The first tenth of a launch is {numbers.share(abs(ratio - 1))} {word} than its last half"


def _draw_line(cell: Cell, launch: Launch, *, max_points: int, is_last: bool) -> theme.Json:
    places = thin_places(launch.times_ms, most=max_points)
    colour = colours.runtime_colour(cell.runtime) if is_last else theme.OTHER
    return traces.make_points(
        [place + 1 for place in places],
        [float(f"{launch.times_ms[place]:.4g}") for place in places],
        mode="lines",
        name=launch.name,
        line=traces.make_pen(colour, 1),
        opacity=1.0 if is_last else 0.45,
        hover=f"{launch.name}, inference %{{x}}: %{{y:.4~g}} ms",
    )
