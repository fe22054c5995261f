"""Explains a comparison operator by operator, from traces of its rounds, or else from those made afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reports import TraceReport
from farm.rules.judging.block_verdicts import EXPLAINED_AXES, BlockJudge, Judged
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import ROUNDS
from farm.rules.tracing.attribution import Attribution, NodeChange, attribute
from farm.rules.tracing.executions import MIN_TRACES
from farm.rules.tracing.round_times import Traced, attribute_rounds
from farm.rules.wording.vocabulary import is_change

# a larger batch makes every operator slower, which is no finding
JUDGED_AXES = EXPLAINED_AXES | {TWIN}
# of each comparison, those with a change of their own first, then those with the largest change
MAX_OPERATORS = 64
_SHARED = ("node", "op_type", "baseline_us", "candidate_us", "change_low_us", "change_high_us", "share")


def explain(judge: BlockJudge, judged: Judged) -> Attribution:
    """Attribute the change of a comparison to operators.

    The rounds that traced both arms are used where there are enough of them, and otherwise the traces that both arms
    have of the same trace round.
    """
    old = judge.evidence.traces_of(judged.planned.baseline)
    new = judge.evidence.traces_of(judged.planned.candidate)
    rounds = judge.traced_rounds(judged.planned)
    if len(rounds) < MIN_TRACES:
        return _agreeing(_attribute_shared(old, new), judged)
    return _agreeing(
        attribute_rounds(
            Traced(old[0], [times for times, _ in rounds]),
            Traced(new[0], [times for _, times in rounds]),
            margin=judge.block.margin,
            per_pair=ROUNDS[judge.block.budget].per_pair,
            is_judged=judged.verdict != "not comparable" and judged.planned.axis in JUDGED_AXES,
        ),
        judged,
    )


def _agreeing(found: Attribution, judged: Judged) -> Attribution:
    """Remove the shares where the operators together changed in the other direction than the comparison, which they
    then do not explain."""
    moved_us = sum(node.moved_us for node in found.nodes)
    if not is_change(judged.verdict) or (moved_us > 0) == (judged.verdict == "slower"):
        return found
    return replace(found, nodes=tuple(replace(node, share=None) for node in found.nodes))


def explain_prompt(judge: BlockJudge, judged: Judged) -> Attribution:
    prompts_of = judge.evidence.prompts_of
    return _attribute_shared(prompts_of(judged.planned.baseline), prompts_of(judged.planned.candidate))


def _attribute_shared(old: Mapping[int, TraceReport], new: Mapping[int, TraceReport]) -> Attribution:
    shared = sorted(old.keys() & new.keys())
    return attribute([old[number] for number in shared], [new[number] for number in shared])


def make_operator_changes(changes: Sequence[NodeChange]) -> list[doc_comparisons.OperatorChange]:
    called = sorted(changes, key=lambda node: not (node.figures is not None and is_change(node.figures.verdict)))
    return [_listed(change) for change in sorted(called[:MAX_OPERATORS], key=lambda node: -abs(node.moved_us))]


def _listed(change: NodeChange) -> doc_comparisons.OperatorChange:
    figures = change.figures
    return doc_comparisons.OperatorChange(
        **{name: getattr(change, name) for name in _SHARED},
        covers=list(change.covers),
        change_us=change.moved_us,
        ratio=figures and figures.ratio,
        ci_low=figures and figures.ci_low,
        ci_high=figures and figures.ci_high,
        p=figures and figures.p_total,
        verdict=figures and figures.verdict,
        reason=(figures and figures.reason) or None,
        rounds=figures and figures.rounds_used,
    )
