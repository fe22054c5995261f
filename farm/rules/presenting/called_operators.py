"""Operators of a comparison that have a verdict of their own, and what is said of them. Needs no numpy."""

from collections.abc import Sequence

from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.wording import numbers
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import is_change


def called_operators(comparison: Comparison) -> list[OperatorChange]:
    """Those that became slower or faster, the largest change in µs first."""
    called = [one for one in comparison.operators if is_change(one.verdict)]
    return sorted(called, key=lambda one: -abs(one.candidate_us - one.baseline_us))


def operator_size(one: OperatorChange) -> str:
    """`10 % slower (8–12 %)`: how much an operator changed, and the interval; empty without a verdict."""
    if one.ratio is None or one.ci_low is None or one.ci_high is None:
        return ""
    interval = numbers.change_interval(one.ci_low, one.ci_high, ratio=one.ratio)
    return f"{numbers.change(one.ratio, one.ci_low, one.ci_high)} ({interval})"


def operator_times(one: OperatorChange) -> str:
    """`37 → 88 µs`: medians of the rounds that were traced; empty where they are apart otherwise than the pairs."""
    if one.ci_low is None or one.ci_high is None:
        return f"{numbers.plain(one.baseline_us)} → {numbers.plain(one.candidate_us)} µs"
    sides = numbers.pair(one.baseline_us, one.candidate_us, low=one.ci_low, high=one.ci_high)
    return f"{sides[0]} → {sides[1]} µs" if sides else ""


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
