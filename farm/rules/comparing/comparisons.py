"""The result of comparing two arms: the verdict on their ratio with its figures, and the sentence that states them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.contract.verdicts import Verdict
from farm.rules.comparing import look_levels
from farm.rules.wording.numbers import percent
from farm.rules.wording.vocabulary import is_change

# Changes up to this fraction do not matter; a node's own A/A history may give another margin.
MARGIN = 0.02
# The largest share of A/A comparisons that may be called slower or faster, over all looks and tests of a rule.
TOTAL_LEVEL = 0.01
INTERVAL_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on new / old. Ratio and interval are factors; margin and smallest_detectable are fractions.

    `p` is that of `test` after `rounds_used` rounds. `p_total` corrects it for the other looks and tests: it is 1 %
    where a comparison is just significant. `ci_level` is lower than 95 % where so few rounds allow no such interval.
    `rounds_needed` is the number of rounds that decided, or that are expected to decide; None when no number within the
    maximum will. `set_aside` counts those of the rounds used that do not count, because one of their launches was slow.
    `reason` says in sentences why there is no verdict; it is empty when the figures say enough.
    """

    verdict: Verdict
    ratio: float
    ci_low: float
    ci_high: float
    ci_level: float
    rounds_used: int
    p: float
    margin: float
    smallest_detectable: float
    rounds_needed: int | None
    test: str
    p_total: float
    set_aside: int = 0
    reason: str = ""


def mark_not_comparable(comparison: Comparison, *, reasons: Sequence[str]) -> Comparison:
    return replace(comparison, verdict="not comparable", rounds_needed=None, reason=" ".join(reasons))


def describe_comparison(comparison: Comparison) -> str:
    """Write the verdict with the figures that it rests on: `slower: new / old = 1.05 (…), beyond the margin of 2 %.`"""
    figures = (
        f"new / old = {comparison.ratio:.4g} ({percent(comparison.ci_level)} interval {comparison.ci_low:.4g} to "
        f"{comparison.ci_high:.4g}, {comparison.rounds_used} rounds, {comparison.test} p = {comparison.p:.2g})"
    )
    verdict = f"{comparison.verdict}: {figures}{_explain_verdict(comparison)}"
    return f"{verdict} {look_levels.describe_looks(comparison.rounds_used)}".rstrip()


def _explain_verdict(comparison: Comparison) -> str:
    margin = percent(comparison.margin)
    if comparison.verdict == "equal":
        return f", within ± {margin}."
    if is_change(comparison.verdict):
        return f", beyond the margin of {margin}."
    if comparison.reason:
        return f". {comparison.reason}"
    if comparison.rounds_used < look_levels.LOOKS[0]:
        return f". {look_levels.explain_too_few_rounds(comparison.rounds_used)}"
    wait = (
        f"about {comparison.rounds_needed} rounds in all would decide"
        if comparison.rounds_needed
        else "no number of rounds within the maximum will decide"
    )
    return f"; changes under {percent(comparison.smallest_detectable)} cannot be detected yet, {wait}."
