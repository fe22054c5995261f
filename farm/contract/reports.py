"""The reports of a node on a block. Each is idempotent by (attempt, kind, arm, round); a stale one is refused.

The order of a block: one `FactsReport`; one `CheckReport` an arm; one `TraceReport` an arm that loads; where there are
labelled data one `AccuracyReport` an arm that loads; `RoundReport`s until the reply says stop; further `TraceReport`s
(trace_round ≥ 1) for the arms the reply asks for; one `EndReport`.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from farm.contract.base import Message
from farm.contract.divergence import DivergenceReport
from farm.contract.evaluation import AccuracyReport as AccuracyReport
from farm.contract.outputs import Count as Count
from farm.contract.outputs import NonNegative as NonNegative
from farm.contract.outputs import OutputParity as OutputParity
from farm.contract.packages import Packages
from farm.contract.reasons import Reason
from farm.contract.sustained import CurveReport, Energy

Positive = Annotated[float, Field(gt=0)]
MetricName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# figures of metrics without a field here, by their name in farm.rules.cells.metrics; an empty map is not sent, so that
# a farm that does not know the key accepts the message
Metrics = Annotated[dict[MetricName, float], Field(max_length=32, exclude_if=lambda metrics: not metrics)]
# how many nodes of a model have times of their own in a round, and in a trace
MAX_NODES = 2_000
# how many nodes that copy a cache are named
MAX_CACHE_COPIES = 256
Microseconds = Annotated[float, Field(ge=0, le=1e10)]
NodeTimes = Annotated[tuple[Microseconds, ...], Field(max_length=MAX_NODES, exclude_if=lambda times: not times)]
# a share of the processor: if other programs take more, they disturb samples, and the node says so before a block
OTHERS_SHARE = 0.1
# the most memory that a node may report for an operator
MAX_BYTES = 1 << 50
# the model's nodes whose outputs an executed node reads
Readings = Annotated[tuple[str, ...], Field(max_length=64, exclude_if=lambda nodes: not nodes)]


class Facts(Message):
    """What the machine is, as read just before a block. Free-form below `more`; unknown is None, never a guess."""

    hostname: str
    os: str
    arch: str
    cpu_model: str | None = None
    logical_cores: Count | None = None
    physical_cores: Count | None = None
    memory_bytes: Count | None = None
    governor: str | None = None
    turbo: bool | None = None
    load_1m: NonNegative | None = None
    temperature_c: float | None = None
    python: str | None = None
    is_emulated: bool = False
    sandbox: Literal["bubblewrap", "landlock", "browser", "none"] = "none"
    gpus: tuple[str, ...] = ()
    instruction_sets: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    more: dict[str, object] = Field(default_factory=dict)


class CheckReport(Message):
    """The check pass of an arm: does it load, on which providers, how does it start, is it right."""

    kind: Literal["check"] = "check"
    arm: Count
    reason: Reason | None = None
    requested_providers: tuple[str, ...] = ()
    active_providers: tuple[str, ...] = ()
    import_ms: NonNegative | None = None
    session_ms: NonNegative | None = None
    # the start of a session that found its engine in the provider's cache, and the engine's size; None: no engine
    cached_session_ms: NonNegative | None = None
    engine_bytes: Count | None = None
    first_ms: NonNegative | None = None
    peak_memory_bytes: Count | None = None
    outputs: tuple[OutputParity, ...] = ()
    # a second run on the same input gave bit-equal outputs
    is_repeatable: bool | None = None
    # row 0 of the batch against the same row alone; None when not checked
    batch_row_max_abs: NonNegative | None = None
    # the outputs against those of the same runtime without optimisations; empty when not checked
    unoptimised: tuple[OutputParity, ...] = ()
    # installed packages of the runtime's environment, e.g. {"onnxruntime": "1.31.1", "numpy": "2.4.6"}
    packages: Packages = Field(default_factory=dict)
    # the precision in which the provider says that it executed, e.g. "bf16"; None: it says nothing
    executed_precision: str | None = None
    # facts that a plug-in and its device report, e.g. {"device": "GPU of NVIDIA", "plug-in version": "0.4.0"}
    provider_facts: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    # a simulator stands in for the device: placement and outputs are real, latencies are not
    is_simulated: bool = Field(default=False, exclude_if=lambda simulated: not simulated)
    # None: the node does not look for a meter
    energy: Energy | None = None
    metrics: Metrics = Field(default_factory=dict)
    log_tail: Annotated[str, Field(max_length=20_000)] = ""

    @model_validator(mode="before")
    @classmethod
    def _drop_command(cls, value: object) -> object:
        # reports of before 22 November 2026 have a command, but the farm writes its own
        return {key: value[key] for key in value if key != "repeat_command"} if isinstance(value, dict) else value


class EnginePair(Message):
    """The outputs of the arm `other` against those of `one`, which were given the same inputs; `one` comes first."""

    one: Count
    other: Count
    outputs: tuple[OutputParity, ...] = ()


class EnginesReport(Message):
    """Engine against engine: what the arms of a block put out, against each other. `reason`: why nothing was compared.

    Pairs that are too large to compare are left out, and then `left_out` counts them.
    """

    kind: Literal["engines"] = "engines"
    reason: Reason | None = None
    pairs: tuple[EnginePair, ...] = ()
    left_out: Count = 0


class Operator(Message):
    """One executed node of a trace. `node`: the model's own; `covers`: own nodes fused into it.

    `time_us`: of an inference, the median over the trace's. `reads`: own nodes whose outputs it reads, sent where
    rounds are traced. `memory_bytes`: what one call asked of its provider's memory and kept; None: not told.
    """

    node: str
    covers: tuple[str, ...] = ()
    op_type: str
    provider: str
    time_us: NonNegative
    calls: Count = 1
    reads: Readings = ()
    memory_bytes: Annotated[int | None, Field(ge=0, le=MAX_BYTES, exclude_if=lambda size: size is None)] = None


class ProviderShare(Message):
    """Executed nodes of one provider by count and by time (0–1)."""

    name: str
    nodes: Count
    time_share: Annotated[float, Field(ge=0, le=1)]


class PromptTrace(Message):
    """The same trace's other part, of a launch that generates: the `tokens` of a prompt. Times in µs per prompt."""

    tokens: Count
    runs: Count
    run_us: NonNegative
    operators: tuple[Operator, ...] = ()


