"""Describes a comparison of cells that generate by its two phases: the prompt, and the tokens after it."""

from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting.called_operators import type_times
from farm.rules.presenting.prefills import find_prefill, is_generated
from farm.rules.tracing.attribution import NAMED_SHARE, find_largest_share
from farm.rules.wording.numbers import change, explains
from farm.rules.wording.vocabulary import is_change


def describe_phases(comparison: Comparison, candidate: Cell) -> str:
    """Describe both phases: `Prefill is 15 % slower, decoding is equal. SkipLayerNormalization explains 85 % of
    prefill's 525 µs.`

    Return an empty string for cells that generate nothing, and for those without a verdict on both phases.
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
    """Explain the prefill's change: `prefill: SkipLayerNormalization: 17 nodes, 310 → 620 µs, explains 92 % of the
    337 µs`.

    Return an empty string where it did not change, or nothing explains it.
    """
    prefill, largest = find_prefill(comparison), find_largest_share(comparison.prompt_operators)
    if prefill is None or not is_change(prefill.verdict) or largest is None or largest.share is None:
        return ""
    return f"prefill: {largest.op_type}: {type_times(largest)}, {explains(largest.moved_us, largest.share)}"


def _describe_change(verdict: str, ratio: float | None, low: float | None, high: float | None) -> str:
    if not is_change(verdict) or ratio is None or low is None or high is None:
        return verdict
    return change(ratio, low, high)
