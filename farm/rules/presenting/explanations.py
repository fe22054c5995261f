"""Explains a change of latency by what the traces of both sides show: operators, or work outside the graph."""

from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import generation_phases, outside_graph
from farm.rules.presenting.called_operators import (
    describe_certainty,
    describe_changed_type,
    describe_trace_noise,
    explain_trace_doubt,
    type_times,
)
from farm.rules.tracing.attribution import NAMED_SHARE, find_largest_share
from farm.rules.wording.numbers import explains
from farm.rules.wording.vocabulary import is_change


def explain_change(comparison: Comparison) -> str | None:
    """Explain a change: `‹type›: k nodes, a → b µs, explains p % of the c µs`, or that it is outside the graph.

    Where rounds were traced, say how many of these nodes changed significantly, and whether the machine was busy. Of
    cells that generate, explain decoding and prefill apart. Return None where nothing changed or nothing explains it.
    """
    explanation = _explain_latency(comparison)
    if not comparison.prompt_operators:
        return explanation
    decoding = f"decoding: {explanation}" if explanation else ""
    return "; ".join(filter(None, (decoding, generation_phases.explain_prefill(comparison)))) or None


def _explain_latency(comparison: Comparison) -> str | None:
    if not is_change(comparison.verdict):
        return None
    largest = find_largest_share(comparison.operators)
    if largest is None or largest.share is None:
        changed_type, doubt = describe_changed_type(comparison), explain_trace_doubt(comparison)
        by_pairs = "; ".join(filter(None, (changed_type, doubt if changed_type else doubt.capitalize())))
        return outside_graph.explain_outside(comparison) or by_pairs or None
    certainty = describe_certainty([node for node in comparison.operators if node.op_type == largest.op_type])
    text = f"{largest.op_type}: {type_times(largest)}, {explains(largest.moved_us, largest.share)}"
    notes = "; ".join(filter(None, (certainty, describe_trace_noise(comparison))))
    return f"{text} ({notes})" if notes else text


def find_cause(comparison: Comparison) -> str:
    """Return the operator type that a change comes from; empty where none explains a part worth naming."""
    largest = find_largest_share(comparison.operators)
    return largest.op_type if largest is not None and (largest.share or 0.0) >= NAMED_SHARE else ""
