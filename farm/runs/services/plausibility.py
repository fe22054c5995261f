"""Checks whether a report can be true, because a node may be broken or lie. All checks raise Unprocessable."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from farm.base.refusals import Unprocessable
from farm.contract.divergence import DivergenceReport
from farm.contract.reports import (
    AccuracyReport,
    ArmSample,
    CheckReport,
    EndReport,
    EnginesReport,
    FactsReport,
    Report,
    RoundReport,
    Sample,
    TraceReport,
)
from farm.contract.sustained import CurveReport
from farm.registry.models import EvaluationData
from farm.rules.cells import scenarios
from farm.rules.generation import forced
from farm.rules.judging.block_verdicts import MORE_TRACES
from farm.rules.judging.summaries import TimingsProblem, unpack_timings
from farm.rules.planning.plans import PlannedBlock
from farm.rules.quality import evaluation

# tolerance for the float arithmetic of another machine
RELATIVE = 1e-6
# the clocks of two machines may run at rates this different, and the reply to a claim takes a moment to arrive
CLOCK_RATE = 1.02
GRACE_S = 1.0
# trace round 0 comes first; a reply to a round may ask for the others
MAX_TRACE_ROUND = MORE_TRACES
MAX_OPERATORS = 100_000


def check_was_ordered(report: Report, *, is_continued: bool, has_questions: bool) -> None:
    """Check that the order asked for a report of this kind.

    `is_continued` means that the order continues a block for more rounds, and `has_questions` that it only asks where
    outputs differ. Raises Unprocessable for a report that the order did not ask for.
    """
    if has_questions:
        was_ordered = isinstance(report, (FactsReport, DivergenceReport, EndReport))
    elif is_continued:
        # labelled data and curves belong to the first rounds
        was_ordered = not isinstance(report, (AccuracyReport, CurveReport, DivergenceReport))
    else:
        was_ordered = not isinstance(report, DivergenceReport)
    if not was_ordered:
        raise _make_refusal(f"a {report.kind} report came and was not asked for")


def check_report(
    report: Report, *, block: PlannedBlock, next_round: int, max_rounds: int, first_round: int = 0
) -> float:
    """Check the arms, rounds, samples and figures of a report; return the seconds of inference that it timed.

    A round may be repeated: rounds from `first_round` to `next_round` are accepted, always below `max_rounds`. Raises
    Unprocessable for a report that cannot be true. Only reports of rounds and curves time inference; others return 0.
    """
    match report:
        case CheckReport():
            _check_arm(report.arm, block)
        case EnginesReport():
            _check_engines(report, block)
        case DivergenceReport():
            _check_arm(max(report.arm, report.against or 0), block)
        case TraceReport():
            _check_trace(report, block)
        case AccuracyReport():
            _check_samples(report, block)
        case RoundReport():
            return _check_round(report, block=block, due_rounds=range(first_round, min(next_round + 1, max_rounds)))
        case CurveReport():
            return _check_curve(report, block)
        case _:
            pass
    return 0.0


def check_wall_clock(timed_s: float, *, wall_s: float | None) -> None:
    """Check that no more seconds of inference were timed than the `wall_s` that have passed since the claim.

    Nothing is checked if `wall_s` is None, which means unknown. Raises Unprocessable if more were timed.
    """
    if wall_s is not None and timed_s > wall_s * CLOCK_RATE + GRACE_S:
        raise _make_refusal(f"{timed_s:.1f} s of inference were reported {wall_s:.1f} s after the claim")


def check_accuracy(report: AccuracyReport, labelled: EvaluationData | None) -> None:
    """Check that an accuracy belongs to the samples and recipe of the version's labelled data.

    Any accuracy is refused if `labelled` is None or if a judge file computed it. Nothing is compared if the data were
    replaced after the node got its order. Raises Unprocessable.
    """
    if labelled is None:
        raise _make_refusal("an accuracy was reported and the version has no labelled data")
    if report.judge is not None:
        raise _make_refusal(f"{report.judge.file} judged, which the farm has not")
    if report.data_sha256 is not None and labelled.data is not None and report.data_sha256 != labelled.data.sha256:
        # the data were replaced while the block was measured, and the node used those of its lease
        return
    if report.recipe != labelled.recipe:
        raise _make_refusal(f"{report.recipe.metric} was reported and {labelled.recipe.metric} was asked for")
    if report.reason is None and report.n != labelled.samples:
        raise _make_refusal(f"{report.n} samples were judged and the labelled data hold {labelled.samples}")


def _check_arm(arm: int, block: PlannedBlock) -> None:
    if arm >= len(block.arms):
        raise _make_refusal(f"the report is about arm {arm} and the block has {len(block.arms)} arms")


def _check_engines(report: EnginesReport, block: PlannedBlock) -> None:
    for pair in report.pairs:
        _check_arm(max(pair.one, pair.other), block)
    if len({(pair.one, pair.other) for pair in report.pairs if pair.one < pair.other}) != len(report.pairs):
        raise _make_refusal("the pairs of engines are not each two arms, once")


def _check_trace(report: TraceReport, block: PlannedBlock) -> None:
    _check_arm(report.arm, block)
    if report.trace_round > MAX_TRACE_ROUND:
        raise _make_refusal(f"trace round {report.trace_round} was never asked for")
    if len(report.operators) > MAX_OPERATORS:
        raise _make_refusal(f"the trace has {len(report.operators)} operators")
    if report.prompt is not None and not scenarios.of_cell(block.arms[report.arm].spec).takes_prompts:
        raise _make_refusal(f"arm {report.arm} has the trace of a prompt, which its scenario has none of")
    if report.prompt is not None and len(report.prompt.operators) > MAX_OPERATORS:
        raise _make_refusal(f"the trace of the prompt has {len(report.prompt.operators)} operators")
    shares = sum(share.time_share for share in report.providers)
    if shares > 1.001:
        raise _make_refusal(f"the providers' time shares add up to {shares:.3f}")


def _check_samples(report: AccuracyReport, block: PlannedBlock) -> None:
    _check_arm(report.arm, block)
    if report.measured_arm is not None:
        _check_arm(report.measured_arm, block)
    if report.reason is None:
        try:
            evaluation.unpack_samples(report)
        except evaluation.SamplesProblem as problem:
            raise _make_refusal(str(problem).rstrip(".")) from problem


def _check_curve(report: CurveReport, block: PlannedBlock) -> float:
    _check_arm(report.arm, block)
    if report.points and not block.sustained_s:
        raise _make_refusal("the block has a curve and none was asked for")
    starts = [point.at_s for point in report.points]
    if starts != sorted(set(starts)):
        raise _make_refusal("the points of a curve do not follow each other")
    return sum(point.span_s for point in report.points)


def _check_round(report: RoundReport, *, block: PlannedBlock, due_rounds: range) -> float:
    if report.round < due_rounds.start:
        raise _make_refusal(f"round {report.round} came and the order begins with round {due_rounds.start}")
    if report.round >= due_rounds.stop:
        raise _make_refusal(f"round {report.round} came when at most {due_rounds.stop - 1} was due")
    arms = [place.arm for place in report.samples]
    if len(set(arms)) != len(arms):
        raise _make_refusal(f"round {report.round} has an arm twice")
    return sum(_check_arm_sample(place, block) for place in report.samples)


def _check_arm_sample(place: ArmSample, block: PlannedBlock) -> float:
    """Check the sample of an arm, and return the seconds of inference that it timed."""
    _check_arm(place.arm, block)
    if place.sample is None:
        return 0.0
    if place.sample.nodes_us and not block.is_tracing_rounds:
        raise _make_refusal(f"arm {place.arm} has times of nodes, which were not asked for")
    spec = block.arms[place.arm].spec
    if place.sample.phases and scenarios.is_plain(spec):
        raise _make_refusal(f"arm {place.arm} has phases, which its scenario has none of")
    if len(place.sample.tokens) != scenarios.of_cell(spec).new_tokens:
        raise _make_refusal(f"arm {place.arm} has {len(place.sample.tokens)} tokens, not those of its scenario")
    problem = next(chain(_list_problems(place.sample), _list_problems_of_generation(place.sample)), None)
    if problem is not None:
        raise _make_refusal(f"arm {place.arm}: {problem}")
    if scenarios.of_cell(spec).is_open:
        # the latencies of waiting requests overlap, so their sum would exceed the time that passed
        return place.sample.n / place.sample.throughput if place.sample.throughput else 0.0
    return place.sample.mean_ms * place.sample.n / 1000.0 / spec.workload.concurrency


def _list_problems_of_generation(sample: Sample) -> Iterator[str]:
    if sample.gaps and len(sample.gaps) != len(sample.tokens):
        yield f"{len(sample.gaps)} gaps between scores are not those of {len(sample.tokens)} tokens"
    if sample.forced is not None and not sample.tokens:
        yield "scores of a given text were not asked for"
    elif sample.forced is not None:
        try:
            forced.unpack_scores(sample.forced)
        except forced.ScoresProblem as problem:
            yield str(problem)


def _list_problems(sample: Sample) -> Iterator[str]:
    low, high = sample.min_ms * (1 - RELATIVE), sample.max_ms * (1 + RELATIVE)
    if not low <= sample.p50_ms <= high or not low <= sample.mean_ms <= high:
        yield f"p50 {sample.p50_ms} ms and mean {sample.mean_ms} ms are not between min and max"
    try:
        timings = unpack_timings(sample)
    except TimingsProblem as problem:
        yield str(problem).rstrip(".")
        return
    if timings.min() <= 0 or timings.min() < low or timings.max() > high:
        yield "raw timings lie outside min and max"
    if not _agree(sample, timings):
        yield f"p50 {sample.p50_ms} ms is not that of its raw timings, {float(np.median(timings))} ms"
    p99 = float(np.percentile(timings, 99))
    if len(timings) == sample.n and sample.p50_ms > p99 * (1 + RELATIVE):
        yield f"p50 {sample.p50_ms} ms is above p99 {p99} ms"


def _agree(sample: Sample, timings: NDArray[np.float64]) -> bool:
    """Say whether p50 and mean are those of the timings; a thinned list need only have the p50 within its range."""
    if len(timings) < sample.n:
        return bool(timings.min() * (1 - RELATIVE) <= sample.p50_ms <= timings.max() * (1 + RELATIVE))
    median, mean = float(np.median(timings)), float(np.mean(timings))
    return abs(sample.p50_ms - median) <= RELATIVE * median and abs(sample.mean_ms - mean) <= RELATIVE * mean


def _make_refusal(reason: str) -> Unprocessable:
    return Unprocessable(f"The report cannot be true: {reason}.", code="implausible")
