"""The metrics of a cell: name, unit, what is better, how one figure comes from launches, and who judges it.

One entry a metric, in the order in which a cell's page lists them. Summaries, documents, CSV, pages and alerts read it
here. A metric that is no field of the contract's Sample or CheckReport is sent under `metrics` by its name, and stands
under `metrics` of a document's cell: it needs an entry here and the line that measures it, nothing else. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Literal

from farm.contract.document import Cell, Figure
from farm.contract.reports import CheckReport, Sample
from farm.rules.cells.numbers import MIB
from farm.rules.comparing.enough import COUNT_FOR

# how far a figure may be off: by interleaved rounds in pairs, by the spread of its launches, or nobody says
Noise = Literal["rounds", "launches", "unknown"]
# how a figure is written: a time with the digits of its interval, three digits, bytes in MiB, a whole number, yes or no
Reading = Literal["latency", "plain", "memory", "count", "yes"]
AlertKind = Literal["session", "first", "memory"]
# what watches alert on by a verdict
VerdictKind = Literal["growth", "ttft"]
Summary = Callable[[Sequence[float]], float]
# what a verdict says of more of a metric, and of less
Words = tuple[Literal["slower", "bigger", "higher"], Literal["faster", "smaller", "lower"]]
TIME: Words = ("slower", "faster")
SIZE: Words = ("bigger", "smaller")
RATE: Words = ("higher", "lower")


@dataclass(frozen=True, slots=True)
class Alert:
    """What a watch makes of a metric: its `kind` in the rule, and the `least` change that is a finding at all."""

    kind: AlertKind
    words: str
    least: float


@dataclass(frozen=True, slots=True)
class Judging:
    """How comparisons judge a metric of which every launch says a figure.

    `by`: pairs of launches by round, as their ratio or as their difference in the metric's own unit; or a repeat, of
    what comes out alike at every launch. `margin`: what is of no consequence, as a fraction, where it is more than the
    block's own; of differences and repeats in the metric's own unit. `kinds`: the scenarios whose launches say it,
    where others say something else by that name. `is_told`: in the run's sentence. `alerts_as`: the kind of change by
    which a watch alerts when it is worse.
    """

    words: Words
    by: Literal["ratio", "difference", "repeat"] = "ratio"
    margin: float = 0.0
    kinds: tuple[str, ...] = ()
    is_told: bool = False
    alerts_as: VerdictKind | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `name` is its key in samples, documents and CSV; `title` heads it on pages, which show one without it elsewhere.
    `summary` makes the cell's figure of one figure a launch; without it the figure comes once, from the check pass or
    from all timings together. `samples_as` and `interval_as` are where the document keeps the launches and the interval
    of a metric that is a field of it. `is_judged`: verdicts are about it. `from_timings`: how many timings it takes.
    `absent`: why a cell of one thread on the CPU has none, where that is worth a row of its page. `judging`: how two
    arms are compared in it. `phase`: the part of a launch whose wall-clock time it is, where launches say no more.
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
    alert: Alert | None = None
    from_timings: int = 0
    absent: str = ""
    judging: Judging | None = None
    phase: str = ""

    @property
    def is_carried(self) -> bool:
        """Whether documents hold it under `metrics`, because the schema has no field of its own for it."""
        return self.name not in Cell.model_fields

    def of(self, told: Sample | CheckReport) -> float | None:
        """What a launch or the check pass said of it."""
        own = type(told).model_fields
        value = getattr(told, self.name) if self.name in own else told.metrics.get(self.name)
        if value is None and isinstance(told, Sample):
            value = told.phases_ms.get(self.phase)
        return None if value is None else float(value)

    def value(self, cell: Cell) -> float | bool | None:
        """What a document's cell says of it, as it stands there."""
        if self.is_carried:
            return cell.metrics[self.name].value if self.name in cell.metrics else None
        value: float | bool | None = getattr(cell, self.name)
        return value

    def interval_of(self, cell: Cell) -> tuple[float, float] | None:
        """Its interval, where the document has one."""
        if self.interval_as:
            found: tuple[float, float] | None = getattr(cell, self.interval_as)
            return found
        figure = cell.metrics.get(self.name)
        return None if figure is None or figure.low is None or figure.high is None else (figure.low, figure.high)

    def placed(self, figure: Figure) -> dict[str, object]:
        """The figure under the document's own keys; of a metric that has no field there, nothing."""
        if self.is_carried:
            return {}
        interval = None if figure.low is None or figure.high is None else (figure.low, figure.high)
        places = {self.name: figure.value, self.samples_as: figure.samples, self.interval_as: interval}
        return {name: value for name, value in places.items() if name}


