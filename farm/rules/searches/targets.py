"""The change whose release a bisection looks for, and which of the probed releases have it.

It is either a finding of some kind, as the rule of a watch judges it, or a metric that became better or worse, as the
verdicts of comparisons judge it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NotRequired, Protocol, TypedDict

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.reasons import CellStatus
from farm.rules.cells.metrics import COMPARED
from farm.rules.cells.scenario_metrics import GROWTH
from farm.rules.cells.scenarios import parse
from farm.rules.changes import watch_rounds
from farm.rules.changes.watch_rounds import Rule
from farm.rules.comparing.sides import find_comparison
from farm.rules.findings import cell_pairs, checks
from farm.rules.findings.cell_pairs import Pair
from farm.rules.findings.kinds import Key, kind_of
from farm.rules.presenting import metric_changes
from farm.rules.searches.bisection import Outcome
from farm.rules.searches.search import SearchProblem
from farm.rules.wording.vocabulary import is_change

# the name under which users ask for every metric in bytes
MEMORY = "memory"
NAMES = tuple(metric.name for metric, _ in COMPARED)
# a release has the change to look for where its own change is at least this part of it
PART = 0.5


class Step(TypedDict):
    """One probed release.

    `outcome` is `bad` if it has the change, else `good` or `skipped`; `text` describes the change or the reason.
    `ratio` is to the good release, with its 95 % interval. `minutes` is how long measuring it took, and `run` the id of
    the farm's run.
    """

    version: str
    outcome: str
    text: str
    ratio: float | None
    low: float | None
    high: float | None
    minutes: NotRequired[float]
    run: NotRequired[int]


class Target(Protocol):
    """The change to look for in one series.

    `ratio` is its size; None if that is not known. `name` is that of the kind of finding, or of the metric.
    `description` completes "the first release …"; it may be `bad` alone.
    """

    @property
    def series(self) -> str: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...

    def judge_probe(self, document: Document, *, good: Runtime, probe: Runtime) -> Step:
        """Judge whether the probed release has the change, by the document of a block with both releases."""


def make_step(probe: Runtime, outcome: Outcome, text: str, side: Comparison | MetricChange | None = None) -> Step:
    ratio, low, high = (None, None, None) if side is None else (side.ratio, side.ci_low, side.ci_high)
    return Step(version=probe.version, outcome=outcome.value, text=text, ratio=ratio, low=low, high=high)


@dataclass(frozen=True, slots=True)
class FindingTarget:
    """A finding of one kind, as the rule of a watch judges it. `low` is the lower end of the interval of `ratio`."""

    rule: Rule
    kind: Key
    series: str
    ratio: float | None = None
    low: float | None = None

    @property
    def name(self) -> str:
        return self.kind

    @property
    def description(self) -> str:
        return "bad"

    def judge_probe(self, document: Document, *, good: Runtime, probe: Runtime) -> Step:
        """Call the probe bad where the rule finds the change, good where it surely lacks it, and skipped otherwise."""
        sides = {"old": good, "new": probe}
        judgement = watch_rounds.judge(document, self.rule, **sides)
        pair = _find_pair(document, self.series, **sides)
        comparison = None if pair is None else pair.comparison
        key = (self.kind, self.series)
        findings = [finding for finding in judgement.findings if (finding.kind, finding.series) == key]
        if findings:
            return make_step(probe, Outcome.BAD, findings[0].text, comparison)
        if key in judgement.cleared or self._is_without(comparison):
            return make_step(probe, Outcome.GOOD, "", comparison)
        doubts = [*judgement.infra, *judgement.undecided]
        return make_step(probe, Outcome.SKIPPED, _explain_skip(pair, doubts), comparison)

    def _is_without(self, comparison: Comparison | None) -> bool:
        """Whether the release surely lacks the change. For changes of other metrics than the headline it is False.

        A release lacks the change if it is slower, but by less than the rule allows. It also lacks it if the comparison
        is undecided, is nearer to no change than to the target, and has an interval that ends below the target's.
        """
        if not kind_of(self.kind).is_headline or comparison is None:
            return False
        if comparison.verdict == "slower" or checks.is_surely_allowed(comparison, self.rule.allowed(self.kind)):
            return True
        if comparison.verdict != "undecided" or self.ratio is None or comparison.ci_high is None:
            return False
        middle = 1.0 + (self.ratio - 1.0) / 2.0
        is_nearer = comparison.ratio is not None and comparison.ratio < middle
        return is_nearer and comparison.ci_high < max(middle, self.low or middle)


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """The change of one metric. A release has it where its own change is at least PART of it."""

    series: str
    change: MetricChange

    @property
    def ratio(self) -> float | None:
        return self.change.ratio

    @property
    def name(self) -> str:
        return self.change.name

    @property
    def description(self) -> str:
        return f"in which {metric_changes.title(self.change)} is {self.change.verdict}"

    def judge_probe(self, document: Document, *, good: Runtime, probe: Runtime) -> Step:
        """Call the probe bad where the metric changed in the same direction by at least PART of the target's change.

        It is skipped where its change is undecided or was not measured, and good otherwise.
        """
        pair = _find_pair(document, self.series, old=good, new=probe)
        change = next(iter(_select_changes(pair, [self.change.name])), None)
        if change is None:
            return make_step(probe, Outcome.SKIPPED, _explain_skip(pair))
        if change.verdict == "undecided":
            return make_step(probe, Outcome.SKIPPED, f"{metric_changes.title(change)} is undecided", change)
        if change.verdict == self.change.verdict and _measure_size(change) >= PART * _measure_size(self.change):
            return make_step(probe, Outcome.BAD, metric_changes.describe(change), change)
        return make_step(probe, Outcome.GOOD, "", change)


def find_worst_change(document: Document, rule: Rule, *, good: Runtime, bad: Runtime) -> FindingTarget:
    """Find the worst change of the bad release.

    Raises SearchProblem if the release is not worse than the good one, or could not be measured.
    """
    judgement = watch_rounds.judge(document, rule, old=good, new=bad)
    if judgement.findings:
        finding = watch_rounds.find_worst(judgement.findings)
        comparison = find_comparison(document, finding.baseline, finding.candidate)
        size = (comparison.ratio, comparison.ci_low) if comparison is not None else (None, None)
        return FindingTarget(rule, finding.kind, finding.series, *size)
    if judgement.infra:
        raise SearchProblem(f"The model could not be measured: {judgement.infra[0]}", is_infra=True)
    reasons = [*judgement.undecided, *judgement.news]
    because = f" {reasons[0]}" if reasons else ""
    raise SearchProblem(
        f"{bad.version} was given as bad, but here it is not worse than {good.version}, beyond what --threshold "
        f"allows.{because}"
    )


def find_largest_change(document: Document, names: Sequence[str], *, good: Runtime, bad: Runtime) -> MetricTarget:
    """Find the largest decided change of these metrics; any loss comes before all gains.

    Raises SearchProblem if none of them has a decided change.
    """
    decided = [
        MetricTarget(pair.series, change)
        for pair in cell_pairs.pair_cells(document, old=good, new=bad)
        for change in _select_changes(pair, names)
        if is_change(change.verdict)
    ]
    if not decided:
        raise SearchProblem(
            f"{bad.version} was given as bad, but beside {good.version} none of these is decided to have changed here: "
            f"{', '.join(names)}."
        )
    return min(decided, key=lambda target: (metric_changes.is_gain(target.change), -_measure_size(target.change)))


def check_good_release(document: Document, *, good: Runtime, bad: Runtime) -> None:
    """Check that the good release ran the model in at least one cell. Raises SearchProblem where it did not."""
    pairs = cell_pairs.pair_cells(document, old=good, new=bad)
    if any(pair.old.status is CellStatus.DONE for pair in pairs):
        return
    reasons = {cell.runtime: cell.reason.text for cell in document.cells if cell.reason is not None}
    why = reasons.get(good, "It was not measured.")
    if any(pair.new.status is CellStatus.DONE for pair in pairs):
        raise SearchProblem(f"{good.version} was given as good, but here it does not run the model: {why}")
    raise SearchProblem(f"Neither {good.version} nor {bad.version} runs the model: {why}")


def find_metric_names(word: str) -> tuple[str, ...]:
    """Return the names of metrics that a user's word means; empty if it names no compared metric.

    The word is the name of a metric, or `memory` for every metric in bytes.
    """
    if word == MEMORY:
        return tuple(metric.name for metric, _ in COMPARED if metric.unit == "bytes")
    return (word,) if word in NAMES else ()


def are_decided_by_repeats(names: Sequence[str], scenarios: Sequence[object]) -> bool:
    """Whether two launches of each side decide all of these metrics, so that no more rounds are needed.

    False without any metric. Growth takes more rounds; it is ignored if none of the scenarios measures it.
    """
    has_growth = any(GROWTH in parse(scenario).own_metrics for scenario in scenarios)
    measured = [name for name in names if name != GROWTH or has_growth]
    return bool(measured) and all(judging.by == "repeat" for metric, judging in COMPARED if metric.name in measured)


def _find_pair(document: Document, series: str, *, old: Runtime, new: Runtime) -> Pair | None:
    pairs = cell_pairs.pair_cells(document, old=old, new=new)
    return next((pair for pair in pairs if pair.series == series), None)


def _explain_skip(pair: Pair | None, doubts: Sequence[str] = ()) -> str:
    endings = [] if pair is None else [cell.reason.text for cell in (pair.new, pair.old) if cell.reason is not None]
    return [*endings, *doubts, "It was not compared."][0]


def _select_changes(pair: Pair | None, names: Sequence[str]) -> list[MetricChange]:
    comparison = None if pair is None else pair.comparison
    return [] if comparison is None else [change for change in comparison.metrics if change.name in names]


def _measure_size(change: MetricChange) -> float:
    return abs(log(change.ratio)) if change.ratio else abs(change.change or 0.0) / change.margin
