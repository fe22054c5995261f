"""Explains a change by what the traces of both sides show; of cells that generate, also by their two phases."""

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.cells.scenario_metrics import OUTSIDE, OUTSIDE_CPU
from farm.rules.presenting.changed_operators import (
    MAX_SHARE,
    describe_certainty,
    describe_changed_type,
    explain_trace_doubt,
    format_type_times,
    note_busy_machine,
)
from farm.rules.presenting.prefills import find_prefill, is_generated
from farm.rules.tracing.attribution import NAMED_SHARE, find_largest_share
from farm.rules.wording.numbers import change, explains, latency
from farm.rules.wording.vocabulary import is_change

# Choosing a token happens outside the graph. It is named as a cause where it explains at least this share of a change.
MIN_OUTSIDE_SHARE = 0.5


def explain_change(comparison: Comparison) -> str | None:
    """Explain a change: `‹type›: k nodes, a → b µs, explains p % of the c µs`, or that it is outside the graph.

    Without shares, name the type that changed most by its operators' own verdicts, and why there are no shares.
    Where rounds were traced, say how many of these nodes changed significantly, and whether the machine was busy. Of
    cells that generate, explain decoding and prefill separately. Return None where nothing changed or explains it.
    """
    explanation = _explain_latency(comparison)
    if not comparison.prompt_operators:
        return explanation
    decoding = f"decoding: {explanation}" if explanation else ""
    return "; ".join(filter(None, (decoding, explain_prefill(comparison)))) or None


def _explain_latency(comparison: Comparison) -> str | None:
    """Explain the latency's change by the operator type with the largest share, or else by what is known without one.

    That is choosing a token, or the verdicts on single operators and the reason why there are no shares.
    """
    if not is_change(comparison.verdict):
        return None
    largest = find_largest_share(comparison.operators)
    if largest is None or largest.share is None:
        changed_type, doubt = describe_changed_type(comparison), explain_trace_doubt(comparison)
        by_pairs = "; ".join(filter(None, (changed_type, doubt if changed_type else doubt.capitalize())))
        return explain_token_choice(comparison) or by_pairs or None
    certainty = describe_certainty([node for node in comparison.operators if node.op_type == largest.op_type])
    text = f"{largest.op_type}: {format_type_times(largest)}, {explains(largest.moved_us, largest.share)}"
    notes = "; ".join(filter(None, (certainty, note_busy_machine(comparison))))
    return f"{text} ({notes})" if notes else text


def describe_cause(comparison: Comparison) -> str:
    """Say in a sentence what a change of the latency comes from; empty where nothing is known.

    The sentence names the operator type that explains most of it, if that is at least NAMED_SHARE; else choosing a
    token; else, where no shares are known, the type that changed most by its own pairs. The verdict is not looked at
    for shares: ask only about a decided change.
    """
    largest = find_largest_share(comparison.operators)
    if largest is not None and largest.share is not None and largest.share >= NAMED_SHARE:
        return f"{largest.op_type} {explains(largest.moved_us, largest.share)}."
    if outside := explain_token_choice(comparison):
        return f"It comes from {outside}."
    changed_type = "" if largest else describe_changed_type(comparison)
    return f"{changed_type}." if changed_type else ""


def find_causing_type(comparison: Comparison) -> str:
    """Return the operator type with the largest share of a change; empty where that is below NAMED_SHARE."""
    largest = find_largest_share(comparison.operators)
    return largest.op_type if largest is not None and (largest.share or 0.0) >= NAMED_SHARE else ""


def explain_token_choice(comparison: Comparison) -> str | None:
    """Explain a change by the time of choosing tokens, which happens outside the graph.

    `outside the graph: choosing a token, 12.9 ms → 1.3 ms, explains 97 % of the 12 ms`. Return None where it explains
    less than MIN_OUTSIDE_SHARE of the change or more than MAX_SHARE, is not known, or where no change is decided.
    """
    if not is_change(comparison.verdict):
        return None
    choosing, token = _find_choosing(comparison), comparison.metrics[0] if comparison.metrics else None
    if choosing is None or token is None or token.candidate == token.baseline:
        return None
    moved_ms = choosing.candidate - choosing.baseline
    share = moved_ms / (token.candidate - token.baseline)
    if not MIN_OUTSIDE_SHARE <= share <= MAX_SHARE:
        return None
    times = f"{latency(choosing.baseline)} → {latency(choosing.candidate)}"
    return f"outside the graph: choosing a token, {times}, {explains(moved_ms, share, unit='ms')}"


def _find_choosing(comparison: Comparison) -> MetricChange | None:
    """Return the change of the time for choosing a token; None unless its verdict is the comparison's own.

    It is also None where launches do not report the processor time of choosing.
    """
    changes = {change.name: change for change in comparison.metrics}
    if OUTSIDE_CPU not in changes:
        return None
    both = (changes.get(name) for name in (OUTSIDE_CPU, OUTSIDE))
    return next((change for change in both if change is not None and change.verdict == comparison.verdict), None)


def describe_phases(comparison: Comparison, candidate: Cell) -> str:
    """Describe the change of prefill and of decoding, and the operator type that explains most of the prefill's.

    `Prefill is 15 % slower, decoding is equal. SkipLayerNormalization explains 85 % of prefill's 525 µs.` Return an
    empty string for cells that generate nothing, and for those without a verdict on both phases.
    """
    prefill = find_prefill(comparison)
    if not is_generated(candidate) or prefill is None or comparison.verdict == "not comparable":
        return ""
    first = _describe_change(prefill.verdict, prefill.ratio, prefill.ci_low, prefill.ci_high)
    second = _describe_change(comparison.verdict, comparison.ratio, comparison.ci_low, comparison.ci_high)
    both = f"Prefill is {first}, decoding is {second}." if first != second else f"Prefill and decoding are {first}."
    largest = find_largest_share(comparison.prompt_operators) if is_change(prefill.verdict) else None
    if largest is None or largest.share is None or largest.share < NAMED_SHARE:
        return both
    explanation = explains(largest.moved_us, largest.share, whose="prefill's")
    return f"{both} {largest.op_type} {explanation}."


def explain_prefill(comparison: Comparison) -> str:
    """Explain the prefill's change by the operator type with the largest share.

    `prefill: SkipLayerNormalization: 17 nodes, 310 → 620 µs, explains 92 % of the 337 µs`. Return an empty string where
    it did not change, or nothing explains it.
    """
    prefill, largest = find_prefill(comparison), find_largest_share(comparison.prompt_operators)
    if prefill is None or not is_change(prefill.verdict) or largest is None or largest.share is None:
        return ""
    return f"prefill: {largest.op_type}: {format_type_times(largest)}, {explains(largest.moved_us, largest.share)}"


def _describe_change(verdict: str, ratio: float | None, low: float | None, high: float | None) -> str:
    if not is_change(verdict) or ratio is None or low is None or high is None:
        return verdict
    return change(ratio, low, high)
