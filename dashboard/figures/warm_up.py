"""The chart of how processes settle: the timings of each launch in their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.figures import scales, theme, traces
from dashboard.figures.figure import Figure, empty_figure, rounded_entry, thin_places
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_number
from farm.rules.wording import numbers

NAME = "warm-up"
# at most so many points of all launches together, which are some 100 kB of JSON
MAX_POINTS = 4000
MAX_LAUNCHES = 16
# a relative change within this counts as settled (docs/samples.md)
STEADY = 0.05
MIN_TIMINGS = 10


@dataclass(frozen=True)
class Launch:
    """A process launch with the times of its inferences, in order. `number`: counts from 0, in `name` from 1;
    `first_tenth_ms`, `last_half_ms`: the medians of the first tenth and of the last half."""

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
        """Return the median of the first tenth / that of the last half; above 1 where the launch began slower."""
        return self.first_tenth_ms / self.last_half_ms


COLUMNS: tuple[Column[Launch], ...] = (
    Number("Launch", lambda launch: Entry(str(launch.number + 1), launch.number)),
    Number("timings", lambda launch: rounded_entry(len(launch.times_ms))),
    Number("first tenth, ms", lambda launch: as_number(launch.first_tenth_ms, numbers.milliseconds)),
    Number("last half, ms", lambda launch: as_number(launch.last_half_ms, numbers.milliseconds)),
    Number("begins", lambda launch: as_number(launch.change, numbers.change), "the first tenth against the last half"),
    Number("slowest, ms", lambda launch: as_number(max(launch.times_ms), numbers.milliseconds)),
)


def draw_warm_up(timings: Sequence[tuple[int, Sequence[float]]]) -> Figure:
    """Draw a thin line for each of the last MAX_LAUNCHES launches, the last one in the accent colour and the others
    in grey. Launches with fewer than MIN_TIMINGS timings are left out; without any other the chart is empty and says
    so. Long lines are thinned, but keep their lowest and highest times. `timings`: the number of each launch, from 0,
    with its times in ms."""
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
        data=[_draw_line(launch, max_points=MAX_POINTS // len(drawn), is_last=launch is drawn[-1]) for launch in drawn],
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


def _draw_line(launch: Launch, *, max_points: int, is_last: bool) -> theme.Json:
    places = thin_places(launch.times_ms, most=max_points)
    colour = theme.ACCENT if is_last else theme.OTHER
    return traces.make_points(
        [place + 1 for place in places],
        [float(f"{launch.times_ms[place]:.4g}") for place in places],
        mode="lines",
        name=launch.name,
        line=traces.make_pen(colour, 1),
        opacity=1.0 if is_last else 0.45,
        hover=f"{launch.name}, inference %{{x}}: %{{y:.4~g}} ms",
    )
