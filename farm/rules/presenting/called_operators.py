"""Operators of a comparison that have a verdict of their own, and what is said of them. Needs no numpy."""

from collections.abc import Sequence

from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.wording.numbers import change_beside, counted
from farm.rules.wording.vocabulary import is_change


def called_operators(comparison: Comparison) -> list[OperatorChange]:
    """Those that became slower or faster, the largest change in µs first."""
    called = [one for one in comparison.operators if is_change(one.verdict)]
    return sorted(called, key=lambda one: -abs(one.candidate_us - one.baseline_us))


def operator_size(one: OperatorChange) -> str:
    """`10 % (8–12 %)`: how much an operator changed, and the interval; empty without a verdict."""
    if one.verdict is None or one.ratio is None or one.ci_low is None or one.ci_high is None:
        return ""
    size, interval = change_beside(one.verdict, one.ratio, one.ci_low, one.ci_high)
    return f"{size} ({interval})"


def certainty(operators: Sequence[OperatorChange]) -> str:
    """How sure it is that operators which explain a change changed at all; empty where rounds were not traced."""
    judged = [one for one in operators if one.verdict is not None]
    if not judged:
        return ""
    called = sum(is_change(one.verdict) for one in judged)
    over = f"over {counted(max(one.rounds or 0 for one in judged), 'round')}"
    if not called:
        return f"none significant on its own {over}"
    return f"{called} of {len(operators)} significant on their own {over}"