# launches of one cell differ by up to 2 MiB, and another release's own code takes up to 12 MiB more
LEAST_MEMORY = 16.0 * MIB
# what the pages of a process come and go by is no growth
LEAST_GROWTH = 64.0 * 1024
# milliseconds over 1,000 positions
LEAST_TOKEN_GROWTH = 0.05
_MEMORY = partial(Alert, "memory", least=LEAST_MEMORY)
_BY_REPEAT = Judging(SIZE, by="repeat", margin=LEAST_MEMORY, is_told=True)

# of scenarios: what memory grows by, and answers that are not those of the same inputs alone
GROWTH, DIFFERING = "growth_bytes_per_1000", "differing_answers"
MAX_RATE, GOODPUT = "max_rate_per_s", "goodput_per_s"
# of generating: time per token behind the first, and until the first
TPOT, TTFT, TOKENS_RATE = "tpot_ms", "ttft_ms", "tokens_per_s"
OUTSIDE, OUTSIDE_CPU = "outside_ms", "outside_cpu_ms"
TTFT_CPU, TPOT_GROWTH, DIFFERING_ROWS = "ttft_cpu_ms", "tpot_growth_ms_per_1000", "differing_rows"

METRICS: tuple[Metric, ...] = (
    Metric(
        "p50_ms",
        "p50",
        "ms",
        "less",
        summary=median,
        noise="rounds",
        reads="latency",
        samples_as="samples_ms",
        interval_as="p50_ci_ms",
        is_judged=True,
        judging=Judging(TIME),
    ),
    Metric(
        "cpu_p50_ms",
        "processor time",
        "ms",
        "less",
        summary=median,
        note="p50 of the thread's own time, without the turns that other programs took",
        samples_as="cpu_samples_ms",
        judging=Judging(TIME),
    ),
    Metric(
        "instructions",
        "instructions per inference",
        "",
        "less",
        summary=median,
        noise="launches",
        reads="count",
        note="retired in user mode by the thread that computes, where the processor's counters can be read",
        absent="not readable here: this machine lets a process read no counter of its instructions",
    ),
    Metric("mean_ms", "mean", "ms", "less"),
    Metric("std_ms", "standard deviation", "ms", "less"),
    Metric("min_ms", "min", "ms", "less", summary=min),
    Metric("max_ms", "max", "ms", "less", summary=max),
    Metric("p90_ms", "p90", "ms", "less", from_timings=COUNT_FOR["p90"]),
    Metric("p95_ms", "p95", "ms", "less", from_timings=COUNT_FOR["p95"]),
    Metric(
        "p99_ms",
        "p99",
        "ms",
        "less",
        from_timings=COUNT_FOR["p99"],
        judging=Judging(TIME, margin=0.1, kinds=("load",), is_told=True),
    ),
    Metric("throughput", "throughput", "items/s", "more"),
    Metric(
        "with_copies_p50_ms",
        "with host copies",
        "ms",
        "less",
        summary=median,
        note="p50 with inputs and outputs in host memory; the p50 above is of tensors on the device",
    ),
    Metric("energy_mj", "energy per inference", "mJ", "less"),
    Metric("import_ms", "import", "ms", "less", note="of ONNX Runtime, in a fresh process"),
    Metric(
        "session_ms",
        "session creation",
        "ms",
        "less",
        alert=Alert("session", "session creation", 20.0),
        judging=Judging(TIME, margin=0.1),
        phase="session",
    ),
    Metric("cached_session_ms", "", "ms", "less"),
    Metric("engine_bytes", "", "bytes", "less", reads="memory"),
    Metric(
        "first_ms",
        "first inference",
        "ms",
        "less",
        alert=Alert("first", "the first inference", 5.0),
        judging=Judging(TIME, margin=0.1, kinds=("single", "sustained")),
        phase="first",
    ),
    Metric(
        "peak_memory_bytes",
        "peak memory",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="resident, of the whole process",
        alert=_MEMORY("peak memory"),
        judging=_BY_REPEAT,
    ),
    Metric(
        "peak_address_space_bytes",
        "peak address space",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="of the whole process, touched or not: what a limit on its memory counts",
        alert=_MEMORY("peak address space"),
        judging=_BY_REPEAT,
    ),
    Metric(
        TPOT,
        "time per token",
        "ms",
        "less",
        summary=median,
        noise="launches",
        reads="latency",
        note="the graph alone, for each token behind the first: the p50 above is of the same times",
        judging=Judging(TIME),
    ),
    Metric(
        TTFT,
        "time to the first token",
        "ms",
        "less",
        summary=median,
        noise="launches",
        reads="latency",
        note="the graph over the prompt, and choosing the token",
        judging=Judging(TIME, alerts_as="ttft"),
    ),
    Metric(
        TTFT_CPU,
        "processor time to the first token",
        "ms",
        "less",
        summary=median,
        noise="launches",
        reads="latency",
        note="the thread's own time over the prompt, without the turns that other programs took",
        judging=Judging(TIME),
    ),
    Metric(
        TOKENS_RATE,
        "tokens",
        "tokens/s",
        "more",
        summary=median,
        noise="launches",
        note="prompt and choosing included",
        judging=Judging(RATE),
    ),
    Metric(
        "prefill_tokens_per_s",
        "prompt",
        "tokens/s",
        "more",
        summary=median,
        noise="launches",
        judging=Judging(RATE),
    ),
    Metric(
        OUTSIDE,
        "outside the graph",
        "ms",
        "less",
        summary=median,
        noise="launches",
        note="choosing the token, for each token behind the first",
        judging=Judging(TIME, margin=0.1),
    ),
    Metric(
        OUTSIDE_CPU,
        "outside the graph, processor time",
        "ms",
        "less",
        summary=median,
        noise="launches",
        note="of the thread that chooses the token",
        judging=Judging(TIME, margin=0.1),
    ),
    Metric(
        TPOT_GROWTH,
        "growth of the time per token",
        "ms",
        "less",
        summary=median,
        noise="launches",
        note="over 1,000 positions, from the first to the last quarter of the new tokens",
        judging=Judging(TIME, by="difference", margin=LEAST_TOKEN_GROWTH),
    ),
    Metric(
        "cache_bytes",
        "cache",
        "bytes",
        "less",
        summary=max,
        reads="memory",
        note="keys and values of the last step",
        judging=Judging(SIZE, by="repeat", margin=1.0),
    ),
    Metric(
        GROWTH,
        "growth per 1,000 inferences",
        "bytes",
        "less",
        summary=median,
        noise="launches",
        reads="memory",
        note="of resident memory, once it has settled",
        judging=Judging(SIZE, by="difference", margin=LEAST_GROWTH, is_told=True, alerts_as="growth"),
    ),
    Metric(
        MAX_RATE,
        "highest rate",
        "requests/s",
        "more",
        summary=median,
        noise="launches",
        note="whose p99 keeps the bound",
        judging=Judging(RATE, margin=0.05, is_told=True),
    ),
    Metric(
        GOODPUT,
        "goodput",
        "requests/s",
        "more",
        summary=median,
        noise="launches",
        note="requests that kept the bound",
        judging=Judging(RATE, margin=0.05),
    ),
    Metric(
        DIFFERING,
        "answers that differ",
        "",
        "less",
        summary=max,
        reads="count",
        note="sets of inputs answered otherwise than alone",
    ),
    Metric(
        DIFFERING_ROWS,
        "rows that differ",
        "",
        "less",
        summary=max,
        reads="count",
        note="of the first and last row of a batch: those with other tokens than alone",
    ),
    Metric("copies", "copies", "", "less", reads="count", note="between host and device, per inference"),
    Metric("disturbed_samples", "disturbed launches", reads="count", note="another program took the processor"),
    Metric("is_stable", "stable", reads="yes", note="timing windows agree within 5 %"),
    Metric("is_bimodal", "two groups of launches", reads="yes"),
    Metric("is_repeatable", "repeatable", reads="yes", note="the same input twice gives the same bits"),
)
BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
# beside the time: whether two sides do the same work
INSTRUCTIONS = BY_NAME["instructions"]
# what verdicts are about
JUDGED = next(metric for metric in METRICS if metric.is_judged)
# those of which every launch says one figure
OF_LAUNCHES = tuple(metric for metric in METRICS if metric.summary is not None)
# what a watch compares, with what it makes of it
ALERTING = tuple((metric, metric.alert) for metric in METRICS if metric.alert is not None)
# what a watch alerts on by a verdict, by the metric's name
BY_VERDICT: Mapping[str, VerdictKind] = {
    metric.name: metric.judging.alerts_as
    for metric in METRICS
    if metric.judging is not None and metric.judging.alerts_as is not None
}
# those on which two arms have a verdict: `JUDGED` first, then those beside it
COMPARED = tuple((metric, metric.judging) for metric in METRICS if metric.judging is not None)
