"""The type of a metric: its name, unit and direction, how launches report it, and how comparisons judge it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from farm.contract.document_cells import Cell, Figure
from farm.contract.reports import CheckReport, Sample

# what the interval of a figure rests on: pairs of interleaved rounds, the spread of its launches, or nothing known
Noise = Literal["rounds", "launches", "unknown"]
# how a figure is written: `latency` with the digits of its interval, `plain` with three digits, `memory` in MiB,
# `count` as a whole number, `yes` as yes or no
Reading = Literal["latency", "plain", "memory", "count", "yes"]
Summary = Callable[[Sequence[float]], float]
# a verdict's word for more of a metric, and for less
Words = tuple[Literal["slower", "bigger", "higher"], Literal["faster", "smaller", "lower"]]
TIME: Words = ("slower", "faster")
SIZE: Words = ("bigger", "smaller")
RATE: Words = ("higher", "lower")


@dataclass(frozen=True, slots=True)
class Judging:
    """How comparisons judge a metric that every launch reports."""

    # the verdict's words for more of it and for less
    words: Words
    # the method: `ratio` or `difference` of launches that are paired by round; `fastest`, the ratio together with the
    # fastest launches, for what is short and happens once in a launch; `repeat` for what is the same in every launch
    by: Literal["ratio", "fastest", "difference", "repeat"] = "ratio"
    # the largest change that does not matter: a fraction for ratios, where the block's own margin may be larger, and
    # otherwise an amount in the metric's unit
    margin: float = 0.0
    # whether the margin of a repeat is a fraction too
    is_share: bool = False
    # the scenarios whose launches are judged by it; empty: all
    kinds: tuple[str, ...] = ()
    # whether the run's sentence names it
    is_told: bool = False
    # the kind of change that a watch alerts on where the metric gets worse by at least `min_alert`, in its unit
    alerts_as: str = ""
    min_alert: float = 0.0


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: how it is named, written, read from reports and cells, and judged."""

    # its key in samples, documents and CSV
    name: str
    # its heading on pages, which leave out a metric without one
    title: str = ""
    unit: str = ""
    better: Literal["less", "more", ""] = ""
    # makes the cell's figure from those of its launches; None: the figure comes once, from the check pass or from all
    # timings together
    summary: Summary | None = None
    noise: Noise = "unknown"
    reads: Reading = "plain"
    note: str = ""
    # the fields of a document's cell for the launches' figures and the interval; empty where it has none
    samples_as: str = ""
    interval_as: str = ""
    # whether it is the metric that the verdict of a comparison is about; only one is
    is_judged: bool = False
    # how many timings it takes to publish it
    from_timings: int = 0
    # why a cell of one thread on the CPU lacks it, for its page; empty where the page does not say so
    absent: str = ""
    # how two arms are compared in it; None where they are not
    judging: Judging | None = None
    # the phase of a launch whose wall-clock time replaces a missing figure
    phase: str = ""
    # the metric of a launch that has the processor time of the same work
    processor: str = ""
    # computes it from other figures of the cell where none was recorded
    derive: Callable[[Cell], float | None] | None = None
    # the title of the launches' figure, which verdicts compare, where the cell's own is that of the check pass
    launch_title: str = ""

    @property
    def is_under_metrics(self) -> bool:
        """Whether a document's cell holds it under `metrics`, because the cell has no field of this name."""
        return self.name not in Cell.model_fields

    def read_figure(self, report: Sample | CheckReport) -> float | None:
        """Read the figure from the report of a launch or of the check pass; None where the report has none.

        The time of the metric's `phase` replaces a missing figure of a launch.
        """
        fields = type(report).model_fields
        value = getattr(report, self.name) if self.name in fields else report.metrics.get(self.name)
        if value is None and isinstance(report, Sample):
            value = report.phases_ms.get(self.phase)
        return None if value is None else float(value)

    def read_processor_time(self, sample: Sample) -> float | None:
        """Read the processor time of the work whose wall-clock time this metric is; None where the launch has none."""
        return sample.phases_ms.get(f"{self.phase}_cpu") if self.phase else sample.metrics.get(self.processor)

    def value(self, cell: Cell) -> float | bool | None:
        """Read the value from a document's cell, or derive it from other figures; None where the cell has neither."""
        if self.is_under_metrics:
            if (recorded := cell.find_metric(self.name)) is not None:
                return recorded.value
            return None if self.derive is None else self.derive(cell)
        value: float | bool | None = getattr(cell, self.name)
        return value

    def interval_of(self, cell: Cell) -> tuple[float, float] | None:
        """Read (low, high) of the figure's interval from a document's cell; None where the cell has none."""
        if self.interval_as:
            interval: tuple[float, float] | None = getattr(cell, self.interval_as)
            return interval
        metric = cell.find_metric(self.name)
        if metric is None or metric.ci_low is None or metric.ci_high is None:
            return None
        return metric.ci_low, metric.ci_high

    def document_fields(self, figure: Figure) -> dict[str, object]:
        """Return a figure's value by its field in a document's cell, and its samples and interval where they have one.

        Empty for a metric that a cell holds under `metrics`.
        """
        if self.is_under_metrics:
            return {}
        interval = None if figure.low is None or figure.high is None else (figure.low, figure.high)
        fields = {self.name: figure.value, self.samples_as: figure.samples, self.interval_as: interval}
        return {name: value for name, value in fields.items() if name}
