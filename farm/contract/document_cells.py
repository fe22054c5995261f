"""The cells of the bench document: what was asked, what ran, and its figures.

Absent metrics are null. Times are milliseconds unless the name says otherwise, sizes are bytes, shares are 0–1.
"""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from farm.contract.cells import BOUND, Call, LaterAxes, SpelledRuntime
from farm.contract.reasons import CellStatus, Reason, WayOut


class Part(BaseModel):
    """Readers of a document ignore keys they do not know; writers never invent numbers."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class ParityOutput(Part):
    name: str
    max_abs: float | None = None
    max_rel: float | None = None
    rmse: float | None = None
    cosine: float | None = None
    top1_agreement: float | None = None
    nan_count: int = 0
    inf_count: int = 0
    violations: int = 0


class Parity(Part):
    """`reference`: "expected" (uploaded) or "onnxruntime==… CPU, no optimisations"; `text`: the verdict in words.

    `command`: of outputs that differ, the command line that looks for the node; empty where there is none.
    """

    verdict: Literal["pass", "fail", "not_measured"] = "not_measured"
    reference: str | None = None
    text: str = ""
    atol: float | None = None
    rtol: float | None = None
    outputs: list[ParityOutput] = Field(default_factory=list)
    command: str = ""


class Accuracy(Part):
    """The cell on labelled data, with 95 % intervals; `value` is what the recipe's metric says of all samples.

    `difference`: this cell's value minus that of `baseline`, the FP32 cell of the same runtime, on the same samples;
    `p` of the paired test (McNemar's, or t). `samples` is packed and only kept until a run is put together.
    """

    metric: str
    recipe: str = ""
    output: str = ""
    higher_is_better: bool = True
    n: int = 0
    # of the labelled data: cells judged on other data are not held against each other
    data_sha256: str | None = None
    # of the file of a user's own judge, whose function the metric is called after
    judge_sha256: str | None = None
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    reason: Reason | None = None
    measured_by: str | None = None
    baseline: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    only_baseline: int | None = None
    only_this: int | None = None
    text: str = ""
    samples: str = ""


class EngineParity(Parity):
    """The cell's outputs against those of `cell`, an earlier one of its block; `outputs` only where they differ.

    `node` and `divergence`: the first divergent node and its sentence, where `bench --diverge` looked for them.
    """

    cell: str
    node: str = ""
    divergence: str = ""


class ProviderTime(Part):
    name: str
    nodes: int
    time_share: float


class Input(Part):
    """One input as it was fed. `made_by`: how its values were made, in words; `fill`: the same as `--input` takes it.

    `fill` is empty for inputs that were given.
    """

    name: str
    dtype: str
    shape: list[int]
    made_by: str
    fill: str = ""


class OperatorTime(Part):
    node: str
    covers: list[str] = Field(default_factory=list)
    op_type: str
    provider: str
    time_us: float
    # what one call asked of its provider's memory and kept; absent where the runtime does not say
    memory_bytes: int | None = Field(default=None, exclude_if=lambda size: size is None)


class PromptTime(Part):
    """The trace of a prompt of so many tokens, as of a cell: times of one prompt, the slowest operators."""

    tokens: int
    traced_us: float
    unaccounted_us: float | None = None
    operators: list[OperatorTime] = Field(default_factory=list)


class CurvePoint(Part):
    """From `at_s` on, for `span_s` seconds. `energy_mj`: millijoules per inference."""

    at_s: float
    span_s: float
    n: int
    p50_ms: float
    p90_ms: float
    energy_mj: float | None = None


class Sustained(Part):
    """A cell that worked on for minutes. `throttle_s`: when its latency rose for good; null: it did not.

    `text`: what the curve says, in words; `reason`: why there is none.
    """

    points: list[CurvePoint] = Field(default_factory=list)
    throttle_s: float | None = None
    text: str = ""
    reason: Reason | None = None


class Figure(Part):
    """One figure of one figure a launch. `low`, `high`: its 95 % interval; `samples`: one figure a launch.

    `better`: `less` or `more`; empty where neither is.
    """

    value: float
    unit: str = ""
    better: Literal["less", "more", ""] = ""
    low: float | None = None
    high: float | None = None
    samples: list[float] = Field(default_factory=list)


class CellMetric(Part):
    """A metric of a cell: one figure from `n` launches, with its 95 % interval where its noise is known.

    `n` is 1 of what the check pass or a trace says once. `better` and `samples` as of a `Figure`; of a metric that is a
    key of the cell, `samples` stand under a key of their own or nowhere.
    """

    name: str
    unit: str = ""
    better: Literal["less", "more", ""] = ""
    value: float
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 1
    samples: list[float] = Field(default_factory=list)

    @classmethod
    def of(cls, name: str, figure: Figure) -> Self:
        """The figure under its name."""
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
        """What stands under the name."""
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

    name: str
    launches: int
    metrics: dict[str, float] = Field(default_factory=dict)


class Cell(LaterAxes, Part):
    """One arm of one block."""

    id: str
    digest: str
    block: str = ""
    model: str = ""
    model_sha256: str
    opset: int | None = None
    runtime: SpelledRuntime
    provider: str
    provider_options: dict[str, str] = Field(default_factory=dict)
    batch: int | None = None
    shapes: dict[str, int] = Field(default_factory=dict)
    # empty: the model was looked into before its inputs were
    inputs: list[Input] = Field(default_factory=list)
    precision: str
    # what the numbers of a model that is measured in `fp32`, as it came, are: fp16, int8 QDQ; absent where not known
    uploaded: str = Field(default="", exclude_if=lambda words: not words)
    recipe: str = ""
    threads: int
    session: dict[str, object] = Field(default_factory=dict)
    optimization: str = "all"
    concurrency: int = 1
    # what one launch does: single, fresh, load:closed=4, sustained:10, with their options
    scenario: str = "single"
    # always written; of documents of before 26 November 2026 it is what they timed
    call: Call = BOUND
    hardware: str = "cpu"
    node: str | None = None
    twin_of: str | None = None
    status: CellStatus
    reason: Reason | None = None
    # of what the plan refused: what to change, as the plan tried it
    way_out: WayOut | None = Field(default=None, exclude_if=lambda way: way is None)
    requested_providers: list[str] = Field(default_factory=list)
    active_providers: list[str] = Field(default_factory=list)
    p50_ms: float | None = None
    p50_ci_ms: tuple[float, float] | None = None
    mean_ms: float | None = None
    std_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    samples_ms: list[float] = Field(default_factory=list)
    # processor time of an inference on one thread of the CPU provider, and of each launch; null or empty elsewhere
    cpu_p50_ms: float | None = None
    cpu_samples_ms: list[float] = Field(default_factory=list)
    throughput: float | None = None
    # null: the provider has no memory of its own
    with_copies_p50_ms: float | None = None
    energy_mj: float | None = None
    energy_text: str = ""
    # null: it was not asked for
    sustained: Sustained | None = None
    session_ms: float | None = None
    # null: the provider compiles nothing, or leaves nothing in its cache
    cached_session_ms: float | None = None
    engine_bytes: int | None = None
    first_ms: float | None = None
    import_ms: float | None = None
    peak_memory_bytes: int | None = None
    is_stable: bool | None = None
    is_bimodal: bool | None = None
    disturbed_samples: int = 0
    is_repeatable: bool | None = None
    executed_precision: str | None = None
    # what a plug-in and its device say of themselves
    provider_facts: dict[str, str] = Field(default_factory=dict)
    # true: it ran on a simulator of the device, so that its latencies are compared with nothing; else left out
    simulated: bool = Field(default=False, exclude_if=lambda simulated: not simulated)
    copies: int | None = None
    parity: Parity = Field(default_factory=Parity)
    # engine against engine: earlier cells of the block that were given the same inputs
    engines: list[EngineParity] = Field(default_factory=list)
    # null: not looked at, which is said of other providers than the CPU and of large models
    unoptimised: Parity | None = None
    # largest difference of row 0 of the batch and the same row alone; null: not looked at
    batch_row_max_abs: float | None = None
    # null: the model came without labelled data
    accuracy: Accuracy | None = None
    # the variant's bundle: the .onnx and its external data
    model_bytes: int | None = None
    providers: list[ProviderTime] = Field(default_factory=list)
    # of one inference under the profiler: the median, and what of it no operator has; null: not traced, or not told
    traced_us: float | None = None
    unaccounted_us: float | None = None
    # the slowest of them; `executed` counts all, by provider and operator, copies left out
    operators: list[OperatorTime] = Field(default_factory=list)
    executed: dict[str, dict[str, int]] = Field(default_factory=dict)
    # of a cell that generates the above is of a token behind the prompt; own nodes that copied a cache for it
    prompt: PromptTime | None = Field(default=None, exclude_if=lambda prompt: prompt is None)
    cache_copies: list[str] = Field(default_factory=list, exclude_if=lambda copies: not copies)
    packages: dict[str, str] = Field(default_factory=dict)
    repeat_command: str = ""
    # what parts of launches came to, what they say together, the tokens of one, and every metric, also those above:
    # until 23 November 2026 those alone that are no key here; absent where there are none
    phases: list[CellPhase] = Field(default_factory=list, exclude_if=lambda phases: not phases)
    scenario_text: str = Field(default="", exclude_if=lambda text: not text)
    tokens: list[int] = Field(default_factory=list, exclude_if=lambda tokens: not tokens)
    metrics: list[CellMetric] = Field(default_factory=list, exclude_if=lambda metrics: not metrics)

    @field_validator("metrics", mode="before", json_schema_input_type=list[CellMetric] | dict[str, Figure])
    @classmethod
    def _of_before(cls, given: object) -> object:
        """What farms wrote until 23 November 2026: figures by name."""
        if not isinstance(given, Mapping):
            return given
        return [CellMetric.of(name, Figure.model_validate(figure)) for name, figure in given.items()]

    @property
    def figures(self) -> dict[str, Figure]:
        return {metric.name: metric.figure for metric in self.metrics}

    def metric(self, name: str) -> CellMetric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)
