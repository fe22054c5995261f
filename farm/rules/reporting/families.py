"""Corrects the verdicts of a run for their number: a change that so many would show by chance becomes undecided.
Pure."""

from collections.abc import Sequence

from farm.contract.document_comparisons import Comparison
from farm.rules.comparing import multiplicity
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import metric_changes
from farm.rules.wording.vocabulary import is_change


def correct_verdicts(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return a run's comparisons; changes that so many would show by chance become undecided (Benjamini-Hochberg).

    Headlines are corrected among themselves; further metrics among all that were tested, headlines included, so that a
    run's headline verdicts do not depend on how many other metrics its launches report. A/A twins are no hypotheses and
    keep their verdict.
    """
    tested = [comparison for comparison in comparisons if is_tested(comparison)]
    holds = multiplicity.benjamini_hochberg([comparison.p or 0.0 for comparison in tested])
    dropped = {
        id(comparison)
        for comparison, held in zip(tested, holds, strict=True)
        if not held and is_change(comparison.verdict)
    }
    held = [make_undecided(each, among=len(tested)) if id(each) in dropped else each for each in comparisons]
    return _hold_metrics(held, headlines=[comparison.p or 0.0 for comparison in tested])


def is_tested(comparison: Comparison) -> bool:
    return comparison.p is not None and comparison.verdict != "not comparable" and comparison.axis != TWIN


def make_undecided(comparison: Comparison, *, among: int) -> Comparison:
    """Return the comparison as undecided, with the reason that it may be chance among `among` comparisons."""
    reason = " ".join(text for text in (multiplicity.chance_sentence(among, "comparison"), comparison.reason) if text)
    metrics = metric_changes.replace_headline_verdict(comparison, "undecided")
    return comparison.model_copy(update={"verdict": "undecided", "reason": reason, "metrics": metrics})


def _hold_metrics(comparisons: Sequence[Comparison], *, headlines: Sequence[float]) -> list[Comparison]:
    """Correct further metrics in the same way. `headlines` are the p of the tested headlines."""
    tested = [
        (comparison, change)
        for comparison in comparisons
        if comparison.axis != TWIN
        for change in metric_changes.list_further(comparison)
        if change.p is not None
    ]
    holds = multiplicity.benjamini_hochberg([*headlines, *(change.p or 0.0 for _, change in tested)])[len(headlines) :]
    among = len(headlines) + len(tested)
    dropped = {
        id(change) for (_, change), held in zip(tested, holds, strict=True) if not held and is_change(change.verdict)
    }
    return [_without(comparison, dropped, among=among) for comparison in comparisons]


def _without(comparison: Comparison, dropped: set[int], *, among: int) -> Comparison:
    if not any(id(change) in dropped for change in comparison.metrics):
        return comparison
    why = {"verdict": "undecided", "reason": multiplicity.chance_sentence(among, "verdict")}
    metrics = [change.model_copy(update=why) if id(change) in dropped else change for change in comparison.metrics]
    return comparison.model_copy(update={"metrics": metrics})
