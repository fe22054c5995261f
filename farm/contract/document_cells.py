"""The cells of the bench document: what was asked, what ran, and its figures.

Absent metrics are null. Times are milliseconds unless the name says otherwise, sizes are bytes, shares are 0–1.
"""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from farm.contract.base import Line
from farm.contract.cells import BOUND, Call, LaterAxes, SpelledRuntime
from farm.contract.reasons import CellStatus, Reason, WayOut


class Part(BaseModel):
    """Readers of a document ignore keys they do not know; writers never invent numbers."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class ParityOutput(Part):
    name: Line  # of the output
    max_abs: float | None = None  # largest difference
    max_rel: float | None = None  # largest difference as a share of the value
    rmse: float | None = None  # root mean square of the differences
    cosine: float | None = None  # of the two outputs as vectors
    top1_agreement: float | None = None  # share of rows whose largest value is at the same place
    nan_count: int = 0  # values that are no number
    inf_count: int = 0  # values that are infinite
    violations: int = 0  # values beyond the tolerance


class Parity(Part):
    """`reference`: "expected" (uploaded) or "onnxruntime==… CPU, no optimisations"; `text`: the verdict in words.

    `command`: of outputs that differ, the command line that looks for the node; empty where there is none.
    """

    verdict: Literal["pass", "fail", "not_measured"] = "not_measured"  # `pass`, `fail` or `not_measured`
    reference: str | None = None  # what the outputs were compared with
    text: Line = ""  # the verdict in words
    # the element-wise tolerance; null where outputs are judged by direction (INT8)
    atol: float | None = None
    rtol: float | None = None
    # `name`, `max_abs`, `max_rel`, `rmse`, `cosine`, `top1_agreement`, `nan_count`, `inf_count`, `violations`
    outputs: list[ParityOutput] = Field(default_factory=list)
    # of outputs that differ: `onnxfarm diverge …`, which looks for the node; empty where it cannot say all of the
    # cell
    command: str = ""
    # whether nobody can say what is right, so that outputs are not judged; absent where not
    unjudged: bool = Field(default=False, exclude_if=lambda unjudged: not unjudged)


class Accuracy(Part):
    """The cell on labelled data, with 95 % intervals; `value` is what the recipe's metric says of all samples.

    `difference`: this cell's value minus that of `baseline`, the FP32 cell of the same runtime, on the same samples;
    `p` of the paired test (McNemar's, or t). `samples` is packed and only kept until a run is put together.
    """

    metric: str  # a metric of accuracy.md, or the function of `--judge`
    # how the output was judged, and which
    recipe: str = ""
    output: str = ""
    higher_is_better: bool = True  # false for `mse`, `wer`, `cer`, `perplexity`, and where a judge says so
    # samples, and the digest of the data they are from
    n: int = 0
    # of the labelled data: cells judged on other data are not held against each other
    data_sha256: str | None = None
    judge_sha256: str | None = None  # of the file of a user's own judge, whose `FILE.py:FUNCTION` is the `recipe`
    # with its 95 % interval (Wilson's where samples are right or wrong, else t); no interval: one number of a
    # judge's; null: not measured
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    reason: Reason | None = None  # why there is no value; the cell may be done all the same
    measured_by: str | None = None  # the cell that ran for this one: same variant, runtime, provider and session
    baseline: str | None = None  # the FP32 cell of the same runtime; null where it is such a cell itself
    # this value minus the baseline's on the same samples, 95 % interval (Newcombe's paired, else t)
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None  # of the paired test (McNemar's exact, else t)
    # samples that only one of the two got right
    only_baseline: int | None = None
    only_this: int | None = None
    text: Line = ""  # all of it in words
    samples: str = ""  # empty in whole documents


class EngineParity(Parity):
    """The cell's outputs against those of `cell`, an earlier one of its block; `outputs` only where they differ.

    `node` and `divergence`: the first divergent node and its sentence, where `bench --diverge` looked for them.
    """

    cell: str  # the earlier cell of the block
    # of another model's outputs, which were compared in their order: what they were called, and now are
    renamed: dict[Line, Line] = Field(default_factory=dict, exclude_if=lambda names: not names)
    node: Line = ""  # the first divergent node, by `bench --diverge`; else empty
    divergence: Line = ""  # what it says in a sentence


class ProviderTime(Part):
    name: str  # as ONNX Runtime names it
    nodes: int  # executed on it
    time_share: float  # of the traced time, 0 to 1


class Input(Part):
    """One input as it was fed. `made_by`: how its values were made, in words; `fill`: the same as `--input` takes it.

    `fill` is empty for inputs that were given.
    """

    name: Line  # of the input
    dtype: str  # its type
    shape: list[int]  # in numbers
    made_by: str  # how its values were made, in words
    fill: str = ""  # the same as `--input` takes it; empty: given


class OperatorTime(Part):
    node: Line  # the model's own
    covers: list[Line] = Field(default_factory=list)  # own nodes that are fused into it
    op_type: Line  # as executed
    provider: str  # that ran it
    time_us: float  # median over the runs of the first trace
    # what one call asked of its provider's arena and kept, the most of any profiled inference; absent before ONNX
    # Runtime 1.28, or without an arena
    memory_bytes: int | None = Field(default=None, exclude_if=lambda size: size is None)


class PromptTime(Part):
    """The trace of a prompt: the times of one prompt and its slowest operators."""

    tokens: int  # of the prompt
    traced_us: float  # one prompt under the profiler
    unaccounted_us: float | None = None  # of it, what no operator has
    operators: list[OperatorTime] = Field(default_factory=list)  # the slowest first


class CurvePoint(Part):
    """From `at_s` on, for `span_s` seconds. `energy_mj`: millijoules per inference."""

    at_s: float  # from the begin
    span_s: float  # how long
    n: int  # inferences
    p50_ms: float  # median
    p90_ms: float  # 90th percentile
    energy_mj: float | None = None  # millijoules per inference; null: not readable


class Sustained(Part):
    """A cell that worked on for minutes. `throttle_s`: when its latency rose for good; null: it did not.

    `text`: what the curve says, in words; `reason`: why there is none.
    """

    # `at_s` (from the begin), `span_s`, `n` (inferences), `p50_ms`, `p90_ms`, `energy_mj` (null: not readable)
    points: list[CurvePoint] = Field(default_factory=list)
    throttle_s: float | None = None  # from when on p50 stayed more than 5 % above the first point; null: it did not
    text: str = ""  # what the curve says
    reason: Reason | None = None  # why there is none


class Figure(Part):
    """One figure of one figure a launch. `low`, `high`: its 95 % interval; `samples`: one figure a launch.

    `better`: `less` or `more`; empty where neither is.
    """

    value: float  # the figure
    unit: str = ""  # its unit
    better: Literal["less", "more", ""] = ""  # `less` or `more`; empty where neither is
    low: float | None = None  # low end of its 95 % interval
    high: float | None = None  # high end
    samples: list[float] = Field(default_factory=list)  # one figure a launch


class CellMetric(Part):
    """A metric of a cell: one figure from `n` launches, with its 95 % interval where its noise is known.

    `n` is 1 of what the check pass or a trace says once. `better` and `samples` as of a `Figure`; of a metric that is a
    key of the cell, `samples` stand under a key of their own or nowhere.
    """

    name: str  # its name in the table
    # the figure of the cell
    unit: str = ""
    better: Literal["less", "more", ""] = ""  # `less` or `more`; empty where neither is
    # the figure of the cell
    value: float
    # its 95 % interval over process launches; null where its noise is not known
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 1  # process launches behind it; 1 of what the check pass or a trace says once
    # one figure a process launch, by round; empty for what the check pass reports once, and for keys of the cell,
    # which keep them beside (`samples_ms`)
    samples: list[float] = Field(default_factory=list)

    @classmethod
    def from_figure(cls, name: str, figure: Figure) -> Self:
        return cls(
            name=name,
            unit=figure.unit,
            better=figure.better,
            value=figure.value,
            ci_low=figure.low,
            ci_high=figure.high,
            n=max(1, len(figure.samples)),
            samples=figure.samples,
        )

    @property
    def figure(self) -> Figure:
        return Figure(
            value=self.value,
            unit=self.unit,
            better=self.better,
            low=self.ci_low,
            high=self.ci_high,
            samples=self.samples,
        )


class CellPhase(Part):
    """A part of what a cell's launches did, with the median of each of its figures over `launches` launches."""

    name: str  # of the part of a launch
    launches: int  # behind it
    metrics: dict[str, float] = Field(default_factory=dict)  # their medians by name


class Cell(LaterAxes, Part):
    """One arm of one block."""

    id: str  # unique in the document
    digest: str  # SHA-256 of what is measured: the same digest is the same measurement
    block: str = ""  # cells of one block were measured in interleaved rounds; empty for refused points
    model: Line = ""  # the model's name
    model_sha256: str  # the model file digest: SHA-256 of the uploaded `.onnx` file
    opset: int | None = None  # of the default domain, as measured
    runtime: SpelledRuntime  # `onnxruntime==1.31.1`
    provider: str  # the provider asked for, by ONNX Runtime's name
    provider_options: dict[str, str] = Field(default_factory=dict)  # passed verbatim
    batch: int | None = None  # null: the first dimension is not a batch
    # sizes of dynamic dimensions, as measured: asked for, of given inputs, or chosen at inspection
    shapes: dict[str, int] = Field(default_factory=dict)
    # what one inference is fed: `name`, `dtype`, `shape` in numbers, `made_by` in words, `fill` as `--input` takes it
    # (empty: given); empty for models that were inspected before 22 November 2026
    inputs: list[Input] = Field(default_factory=list)
    precision: str  # `int8-dynamic`, …, as asked for; `fp32`: the model's own numbers
    # of such a cell what they are: `fp16`, `bf16`, `int8 QDQ`, `int4`, …; left out where not known
    uploaded: str = Field(default="", exclude_if=lambda words: not words)
    # how the measured variant was derived, e.g. `opset 21, int8-qdq:activation=uint8:per-channel, random calibration
    # data`; empty: as uploaded
    recipe: str = ""
    threads: int  # intra-op threads
    session: dict[str, object] = Field(default_factory=dict)  # the other session options, with the `name` of their set
    optimization: str = "all"  # `disable`, `basic`, `extended` or `all`
    concurrency: int = 1  # sessions or streams at the same time
    scenario: str = "single"  # `single`, `fresh`, `load:rate=200`, `sustained:10`, …: what a launch does; scenarios.md
    # the call that is timed: `bound`, with inputs and outputs bound once, or `run`, `InferenceSession.run` with
    # arrays; documents of before 26 November 2026 do not say it and are `bound`
    call: Call = BOUND
    hardware: str = "cpu"  # the hardware asked for
    node: str | None = None  # where it ran
    twin_of: str | None = None  # the `id` of the arm with which this one forms an A/A pair
    status: CellStatus  # `done`, `refused`, `failed`, `timeout`, `crashed` or `cancelled`
    # `code` and `text`; null when `done`, unless it was stopped before its end: then by whom, after how many rounds
    reason: Reason | None = None
    # of what the plan refused, where a change of the matrix helps: `label` in words, the `axis` that changes, the
    # `values` that it then holds (none: it is left out), and the `command` that measures it on the machine at hand
    # (empty: another machine has to); else absent
    way_out: WayOut | None = Field(default=None, exclude_if=lambda way: way is None)
    requested_providers: list[str] = Field(default_factory=list)  # what the session was asked for, in order
    active_providers: list[str] = Field(default_factory=list)  # what `get_providers()` answered
    p50_ms: float | None = None  # the median of `samples_ms`
    p50_ci_ms: tuple[float, float] | None = None  # its 95 % interval (signed-rank test, inverted)
    # over all timings of all launches; nothing is removed
    mean_ms: float | None = None
    std_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    # from 64, 662 and 662 timings on
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    samples_ms: list[float] = Field(default_factory=list)  # one p50 a process launch, by round
    # processor time of an inference, likewise; of one thread of the CPU provider alone
    cpu_p50_ms: float | None = None
    cpu_samples_ms: list[float] = Field(default_factory=list)
    # items per second: batch × 1000 / `p50_ms`; with `concurrency`, what all streams reached
    throughput: float | None = None
    # p50 with inputs and outputs in host memory; null where the provider has no memory of its own
    with_copies_p50_ms: float | None = None
    energy_mj: float | None = None  # millijoules per inference, of everything on the processor or device
    energy_text: str = ""  # which counter was read, or "not readable here" and why
    sustained: Sustained | None = None  # below; null: it was not asked for
    # creating the session; where a provider compiles, with the first build of its engine
    session_ms: float | None = None
    # creating a session that found the engine in the provider's cache; null where nothing is compiled or kept
    cached_session_ms: float | None = None
    engine_bytes: int | None = None  # what the provider left in its cache
    first_ms: float | None = None  # the first inference
    import_ms: float | None = None  # importing the runtime
    peak_memory_bytes: int | None = None  # of a process that loads and runs the model once
    is_stable: bool | None = None  # warm-up and windows agreed in every launch
    is_bimodal: bool | None = None  # launches fall into two groups
    # samples that other programs disturbed: measured again, left out, or counted by processor time
    disturbed_samples: int = 0
    is_repeatable: bool | None = None  # the same input gave the same output twice
    executed_precision: str | None = None  # the provider's own word on the precision it computed in
    # what a plug-in and its device say of themselves, such as `device`, `adapter`, `plug-in version`
    provider_facts: dict[str, str] = Field(default_factory=dict)
    # it ran on a simulator of its device: placement and parity are the device's, its latencies are compared with
    # nothing; absent elsewhere
    simulated: bool = Field(default=False, exclude_if=lambda simulated: not simulated)
    copies: int | None = None  # copies between host and device nodes in the trace
    parity: Parity = Field(default_factory=Parity)  # below
    # as `parity`, with `cell`: each earlier cell of the block that had the same inputs; `outputs` only where they
    # differ; `node` and `divergence` by `bench --diverge`, else empty
    engines: list[EngineParity] = Field(default_factory=list)
    # as `parity`, against the same runtime without optimisations; null: not looked at
    unoptimised: Parity | None = None
    # largest difference of row 0 of the batch and the same row alone; null: not looked at
    batch_row_max_abs: float | None = None
    accuracy: Accuracy | None = None  # below; null: the model came without labelled data
    model_bytes: int | None = None  # of the variant: its `.onnx` and external data
    providers: list[ProviderTime] = Field(default_factory=list)  # `name`, `nodes` (executed), `time_share`
    traced_us: float | None = None  # one inference under the profiler, in µs: the median of the trace's runs
    # of it, what no operator has: time between operators, and the profiler's own; null where operators overlap
    unaccounted_us: float | None = None
    operators: list[OperatorTime] = Field(default_factory=list)  # below; at most 256, the slowest first
    # of the whole first trace: provider → operator → how many nodes; copies between layouts or devices are left out
    executed: dict[str, dict[str, int]] = Field(default_factory=dict)
    # of a cell that generates, whose trace above is of a token: the prompt's `tokens`, `traced_us`, `unaccounted_us`,
    # `operators`; absent elsewhere
    prompt: PromptTime | None = Field(default=None, exclude_if=lambda prompt: prompt is None)
    # own nodes that copied a cache for a token; absent where none did
    cache_copies: list[str] = Field(default_factory=list, exclude_if=lambda copies: not copies)
    # of the runtime's environment, as the node told them: names and versions by Python's own rules
    packages: dict[str, str] = Field(default_factory=dict)
    repeat_command: str = ""  # repeats this cell without a farm; written from the cell, never by the node
    # of scenarios that have some: `name`, `launches` and `metrics`, their medians by name; absent elsewhere
    phases: list[CellPhase] = Field(default_factory=list, exclude_if=lambda phases: not phases)
    # what the scenario found, in a sentence; absent where it looks for nothing
    scenario_text: str = Field(default="", exclude_if=lambda text: not text)
    # of `generate`: the tokens that the first launch chose; absent elsewhere
    tokens: list[int] = Field(default_factory=list, exclude_if=lambda tokens: not tokens)
    # every metric, also those that are keys here; the scenario's headline first; absent where there are none
    metrics: list[CellMetric] = Field(default_factory=list, exclude_if=lambda metrics: not metrics)

    @field_validator("metrics", mode="before", json_schema_input_type=list[CellMetric] | dict[str, Figure])
    @classmethod
    def _read_figures_by_name(cls, value: object) -> object:
        """Take figures by name too, as farms wrote them until 23 November 2026."""
        if not isinstance(value, Mapping):
            return value
        return [CellMetric.from_figure(name, Figure.model_validate(figure)) for name, figure in value.items()]

    @property
    def figures(self) -> dict[str, Figure]:
        return {metric.name: metric.figure for metric in self.metrics}

    def find_metric(self, name: str) -> CellMetric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)
