"""Explains a comparison operator by operator, from traces of its rounds, or else from those made afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reports import TraceReport
from farm.rules.judging.block_verdicts import EXPLAINED_AXES, BlockJudge, Judged
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import ROUNDS
from farm.rules.presenting.called_operators import find_latency_change, find_timed_us
from farm.rules.presenting.outside_graph import MAX_SHARE
from farm.rules.presenting.prefills import find_prefill
from farm.rules.tracing.attribution import Attribution, NodeChange, attribute
from farm.rules.tracing.executions import MIN_TRACES
from farm.rules.tracing.round_times import Traced, attribute_rounds
from farm.rules.wording.vocabulary import is_change

# a larger batch makes every operator slower, which is no finding
JUDGED_AXES = EXPLAINED_AXES | {TWIN}
# of each comparison, those with a change of their own first, then those with the largest change
MAX_OPERATORS = 64
_SHARED = ("node", "op_type", "baseline_us", "candidate_us", "change_low_us", "change_high_us", "share")


def with_operators(
    comparison: doc_comparisons.Comparison, judge: BlockJudge, judged: Judged
) -> doc_comparisons.Comparison:
    """Return the comparison with its operators, and what part each has in the change of its time and of its prompt's.

    The verdicts on both are in its metrics.
    """
    own, prompt = explain(judge, judged), _explain_prompt(judge, judged)
    update = {
        "traces": own.traces,
        "operators": make_operator_changes(_share_out(own.nodes, find_latency_change(comparison))),
        "prompt_operators": make_operator_changes(_share_out(prompt.nodes, find_prefill(comparison))),
    }
    return comparison.model_copy(update=update)


def explain(judge: BlockJudge, judged: Judged) -> Attribution:
    """Attribute the change of a comparison to operators. Shares are of what was traced.

    The rounds that traced both arms are used where there are enough of them, and otherwise the traces that both arms
    have of the same trace round.
    """
    old = judge.evidence.traces_of(judged.planned.baseline)
    new = judge.evidence.traces_of(judged.planned.candidate)
    rounds = judge.traced_rounds(judged.planned)
    if len(rounds) < MIN_TRACES:
        return _attribute_shared(old, new)
    return attribute_rounds(
        Traced(old[0], [times for times, _ in rounds]),
        Traced(new[0], [times for _, times in rounds]),
        margin=judge.block.margin,
        per_pair=ROUNDS[judge.block.budget].per_pair,
        is_judged=judged.verdict != "not comparable" and judged.planned.axis in JUDGED_AXES,
    )


def _share_out(nodes: Sequence[NodeChange], whole: doc_comparisons.MetricChange | None) -> Sequence[NodeChange]:
    """Return the nodes with their shares of the change that was timed, not of what was traced.

    No node has one where nothing changed, or where all of them together changed the other way, or by too much.
    """
    timed_us = find_timed_us(whole)
    traced_us = sum(node.moved_us for node in nodes)
    is_part = timed_us and 0.0 < traced_us / timed_us <= MAX_SHARE
    return [
        replace(node, share=node.moved_us / timed_us if is_part and node.share is not None else None) for node in nodes
    ]


def _explain_prompt(judge: BlockJudge, judged: Judged) -> Attribution:
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