class TraceReport(Message):
    """One profiled process of an arm. The raw Chrome-trace JSON is uploaded apart, by digest."""

    kind: Literal["trace"] = "trace"
    arm: Count
    # 0: the first trace (placement); 1…: interleaved traces for attribution
    trace_round: Count = 0
    reason: Reason | None = None
    runs: Count = 0
    # the median of whole inferences under the profiler, in µs; None: a node of before 22 November 2026
    run_us: NonNegative | None = None
    providers: tuple[ProviderShare, ...] = ()
    operators: tuple[Operator, ...] = ()
    copies_to_device: Count = 0
    copies_to_host: Count = 0
    # share of executed nodes that could be mapped to the model's own nodes
    mapped_share: Annotated[float, Field(ge=0, le=1)] | None = None
    raw_sha256: str | None = None
    # where a launch generates, the fields above are about a token after the prompt, and `prompt` is about the prompt;
    # `cache_copies` names the model's nodes that copied a cache for the token
    prompt: Annotated[PromptTrace | None, Field(exclude_if=lambda prompt: prompt is None)] = None
    cache_copies: Annotated[
        tuple[str, ...], Field(max_length=MAX_CACHE_COPIES, exclude_if=lambda copies: not copies)
    ] = ()


class Phase(Message):
    """A part of a launch with figures of its own: a shape, a rate, a point of the memory's course."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    metrics: Metrics = Field(default_factory=dict)


class ForcedScores(Message):
    """What a decoder scored at `places` of a given text, from the end of the prompt on.

    `scores`: of the same drawn tokens at each place, base64 of little-endian float32.
    """

    places: Annotated[tuple[Count, ...], Field(max_length=64)] = ()
    scores: Annotated[str, StringConstraints(max_length=65_536)] = ""


class Sample(Message):
    """One process launch: its p50 and what is behind it. Times in milliseconds per inference."""

    p50_ms: Positive
    mean_ms: Positive
    std_ms: NonNegative
    min_ms: Positive
    max_ms: Positive
    n: Annotated[int, Field(ge=1)]
    # base64 of zlib-compressed little-endian uint32 or uint64 nanoseconds, with its dtype in front: "u4:…" or "u8:…"
    timings: str
    warmup_runs: Count = 0
    warmup_ms: NonNegative = 0.0
    is_stable: bool = True
    cpu_share: NonNegative | None = None
    # CPU time of an inference, the median over parts of 20 ms; only with a single thread of the CPU provider
    cpu_p50_ms: Positive | None = None
    is_disturbed: bool = False
    # how often the sample was measured again because it was disturbed
    remeasured: Count = 0
    throughput: Positive | None = None
    # the median with copies from and to the host, on devices with their own memory
    with_copies_p50_ms: Positive | None = None
    peak_memory_bytes: Count | None = None
    # how many parts the timing was split into, with the other arms of the round between them; 0: it was not split
    turns: Count = 0
    # wall-clock time of the process by phase: spawn, sandbox, import, session (ms)
    phases_ms: dict[str, NonNegative] = Field(default_factory=dict)
    metrics: Metrics = Field(default_factory=dict)
    # figures of the parts of the launch, in scenarios with parts
    phases: Annotated[tuple[Phase, ...], Field(max_length=128, exclude_if=lambda phases: not phases)] = ()
    # the tokens that a launch generated; all of its generations have the same, unless the report says otherwise
    tokens: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=1 << 31)], ...],
        Field(max_length=4096, exclude_if=lambda tokens: not tokens),
    ] = ()
    # by how much the score of each of these tokens exceeded the second best, and scores along a given text
    gaps: Annotated[tuple[NonNegative, ...], Field(max_length=4096, exclude_if=lambda gaps: not gaps)] = ()
    forced: Annotated[ForcedScores | None, Field(exclude_if=lambda forced: forced is None)] = None
    # µs of an inference, traced after the windows: the median of each own node that the arm's first trace names, in
    # the order of their names; sent where the order asks for it alone
    nodes_us: NodeTimes = ()


class ArmSample(Message):
    """An arm's place in a round: a sample, or the reason why there is none."""

    arm: Count
    position: Count
    sample: Sample | None = None
    reason: Reason | None = None


