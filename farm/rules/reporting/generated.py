"""What is reported of a cell that generates: its times in a sentence, its tokens, and how they compare. Pure."""

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

# a rate by the clock that is so many times lower than its own times make it is told as one of a busy machine
SLOWED = 1.5
# a part of the time that a reader who adds up would miss
NAMED = 0.02

# of scores of the same text by the same numbers in two runtimes; any other precision rounds more
_TOLERANCES: Final = {"fp32": 1e-4, "fp16": 5e-3}
_WIDEST: Final = 2e-2
_FUSED: Final = "Attention"


@dataclass(frozen=True)
class Generated:
    """The tokens of a cell.

    `text` says how they compare with other launches and cells. `is_other`: they, or what was scored, should be the
    same, and are not.
    """

    tokens: tuple[int, ...] = ()
    text: str = ""
    is_other: bool = False


def compare_tokens(arm: Arm, block: BlockRecord, evidence: Evidence) -> Generated:
    """Compare the tokens of an arm's first launch with its other launches and with the block's first arm.

    A model of another precision may choose other tokens: the text says so, and it is no failure.
    """
    launches = [sample for sample in evidence.samples(arm.arm) if sample.tokens]
    if not launches:
        return Generated()
    first = launches[0]
    if apart := streams.launch_difference([sample.tokens for sample in launches]):
        return Generated(first.tokens, apart, is_other=True)
    baseline = next((other for other in block.block.arms if any(s.tokens for s in evidence.samples(other.arm))), arm)
    if baseline.arm == arm.arm:
        own = first.metrics.get(PERPLEXITY)
        return Generated(first.tokens, "" if own is None else perplexity.describe_perplexity(own, None, named=arm.id))
    against = next(sample for sample in evidence.samples(baseline.arm) if sample.tokens)
    return _compare_generated(first, against, arm=arm, baseline=baseline)


def _compare_generated(sample: Sample, other: Sample, *, arm: Arm, baseline: Arm) -> Generated:
    """Compare the tokens, then the scores of the same text: where the scores agree, drawn tokens differ only by their
    sampler."""
    is_alike = baseline.spec.recipe == arm.spec.recipe
    scored = None
    if sample.forced is not None and other.forced is not None:
        tolerance = _TOLERANCES.get(arm.spec.recipe.precision, _WIDEST)
        scored = forced.compare_scores(sample.forced, other.forced, tolerance=tolerance)
    is_drawn, is_other = scenarios.of_cell(arm.spec).draws_tokens, sample.tokens != other.tokens
    sentences = [
        streams.difference_sentence(sample.tokens, other.tokens, named=baseline.id, gaps=() if is_drawn else other.gaps)
    ]
    is_only_drawn = is_drawn and is_other and scored is not None and scored.is_same
    if scored is not None:
        sentences.append(scored.sentence(named=baseline.id))
    if (own := sample.metrics.get(PERPLEXITY)) is not None:
        sentences.append(perplexity.describe_perplexity(own, other.metrics.get(PERPLEXITY), named=baseline.id))
    if is_only_drawn:
        sentences.append("It is different by its sampler, not by its model.")
    is_wrong = (is_other and not is_only_drawn) or (scored is not None and not scored.is_same)
    if is_wrong and not is_alike:
        sentences.append(f"{arm.spec.recipe.precision} may choose otherwise: that fails nothing.")
    return Generated(sample.tokens, " ".join(sentences), is_other=is_alike and is_wrong)


def fail_on_tokens(parity: doc_cells.Parity, found: Generated, summary: CellSummary | None) -> doc_cells.Parity:
    """Return the parity as failed where tokens differ that should not, or rows of a batch differ from the same rows
    alone."""
    rows = summary.launched.get(DIFFERING_ROWS) if summary is not None else None
    wrong = [found.text] if found.is_other else []
    if rows is not None and rows.value:
        wrong.append(f"{counted(int(rows.value), 'row')} of the batch chose other tokens than alone.")
    if not wrong:
        return parity
    return parity.model_copy(update={"verdict": "fail", "text": " ".join([*wrong, parity.text]).strip()})


def describe(summary: CellSummary | None, found: Generated, trace: TraceReport | None = None, *, batch: int) -> str:
    """Describe in sentences the time of the first and the next tokens, how the tokens compare, and what the trace
    shows.

    Return an empty string for a cell that generates nothing.
    """
    launched = summary.launched if summary is not None else {}
    if not found.tokens or any(name not in launched for name in (TTFT, TPOT, TOKENS_RATE)):
        return ""
    ttft, tpot, rate = (launched[name].value for name in (TTFT, TPOT, TOKENS_RATE))
    # of genai the time of a token is of choosing it too
    choosing = launched[OUTSIDE].value if OUTSIDE in launched and OUTSIDE_CPU not in launched else 0.0
    chosen = f" and {latency(choosing)} to choose it" if choosing > NAMED * tpot else ""
    times = f"The first token after {latency(ttft)}, then {latency(tpot)} a token{chosen}"
    told_ms = ttft + (len(found.tokens) - 1) * (tpot + choosing)
    between = 1.0 - told_ms * rate / (1000.0 * batch * len(found.tokens))
    why = f", {share(between)} of the time between the calls" if between > NAMED else ""
    if between > 1.0 - 1.0 / SLOWED:
        why = " by the clock: other programs took the processor between tokens"
    sentences = (
        f"{times}; {plain(rate)} tokens/s over whole answers{why}.",
        found.text,
        *(_traced(trace) if trace is not None else ()),
    )
    return " ".join(text for text in sentences if text)


def _traced(trace: TraceReport) -> list[str]:
    """Say how many fused attentions a token runs through, and what share of its time copies of the cache take."""
    if trace.reason is not None or trace.prompt is None:
        return []
    names = [operator.op_type for operator in trace.operators if operator.op_type.endswith(_FUSED)]
    kinds = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    sentences = [f"Fused attention: {kinds}." if kinds else "No attention is fused."]
    whole = sum(operator.time_us for operator in trace.operators)
    copying = sum(
        operator.time_us
        for operator in trace.operators
        if operator.node in trace.cache_copies and operator.op_type == "Concat"
    )
    if trace.cache_copies and whole > 0:
        nodes = counted(len(trace.cache_copies), "Concat node")
        sentences.append(f"Copies of the cache by {nodes} take {share(copying / whole)} of a token's time.")
    return sentences
