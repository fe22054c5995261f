"""Corrects the verdicts of a run for multiple tests: a change that may be chance among them becomes undecided."""

from collections.abc import Sequence

from farm.contract.document_comparisons import Comparison, MetricChange
from farm.rules.comparing import multiplicity
from farm.rules.planning.blocks import TWIN
from farm.rules.presenting import metric_changes
from farm.rules.wording.vocabulary import is_change


def correct_verdicts(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return a run's comparisons; changes that may be chance among so many become undecided (Benjamini-Hochberg).

    Headlines are corrected among themselves, so that they do not depend on how many other metrics launches report;
    further metrics are corrected among all that were tested, with the headlines. A/A copies are no hypotheses and keep
    their verdict.
    """
    tested = [comparison for comparison in comparisons if is_tested(comparison)]
    holds = multiplicity.benjamini_hochberg([comparison.p or 0.0 for comparison in tested])
    chance = {
        id(comparison)
        for comparison, is_held in zip(tested, holds, strict=True)
        if not is_held and is_change(comparison.verdict)
    }
    corrected = [
        make_undecided(comparison, among=len(tested)) if id(comparison) in chance else comparison
        for comparison in comparisons
    ]
    return _correct_metrics(corrected, headlines=[comparison.p or 0.0 for comparison in tested])


def is_tested(comparison: Comparison) -> bool:
    return comparison.p is not None and comparison.verdict != "not comparable" and comparison.axis != TWIN


def make_undecided(comparison: Comparison, *, among: int) -> Comparison:
    """Return the comparison as undecided, because it may be chance among so many comparisons."""
    reason = " ".join(filter(None, (multiplicity.explain_chance(among, "comparison"), comparison.reason)))
    metrics = metric_changes.replace_headline_verdict(comparison, "undecided")
    return comparison.model_copy(update={"verdict": "undecided", "reason": reason, "metrics": metrics})


def _correct_metrics(comparisons: Sequence[Comparison], *, headlines: Sequence[float]) -> list[Comparison]:
    """Correct the verdicts on further metrics. `headlines` are the p of the tested headlines."""
    tested = [
        change
        for comparison in comparisons
        if comparison.axis != TWIN
        for change in metric_changes.list_secondary_changes(comparison)
        if change.p is not None
    ]
    holds = multiplicity.benjamini_hochberg([*headlines, *(change.p or 0.0 for change in tested)])[len(headlines) :]
    among = len(headlines) + len(tested)
    chance = {
        id(change) for change, is_held in zip(tested, holds, strict=True) if not is_held and is_change(change.verdict)
    }
    undecided = {"verdict": "undecided", "reason": multiplicity.explain_chance(among, "verdict")}

    def correct(change: MetricChange) -> MetricChange:
        return change.model_copy(update=undecided) if id(change) in chance else change

    return [
        comparison.model_copy(update={"metrics": list(map(correct, comparison.metrics))}) for comparison in comparisons
    ]
