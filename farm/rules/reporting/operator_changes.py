"""Explains a comparison operator by operator, from traces of its rounds, or else from those made afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.contract import document_comparisons as doc_comparisons
from farm.contract.reports import TraceReport
from farm.rules.judging.block_verdicts import EXPLAINED_AXES, BlockJudge, Judged
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import ROUNDS
from farm.rules.presenting.changed_operators import MAX_SHARE, find_latency_change, find_timed_us
from farm.rules.presenting.prefills import find_prefill
from farm.rules.tracing.attribution import Attribution, NodeChange, attribute_traces
from farm.rules.tracing.executions import MIN_TRACES
from farm.rules.tracing.round_times import TracedArm, attribute_rounds
from farm.rules.wording.vocabulary import is_change

# Along other axes, such as the batch, every operator changes because its amount of work changes.
JUDGED_AXES = EXPLAINED_AXES | {TWIN}
# A comparison lists at most this many operators. Those with a decided change are kept first.
MAX_OPERATORS = 64
_SAME_NAMES = ("node", "op_type", "baseline_us", "candidate_us", "change_low_us", "change_high_us", "share")


def with_operators(
    comparison: doc_comparisons.Comparison, judge: BlockJudge, judged: Judged
) -> doc_comparisons.Comparison:
    """Return the comparison with its operators, each with its share of the change of an inference or of the prompt.

    The change of the inference and that of the prompt are read from the comparison's metrics.
    """
    planned, prompt_traces_of = judged.planned, judge.evidence.prompt_traces_of
    whole = attribute_change(judge, judged)
    prompt = _attribute_same_rounds(prompt_traces_of(planned.baseline), prompt_traces_of(planned.candidate))
    update = {
        "traces": whole.traces,
        "operators": make_operator_changes(_share_out(whole.nodes, find_latency_change(comparison))),
        "prompt_operators": make_operator_changes(_share_out(prompt.nodes, find_prefill(comparison))),
    }
    return comparison.model_copy(update=update)


def attribute_change(judge: BlockJudge, judged: Judged) -> Attribution:
    """Attribute the change of a comparison to operators. Shares are parts of the change that was traced.

    The rounds that traced both arms are used where there are enough of them, and otherwise the traces that both arms
    have of the same trace round.
    """
    old = judge.evidence.traces_of(judged.planned.baseline)
    new = judge.evidence.traces_of(judged.planned.candidate)
    rounds = judge.traced_rounds(judged.planned)
    if len(rounds) < MIN_TRACES:
        return _attribute_same_rounds(old, new)
    return attribute_rounds(
        TracedArm(old[0], [times for times, _ in rounds]),
        TracedArm(new[0], [times for _, times in rounds]),
        margin=judge.block.margin,
        rounds_per_pair=ROUNDS[judge.block.budget].per_pair,
        is_judged=judged.verdict != "not comparable" and judged.planned.axis in JUDGED_AXES,
    )


def _share_out(nodes: Sequence[NodeChange], timed: doc_comparisons.MetricChange | None) -> Sequence[NodeChange]:
    """Return the nodes with their shares of the change that was timed, not of what was traced.

    No node has a share where nothing changed, or all of them together changed the other way, or by too much.
    """
    timed_us = find_timed_us(timed)
    traced_us = sum(node.moved_us for node in nodes)
    can_explain = timed_us and 0.0 < traced_us / timed_us <= MAX_SHARE
    return [
        replace(node, share=node.moved_us / timed_us if can_explain and node.share is not None else None)
        for node in nodes
    ]


def _attribute_same_rounds(old: Mapping[int, TraceReport], new: Mapping[int, TraceReport]) -> Attribution:
    rounds = sorted(old.keys() & new.keys())
    return attribute_traces([old[number] for number in rounds], [new[number] for number in rounds])


def make_operator_changes(changes: Sequence[NodeChange]) -> list[doc_comparisons.OperatorChange]:
    """List at most MAX_OPERATORS changes in the form of the document, the largest first.

    Where there are more, those with a decided change are kept first.
    """
    decided_first = sorted(changes, key=lambda node: not (node.figures is not None and is_change(node.figures.verdict)))
    listed = sorted(decided_first[:MAX_OPERATORS], key=lambda node: -abs(node.moved_us))
    return [_make_operator_change(change) for change in listed]


def _make_operator_change(change: NodeChange) -> doc_comparisons.OperatorChange:
    figures = change.figures
    return doc_comparisons.OperatorChange(
        **{name: getattr(change, name) for name in _SAME_NAMES},
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
