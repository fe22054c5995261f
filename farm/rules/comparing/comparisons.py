"""A comparison: what is known about the ratio of two arms, and how to say it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.contract.verdicts import Verdict
from farm.rules.comparing import look_levels
from farm.rules.wording.numbers import percent
from farm.rules.wording.vocabulary import is_change

# Changes up to this fraction are of no consequence, until a node's own A/A history says otherwise.
MARGIN = 0.02
# The most an A/A comparison may be called slower or faster, over all looks and tests of a rule.
TOTAL_LEVEL = 0.01
INTERVAL_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is known about new / old. Ratio and interval are factors; margin and smallest_detectable are fractions.

    `p` belongs to `test` at the look of `rounds_used` rounds; `p_total` allows for the other looks and tests, and is
    1 % where a comparison is just significant. `ci_level` is the level asked for, or less where so few rounds allow no
    such interval. `rounds_needed` counts all rounds of the block: those used once decided; for an undecided one those
    expected to decide, and None when no number of rounds within the maximum will. `set_aside` of the rounds used do not
    count, because a launch of theirs was slow. `reason` is empty when the figures speak for themselves.
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


def not_comparable(comparison: Comparison, *, reasons: Sequence[str]) -> Comparison:
    return replace(comparison, verdict="not comparable", rounds_needed=None, reason=" ".join(reasons))


def sentence(comparison: Comparison) -> str:
    """The verdict in words, with the figures that it rests on."""
    figures = (
        f"new / old = {comparison.ratio:.4g} ({percent(comparison.ci_level)} interval {comparison.ci_low:.4g} to "
        f"{comparison.ci_high:.4g}, {comparison.rounds_used} rounds, {comparison.test} p = {comparison.p:.2g})"
    )
    said = [f"{comparison.verdict}: {figures}{_because(comparison)}", look_levels.sentence(comparison.rounds_used)]
    return " ".join(text for text in said if text)


def _because(comparison: Comparison) -> str:
    margin = percent(comparison.margin)
    if comparison.verdict == "equal":
        return f", within ± {margin}."
    if is_change(comparison.verdict):
        return f", beyond the margin of {margin}."
    if comparison.reason:
        return f". {comparison.reason}"
    if comparison.rounds_used < look_levels.LOOKS[0]:
        return f". {look_levels.too_few(comparison.rounds_used)}"
    wait = (
        f"about {comparison.rounds_needed} rounds in all would decide"
        if comparison.rounds_needed
        else "no number of rounds within the maximum will decide"
    )
    return f"; changes under {percent(comparison.smallest_detectable)} cannot be detected yet, {wait}."
