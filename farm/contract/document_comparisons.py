"""The comparisons of the bench document: two arms of a block, metric by metric, and what changed in which operator."""

from typing import Annotated, Literal

from pydantic import Field

from farm.contract.document_cells import Part
from farm.contract.verdicts import ItemsVerdict, MetricVerdict, Verdict

# keys that documents of before do not have
_LEFT_OUT = Field(exclude_if=lambda value: value is None)


class OperatorChange(Part):
    """`share`: part of the whole change it explains; may be negative or exceed 1. Interval over the paired traces.

    Where rounds were traced, those that could be judged have a verdict by the pair rule, and then `ratio` and what
    follows; `rounds`: those it rests on. Without a verdict these keys are left out.
    """

    node: str
    covers: list[str] = Field(default_factory=list)
    op_type: str
    baseline_us: float
    candidate_us: float
    change_low_us: float | None = None
    change_high_us: float | None = None
    share: float | None = None
    ratio: Annotated[float | None, _LEFT_OUT] = None
    ci_low: Annotated[float | None, _LEFT_OUT] = None
    ci_high: Annotated[float | None, _LEFT_OUT] = None
    p: Annotated[float | None, _LEFT_OUT] = None
    verdict: Annotated[Verdict | None, _LEFT_OUT] = None
    reason: Annotated[str | None, _LEFT_OUT] = None
    rounds: Annotated[int | None, _LEFT_OUT] = None


class MetricChange(Part):
    """A metric of both arms of a comparison; the first is the headline, which the comparison's own fields are about.

    `baseline` and `candidate`: the medians of their launches, in `unit`; `ratio` and its interval: of the pairs of
    launches of `rounds`, or, where a repeat decides, of the medians, with the least and largest of a round. `margin`:
    as a fraction of the baseline, what is of no consequence. Metrics that may be zero or below have `change` with its
    interval, and the margin, in `unit`, and no ratio. `is_processor`: all of it is processor time, as latency is where
    other programs kept the machine busy.
    """

    name: str
    unit: str
    baseline: float
    candidate: float
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: MetricVerdict
    margin: float
    rounds: int
    # absent: a repeat decides, and there is no test
    p: Annotated[float | None, _LEFT_OUT] = None
    change: Annotated[float | None, _LEFT_OUT] = None
    change_low: Annotated[float | None, _LEFT_OUT] = None
    change_high: Annotated[float | None, _LEFT_OUT] = None
    reason: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""
    is_processor: Annotated[bool, Field(exclude_if=lambda is_processor: not is_processor)] = False


class SlowLaunches(Part):
    """How many of `launches` of each arm took much longer than most; `p`: Fisher's exact test, two-sided."""

    baseline: int
    candidate: int
    launches: int
    p: float


class Comparison(Part):
    """Two arms of one block that differ in one axis.

    `ratio` is candidate / baseline of what the verdict rests on, `verdict_from`: wall-clock p50, or processor time
    where other programs kept the machine busy. Both stand below it too, over the rounds that count. Where a load looks
    for the highest rate, it rests on that: `ratio` is of the time from one request to the next, 1 / rate.
    """

    baseline: str
    candidate: str
    axis: str = ""
    interleaved: bool = True
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = None
    p: float | None = None
    verdict: Verdict
    verdict_from: Literal["wall", "processor", "rate"] = "wall"
    wall_ratio: float | None = None
    wall_ci_low: float | None = None
    wall_ci_high: float | None = None
    # null: more than one thread works, or another provider
    cpu_ratio: float | None = None
    cpu_ci_low: float | None = None
    cpu_ci_high: float | None = None
    # items per second, candidate / baseline; null: both sides have the same batch
    items_ratio: float | None = None
    items_ci_low: float | None = None
    items_ci_high: float | None = None
    items_verdict: ItemsVerdict | None = None
    reason: str | None = None
    rounds: int = 0
    rounds_needed: int | None = None
    # of `rounds`, those that do not count because a launch of theirs was slow
    rounds_set_aside: int = 0
    # rounds with both samples that other programs disturbed; they count where `verdict_from` is "processor"
    rounds_disturbed: int = 0
    slow_launches: SlowLaunches | None = None
    margin: float
    smallest_detectable: float | None = None
    # how much identical launches differ (standard deviation of ln new / old over rounds), and how that is known
    noise: float | None = None
    noise_from: Literal["node", "block", "assumed"] | None = None
    traces: int = 0
    operators: list[OperatorChange] = Field(default_factory=list)
    # the same over the prompt, where cells generate: the above is of a token behind it
    prompt_operators: list[OperatorChange] = Field(default_factory=list, exclude_if=lambda changes: not changes)
    # every metric that both arms' launches say, with its verdict, the headline first; absent where there are none
    metrics: list[MetricChange] = Field(default_factory=list, exclude_if=lambda metrics: not metrics)
