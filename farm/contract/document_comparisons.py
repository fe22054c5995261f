"""The comparisons of the bench document: two arms of a block, metric by metric, and what changed in which operator."""

from typing import Annotated, Literal

from pydantic import Field

from farm.contract.base import Line
from farm.contract.document_cells import Part
from farm.contract.verdicts import ItemsVerdict, MetricVerdict, Verdict

# keys that documents of before do not have
_LEFT_OUT = Field(exclude_if=lambda value: value is None)


class OperatorChange(Part):
    """`share`: part of the timed change it explains; may be negative or exceed 1. Interval over the paired traces.

    Where rounds were traced, those that could be judged have a verdict by the pair rule, and then `ratio` and what
    follows; `rounds`: those it rests on. Without a verdict these keys are left out.
    """

    node: Line  # the model's own
    covers: list[Line] = Field(default_factory=list)  # own nodes that either side executes fused
    op_type: Line  # as executed
    baseline_us: float  # median over traces
    candidate_us: float  # median over traces
    # candidate − baseline: the median over paired traces, which is not always the difference of both medians; absent
    # in documents of before
    change_us: Annotated[float | None, _LEFT_OUT] = None
    # low end of its interval over paired traces, at 90 % or more; null with fewer than 5 traces an arm
    change_low_us: float | None = None
    change_high_us: float | None = None  # its high end
    # of the timed change; may be negative or exceed 1; null: fewer than 5 traces an arm, or they contradict it
    share: float | None = None
    # candidate / baseline over paired rounds, and its 95 % interval
    ratio: Annotated[float | None, _LEFT_OUT] = None
    ci_low: Annotated[float | None, _LEFT_OUT] = None
    ci_high: Annotated[float | None, _LEFT_OUT] = None
    # over all looks and tests; Benjamini-Hochberg over the operators is applied to it
    p: Annotated[float | None, _LEFT_OUT] = None
    verdict: Annotated[Verdict | None, _LEFT_OUT] = None  # `slower`, `faster`, `equal` or `undecided`, of this operator
    # why it is undecided where the figures alone would call it, such as time that a neighbour took over
    reason: Annotated[Line | None, _LEFT_OUT] = None
    rounds: Annotated[int | None, _LEFT_OUT] = None  # rounds behind it

    @property
    def moved_us(self) -> float:
        """How much slower the operator became, in µs: `change_us`, or in older documents the difference of the medians.

        That difference is cut off at the ends of the interval, where there is one.
        """
        if self.change_us is not None:
            return self.change_us
        difference_us = self.candidate_us - self.baseline_us
        if self.change_low_us is None or self.change_high_us is None:
            return difference_us
        return min(max(difference_us, self.change_low_us), self.change_high_us)


class MetricChange(Part):
    """A metric of both arms of a comparison; the first is the headline, which the comparison's own fields are about.

    `baseline` and `candidate`: the medians of their launches, in `unit`; `ratio` and its interval: of the pairs of
    launches of `rounds`, or, where a repeat decides, of the medians, with the least and largest of a round. `margin`:
    as a fraction of the baseline, what is of no consequence. Metrics that may be zero or below have `change` with its
    interval, and the margin, in `unit`, and no ratio. `is_processor`: all of it is processor time, as latency is where
    other programs kept the machine busy.
    """

    # as in `cells[].metrics`
    name: str
    unit: str
    # medians of the launches
    baseline: float
    candidate: float
    # candidate / baseline with its 95 % interval; of memory the least and the largest of a round
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    # `slower`, `faster` (times), `bigger`, `smaller` (bytes), `higher`, `lower` (rates), `equal` or `undecided`:
    # verdicts
    verdict: MetricVerdict
    margin: float  # as a fraction what is called equal; of memory 16 MiB as a fraction of the baseline
    rounds: int  # rounds behind it
    p: Annotated[float | None, _LEFT_OUT] = None  # as of the comparison; absent where a repeat decides
    # of growth, which may be zero: candidate − baseline in `unit`, with its 95 % interval; then `margin` is in
    # `unit`, and there is no ratio
    change: Annotated[float | None, _LEFT_OUT] = None
    change_low: Annotated[float | None, _LEFT_OUT] = None
    change_high: Annotated[float | None, _LEFT_OUT] = None
    # why one that looks changed is not called so; absent where there is nothing to say
    reason: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""
    # whether all of it is processor time, as latency is where other programs kept the machine busy; absent where not
    is_processor: Annotated[bool, Field(exclude_if=lambda is_processor: not is_processor)] = False


