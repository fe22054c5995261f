"""Reports a cell that generates: its times in a sentence, its tokens, and how these compare with other cells'."""

from dataclasses import dataclass
from typing import Final

from farm.contract import document_cells as doc_cells
from farm.contract.reports import Sample, TraceReport
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import DIFFERING_ROWS, OUTSIDE, OUTSIDE_CPU, PERPLEXITY, TOKENS_RATE, TPOT, TTFT
from farm.rules.generation import forced, perplexity, streams
from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import CellSummary
from farm.rules.planning.plans import Arm
from farm.rules.reporting.records import BlockRecord
from farm.rules.wording.numbers import counted, latency, plain, share

# Other programs are named as the cause where a whole answer takes more than this many times the time of its prompt and
# tokens.
MAX_SLOWDOWN = 1.5
# Time that is spent neither on the prompt nor on tokens is mentioned where it exceeds this share.
MIN_NAMED_SHARE = 0.02

# How far the scores of the same text may be apart in two runtimes, by precision. Precisions that are not listed round
# more, so that the widest tolerance holds for them.
_TOLERANCES: Final = {"fp32": 1e-4, "fp16": 5e-3}
_WIDEST_TOLERANCE: Final = 2e-2
_FUSED_ATTENTION: Final = "Attention"


@dataclass(frozen=True)
class Generated:
    """The tokens of a cell, and a text about how they compare with those of other launches and cells.

    `is_wrong` says that the tokens, or the scores of the same text, should be the same and are not.
    """

    tokens: tuple[int, ...] = ()
    text: str = ""
    is_wrong: bool = False


def compare_tokens(arm: Arm, block: BlockRecord, evidence: Evidence) -> Generated:
    """Compare the tokens of an arm's first launch with its other launches, and then with the first arm that has tokens.

    Arms are compared only where the launches agree; launches that do not are wrong. The text about the first arm itself
    is its perplexity, if any. Other tokens or scores from a model of another recipe, such as another precision, are not
    wrong. The result is empty for an arm without tokens.
    """
    launches = [sample for sample in evidence.samples(arm.arm) if sample.tokens]
    if not launches:
        return Generated()
    first = launches[0]
    if difference := streams.describe_launch_difference([sample.tokens for sample in launches]):
        return Generated(first.tokens, difference, is_wrong=True)
    baseline = next(
        (other for other in block.block.arms if any(sample.tokens for sample in evidence.samples(other.arm))), arm
    )
    if baseline.arm == arm.arm:
        value = first.metrics.get(PERPLEXITY)
        text = "" if value is None else perplexity.describe_perplexity(value, baseline_name=arm.id)
        return Generated(first.tokens, text)
    other = next(sample for sample in evidence.samples(baseline.arm) if sample.tokens)
    return _compare_launches(first, other, arm=arm, baseline=baseline)


def _compare_launches(sample: Sample, other: Sample, *, arm: Arm, baseline: Arm) -> Generated:
    """Compare the tokens, then the scores of the same text.

    Where tokens are sampled at random and the scores agree, different tokens are not wrong.
    """
    is_same_recipe = baseline.spec.recipe == arm.spec.recipe
    scored = None
    if sample.forced is not None and other.forced is not None:
        tolerance = _TOLERANCES.get(arm.spec.recipe.precision, _WIDEST_TOLERANCE)
        scored = forced.compare_scores(sample.forced, other.forced, tolerance=tolerance)
    is_drawn, is_different = scenarios.of_cell(arm.spec).draws_tokens, sample.tokens != other.tokens
    gaps = () if is_drawn else other.gaps
    sentences = [streams.describe_difference(sample.tokens, other.tokens, baseline_name=baseline.id, gaps=gaps)]
    differs_by_draw = is_drawn and is_different and scored is not None and scored.is_within_tolerance
    if scored is not None:
        sentences.append(scored.sentence(baseline=baseline.id))
    if (value := sample.metrics.get(PERPLEXITY)) is not None:
        baseline_value = other.metrics.get(PERPLEXITY)
        sentences.append(perplexity.describe_perplexity(value, baseline_value, baseline_name=baseline.id))
    if differs_by_draw:
        sentences.append("It is different by its sampler, not by its model.")
    is_other_model = (is_different and not differs_by_draw) or (scored is not None and not scored.is_within_tolerance)
    if is_other_model and not is_same_recipe:
        sentences.append(f"{arm.spec.recipe.precision} may choose otherwise: that fails nothing.")
    return Generated(sample.tokens, " ".join(sentences), is_wrong=is_same_recipe and is_other_model)