class RoundReport(Message):
    """One pass over a block's arms in random order."""

    kind: Literal["round"] = "round"
    round: Count
    samples: tuple[ArmSample, ...]
    # another round would not fit into the time that was promised for the block
    is_last: bool = False


class FactsReport(Message):
    """Facts of the node, read just before the block."""

    kind: Literal["facts"] = "facts"
    facts: Facts


class EndReport(Message):
    """The last report of an attempt. `reason` is set where the node could not measure the block at all."""

    kind: Literal["end"] = "end"
    reason: Reason | None = None
    wall_s: NonNegative = 0.0
    # median seconds between the end of one sample and the launch of the next runner
    gap_s: NonNegative | None = None


Report = Annotated[
    CheckReport
    | EnginesReport
    | TraceReport
    | AccuracyReport
    | RoundReport
    | CurveReport
    | DivergenceReport
    | FactsReport
    | EndReport,
    Field(discriminator="kind"),
]


class Reply(Message):
    """The farm's answer to a report.

    `go_on`: measure another round (or, after rounds, nothing more). `trace_arms`: arms to trace again, interleaved,
    `trace_rounds` times, once the rounds are over; those that matter most come first.
    """

    go_on: bool = True
    trace_arms: tuple[int, ...] = ()
    trace_rounds: Count = 0