class SlowLaunches(Part):
    """How many of `launches` of each arm took much longer than most; `p`: Fisher's exact test, two-sided."""

    baseline: int  # slow launches of the baseline
    candidate: int  # slow launches of the candidate
    launches: int  # of each arm
    p: float  # Fisher's exact test, two-sided


class Comparison(Part):
    """Two arms of one block that differ in one axis.

    `ratio` is candidate / baseline of what the verdict rests on, `verdict_from`: wall-clock p50, or processor time
    where other programs kept the machine busy. Both stand below it too, over the rounds that count. Where a load looks
    for the highest rate, it rests on that: `ratio` is of the time from one request to the next, 1 / rate.
    """

    # cell ids; the baseline has the earlier value on the axis
    baseline: str
    candidate: str
    axis: str = ""  # the axis; `twin` for an A/A pair that the farm added
    interleaved: bool = True  # measured in the same rounds
    ratio: float | None = None  # candidate / baseline (Hodges-Lehmann over rounds) of what the verdict rests on
    # its interval
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = None
    p: float | None = None  # allowing for the repeated looks
    verdict: Verdict  # `slower`, `faster`, `equal`, `undecided` or `not comparable`
    # what that is: `wall`, the p50 of wall-clock time, or `processor`, where other programs kept the machine busy
    # (samples), or `rate`, the highest rate of a load that looks for it: then `ratio` is of 1 / rate
    verdict_from: Literal["wall", "processor", "rate"] = "wall"
    # of wall-clock time, over the same rounds
    wall_ratio: float | None = None
    wall_ci_low: float | None = None
    wall_ci_high: float | None = None
    # of processor time, over the same rounds; null: more than one thread, or another provider
    cpu_ratio: float | None = None
    cpu_ci_low: float | None = None
    cpu_ci_high: float | None = None
    # of items per second, candidate / baseline: `ratio` turned round, times the batches; null: both have the same
    # batch
    items_ratio: float | None = None
    items_ci_low: float | None = None
    items_ci_high: float | None = None
    # `more`, `fewer`, `equal`, `undecided` or `not comparable`, of items per second: what pages, terminal and
    # `sentence` say of different batches, where `verdict` is about the latency of the whole batch
    items_verdict: ItemsVerdict | None = None
    reason: Line | None = None  # what stands beside or against the verdict
    rounds: int = 0  # rounds behind it
    rounds_needed: int | None = None  # of an undecided one: the rounds expected to decide; null: no number will
    # of an undecided one: the rounds that its block is still being measured up to; absent once that ended
    max_rounds: Annotated[int | None, _LEFT_OUT] = None
    rounds_set_aside: int = 0  # of `rounds`, those that do not count because a launch of theirs was slow
    # rounds of both arms that other programs disturbed: with `verdict_from: processor` they count, else they are left
    # out
    rounds_disturbed: int = 0
    # `baseline` and `candidate`: slow launches of each arm among `launches`; `p`: Fisher's exact test, two-sided
    slow_launches: SlowLaunches | None = None
    margin: float  # changes within ± margin are `equal`
    # the smallest change that so many rounds see; null while fewer than two count
    smallest_detectable: float | None = None
    noise: float | None = None  # how much identical launches differ: standard deviation of ln(new / old) over rounds
    # `node`: its A/A history; `block`: this block's own A/A pair; `assumed`: there is neither
    noise_from: Literal["node", "block", "assumed"] | None = None
    traces: int = 0  # traces of each arm behind `operators`: rounds, where those were traced
    operators: list[OperatorChange] = Field(default_factory=list)  # below; at most 64, the largest change first
    # as `operators`, of the prompt of cells that generate, whose `operators` are of a token; absent elsewhere
    prompt_operators: list[OperatorChange] = Field(default_factory=list, exclude_if=lambda changes: not changes)
    # verdicts on further metrics, the headline first; absent where there are none
    metrics: list[MetricChange] = Field(default_factory=list, exclude_if=lambda metrics: not metrics)