def fail_on_tokens(parity: doc_cells.Parity, generated: Generated, summary: CellSummary | None) -> doc_cells.Parity:
    """Return the parity as failed where tokens differ that should not; otherwise unchanged.

    The parity also fails where rows of a batch chose other tokens than the same rows alone.
    """
    rows = summary.launched.get(DIFFERING_ROWS) if summary is not None else None
    wrong = [generated.text] if generated.is_wrong else []
    if rows is not None and rows.value:
        wrong.append(f"{counted(int(rows.value), 'row')} of the batch chose other tokens than alone.")
    if not wrong:
        return parity
    return parity.model_copy(update={"verdict": "fail", "text": " ".join([*wrong, parity.text]).strip()})


def describe_tokens(
    summary: CellSummary | None, generated: Generated, trace: TraceReport | None = None, *, batch: int
) -> str:
    """Describe in sentences the time of the first and the next tokens, how the tokens compare, and what the trace
    shows.

    Return an empty string for a cell without tokens or without their times.
    """
    launched = summary.launched if summary is not None else {}
    if not generated.tokens or any(name not in launched for name in (TTFT, TPOT, TOKENS_RATE)):
        return ""
    ttft, tpot, rate = (launched[name].value for name in (TTFT, TPOT, TOKENS_RATE))
    # Where a launch reports the processor time of choosing, the time of a token includes choosing it.
    choosing_ms = launched[OUTSIDE].value if OUTSIDE in launched and OUTSIDE_CPU not in launched else 0.0
    choosing = f" and {latency(choosing_ms)} to choose it" if choosing_ms > MIN_NAMED_SHARE * tpot else ""
    times = f"The first token after {latency(ttft)}, then {latency(tpot)} a token{choosing}"
    count = len(generated.tokens)
    answer_ms = ttft + (count - 1) * (tpot + choosing_ms)
    share_between_calls = 1.0 - answer_ms * rate / (1000.0 * batch * count)
    note = ""
    if share_between_calls > 1.0 - 1.0 / MAX_SLOWDOWN:
        note = " by the clock: other programs took the processor between tokens"
    elif share_between_calls > MIN_NAMED_SHARE:
        note = f", {share(share_between_calls)} of the time between the calls"
    sentences = (
        f"{times}; {plain(rate)} tokens/s over whole answers{note}.",
        generated.text,
        *(_describe_trace(trace) if trace is not None else ()),
    )
    return " ".join(filter(None, sentences))


def _describe_trace(trace: TraceReport) -> list[str]:
    """Say how many fused attention nodes a token runs through, and what share of its time copies of the cache take."""
    if trace.reason is not None or trace.prompt is None:
        return []
    names = [operator.op_type for operator in trace.operators if operator.op_type.endswith(_FUSED_ATTENTION)]
    kinds = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    sentences = [f"Fused attention: {kinds}." if kinds else "No attention is fused."]
    token_us = sum(operator.time_us for operator in trace.operators)
    copying_us = sum(
        operator.time_us
        for operator in trace.operators
        if operator.node in trace.cache_copies and operator.op_type == "Concat"
    )
    if trace.cache_copies and token_us > 0:
        nodes = counted(len(trace.cache_copies), "Concat node")
        sentences.append(f"Copies of the cache by {nodes} take {share(copying_us / token_us)} of a token's time.")
    return sentences
