"""What a metric is: name, unit, what is better, how one figure comes from launches, and who judges it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from farm.contract.document_cells import Cell, Figure
from farm.contract.reports import CheckReport, Sample

# how far a figure may be off: by interleaved rounds in pairs, by the spread of its launches, or nobody says
Noise = Literal["rounds", "launches", "unknown"]
# how a figure is written: a time with the digits of its interval, three digits, bytes in MiB, a whole number, yes or no
Reading = Literal["latency", "plain", "memory", "count", "yes"]
Summary = Callable[[Sequence[float]], float]
# what a verdict says of more of a metric, and of less
Words = tuple[Literal["slower", "bigger", "higher"], Literal["faster", "smaller", "lower"]]
TIME: Words = ("slower", "faster")
SIZE: Words = ("bigger", "smaller")
RATE: Words = ("higher", "lower")


@dataclass(frozen=True, slots=True)
class Judging:
    """How comparisons judge a metric of which every launch says a figure.

    `by`: pairs of launches by round, as their ratio or as their difference in the metric's own unit; their ratio and
    the fastest launches, of what is short and happens once; or a repeat, of what comes out alike at every launch.
    `margin`: what is of no consequence, as a fraction, where it is more than the block's own; of differences and
    repeats in the metric's own unit, where `is_share` as a fraction too. `kinds`: the scenarios whose launches say it,
    where others say something else by that name. `is_told`: in the run's sentence. `alerts_as`: the kind of change by
    which a watch alerts when it is worse, by `min_alert` in its own unit at least.
    """

    words: Words
    by: Literal["ratio", "fastest", "difference", "repeat"] = "ratio"
    margin: float = 0.0
    is_share: bool = False
    kinds: tuple[str, ...] = ()
    is_told: bool = False
    alerts_as: str = ""
    min_alert: float = 0.0


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `name` is its key in samples, documents and CSV; `title` heads it on pages, which show one without it elsewhere.
    `summary` makes the cell's figure of one figure a launch; without it the figure comes once, from the check pass or
    from all timings together. `samples_as` and `interval_as` are where the document keeps the launches and the interval
    of a metric that is a field of it. `is_judged`: verdicts are about it. `from_timings`: how many timings it takes.
    `absent`: why a cell of one thread on the CPU has none, where that is worth a row of its page. `judging`: how two
    arms are compared in it. `phase`: the part of a launch whose wall-clock time it is, where launches say no more.
    `processor`: by what name launches say the processor time of the same, among their metrics. `worked_out`: from other
    figures of the cell, where nothing says it. `launch_title`: what that of launches is called, which verdicts compare,
    where the cell's own figure is of the check pass.
    """

    name: str
    title: str = ""
    unit: str = ""
    better: Literal["less", "more", ""] = ""
    summary: Summary | None = None
    noise: Noise = "unknown"
    reads: Reading = "plain"
    note: str = ""
    samples_as: str = ""
    interval_as: str = ""
    is_judged: bool = False
    from_timings: int = 0
    absent: str = ""
    judging: Judging | None = None
    phase: str = ""
    processor: str = ""
    worked_out: Callable[[Cell], float | None] | None = None
    launch_title: str = ""

    @property
    def is_carried(self) -> bool:
        """Whether documents hold it under `metrics` alone, because the schema has no field of its own for it."""
        return self.name not in Cell.model_fields

    def figure_in(self, told: Sample | CheckReport) -> float | None:
        """What a launch or the check pass said of it."""
        own = type(told).model_fields
        value = getattr(told, self.name) if self.name in own else told.metrics.get(self.name)
        if value is None and isinstance(told, Sample):
            value = told.phases_ms.get(self.phase)
        return None if value is None else float(value)

    def processor_of(self, told: Sample) -> float | None:
        """The processor time of what it is the wall-clock time of, where the launch says it."""
        return told.phases_ms.get(f"{self.phase}_cpu") if self.phase else told.metrics.get(self.processor)

    def value(self, cell: Cell) -> float | bool | None:
        """What a document's cell says of it, as it stands there."""
        if self.is_carried:
            if (told := cell.find_metric(self.name)) is not None:
                return told.value
            return None if self.worked_out is None else self.worked_out(cell)
        value: float | bool | None = getattr(cell, self.name)
        return value

    def interval_of(self, cell: Cell) -> tuple[float, float] | None:
        if self.interval_as:
            found: tuple[float, float] | None = getattr(cell, self.interval_as)
            return found
        told = cell.find_metric(self.name)
        return None if told is None or told.ci_low is None or told.ci_high is None else (told.ci_low, told.ci_high)

    def cell_fields(self, figure: Figure) -> dict[str, object]:
        """The figure under the document's own keys; of a metric that has no field there, nothing."""
        if self.is_carried:
            return {}
        interval = None if figure.low is None or figure.high is None else (figure.low, figure.high)
        places = {self.name: figure.value, self.samples_as: figure.samples, self.interval_as: interval}
        return {name: value for name, value in places.items() if name}
