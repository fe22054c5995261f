"""A gate over a bench document: may the candidate replace the baseline?"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, EngineParity
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.reasons import CellStatus
from farm.rules.cells import label
from farm.rules.cells.metrics import COMPARED
from farm.rules.comparing.quantities import change_between
from farm.rules.findings import cell_pairs, checks
from farm.rules.findings.cell_pairs import Pair
from farm.rules.findings.checks import find_changes
from farm.rules.findings.kinds import CHECKS, COMPARED_OUTSIDE, NOISY_CHECKS, Check
from farm.rules.presenting import metric_changes
from farm.rules.presenting.lines import fails_parity, is_less_accurate
from farm.rules.tracing.placement import cell_changes
from farm.rules.wording.numbers import change as format_change
from farm.rules.wording.numbers import change_interval, percent
from farm.rules.wording.vocabulary import ENDINGS, LOSSES

# the metrics that are checked besides the headline unless a caller names others: those that a run's sentence holds or
# watches alert on; what a program waits for only once is asked for by name
USUAL = tuple(
    metric.name for metric, judging in COMPARED if judging.is_told or (judging.alerts_as and not judging.min_alert)
)
SHOWN_AGAIN = "a fresh block showed it again"
_OPEN = ("undecided", "not comparable")
_BY_REPEAT = frozenset(metric.name for metric, judging in COMPARED if judging.by == "repeat")


class Observation(NamedTuple):
    """What one check sees in a pair of cells. `metric`: by name, where that is neither the headline nor memory."""

    check: Check
    text: str
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one pair of cells that found something. `is_failure`: the gate was told to fail on it.

    `is_unconfirmed`: it would have failed, and a fresh block contradicts it, or left it undecided, as its check says;
    `is_confirmed`: it shows it again.
    `metric`: which it is about, where that is neither the headline nor memory.
    """

    check: Check
    baseline: str
    candidate: str
    text: str
    is_failure: bool
    metric: str = ""
    is_unconfirmed: bool = False
    is_confirmed: bool = False

    @property
    def is_noisy(self) -> bool:
        """Whether a fresh block may contradict it, as it may of a figure of any metric."""
        return self.check in NOISY_CHECKS or bool(self.metric)

    @property
    def what(self) -> str:
        """The check and its metric, `slower p99`, as `confirm_answer` takes them in `again`."""
        return f"{self.check} {self.metric}".strip()

    @property
    def subject(self) -> str:
        """The metric, or the check where there is none, as `decided` has them."""
        return self.metric or self.check


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """All findings of a document; the gate is passed when none is a failure.

    `pairs`: (baseline, candidate) of everything that was asked for. `compared`: how many of them ran on both sides.
    `unmeasured`: why pairs ran on neither. `infra`: why something could not be measured at all, of which neither the
    model nor its runtime is the cause: then nothing is judged. `decided`: (metric or check, candidate) of what has a
    verdict: what can contradict a finding.
    """

    findings: tuple[Finding, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    compared: int = 0
    fail_on: tuple[Check, ...] = ()
    unmeasured: tuple[str, ...] = ()
    infra: tuple[str, ...] = ()
    decided: frozenset[tuple[str, str]] = frozenset()

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that fail the gate; none where something could not be measured at all."""
        return tuple(finding for finding in self.findings if finding.is_failure and not self.infra)

    @property
    def is_passed(self) -> bool:
        return self.compared > 0 and not self.failures and not self.infra

    @property
    def verdict(self) -> str:
        """`not measured`, `passed` or `failed`; a gate that compared nothing has failed."""
        return "not measured" if self.infra else "passed" if self.is_passed else "failed"


def judge_gate(
    document: Document,
    *,
    old: Runtime | str,
    new: Runtime | str,
    fail_on: Collection[str],
    metrics: Collection[str] = USUAL,
    of_models: bool = False,
    max_slowdown: float = 0.0,
) -> GateAnswer:
    """Check every point that was asked of both runtimes; `fail_on`: checks that fail it.

    `metrics`: those that are checked besides the headline. `of_models`: both sides are names of models. A p50 that is
    slower by `max_slowdown` at most, as a fraction, fails nothing.
    """
    pairs = cell_pairs.pair_cells(document, old=old, new=new, of_models=of_models)
    if of_models:
        pairs += cell_pairs.pair_models(document, old=str(old), new=str(new))
    findings = [
        Finding(
            seen.check,
            pair.old.id,
            pair.new.id,
            seen.text,
            is_failure=seen.check in fail_on and not _is_allowed(seen, pair, max_slowdown),
            metric=seen.metric,
        )
        for pair in pairs
        for seen in _list_observations(pair, names=metrics)
    ]
    return GateAnswer(
        findings=tuple(findings),
        pairs=tuple((pair.old.id, pair.new.id) for pair in pairs),
        compared=sum(_is_done(pair.old) and _is_done(pair.new) for pair in pairs),
        fail_on=tuple(check for check in CHECKS if check in fail_on),
        unmeasured=tuple(
            dict.fromkeys(
                _describe_reason(pair.new) for pair in pairs if not (_is_done(pair.old) or _is_done(pair.new))
            )
        ),
        decided=frozenset(
            (subject, pair.new.id) for pair in pairs if pair.is_finished for subject in _list_decided_subjects(pair)
        ),
    )


def _list_decided_subjects(pair: Pair) -> Iterator[str]:
    """Yield noisy checks, and metrics by name, of which a finished pair leaves nothing open."""
    yield "failed"
    if pair.comparison and change_between(pair.comparison, pair.old, pair.new).word not in _OPEN:
        yield from ("slower", "lower")
    yield from (metric.name for metric in _list_further_metrics(pair) if metric.verdict != "undecided")
    for kind in COMPARED_OUTSIDE:
        if all(found.verdict != "undecided" for found in find_changes(kind, pair, allowed=0.0)):
            yield kind.key


def _is_allowed(seen: Observation, pair: Pair, max_slowdown: float) -> bool:
    """Whether it is a slower headline, and slower by no more than is let pass."""
    if seen.check != "slower" or seen.metric or pair.comparison is None:
        return False
    change = change_between(pair.comparison, pair.old, pair.new)
    slowdown = 1 / change.ratio if change.quantity == "items" and change.ratio else pair.comparison.ratio or inf
    return slowdown <= 1 + max_slowdown


def confirm_answer(
    answer: GateAnswer, *, again: Collection[tuple[str, str]], decided: Collection[tuple[str, str]]
) -> GateAnswer:
    """Return the answer after a fresh block: a noisy failure that the block contradicts fails nothing.

    One that it left open becomes the check `undecided`, and fails where the gate fails on that. `again`: (what was
    found, candidate's cell in the first document) of what was shown again; `decided`: (metric or check, that cell) of
    what it has a verdict on.
    """
    findings = []
    for finding in answer.findings:
        is_asked = finding.is_failure and finding.is_noisy
        if is_asked and (finding.what, finding.candidate) in again:
            finding = replace(finding, is_confirmed=True, text=f"{finding.text}; {SHOWN_AGAIN}")
        elif is_asked and (finding.subject, finding.candidate) in decided:
            text = f"{finding.text}; a fresh block did not show it again"
            finding = replace(finding, is_failure=False, is_unconfirmed=True, text=text)
        elif is_asked:
            text, is_failure = f"{finding.text}; a fresh block left it undecided", "undecided" in answer.fail_on
            finding = replace(finding, check="undecided", is_failure=is_failure, is_unconfirmed=True, text=text)
        findings.append(finding)
    return replace(answer, findings=tuple(findings))


def noisy_failures(answer: GateAnswer) -> Sequence[Finding]:
    return [finding for finding in answer.failures if finding.is_noisy]


def cell_label(cell: Cell) -> str:
    return f"{cell.runtime}, {point_label(cell)}"


def point_label(cell: Cell) -> str:
    """Name a cell without its runtime; no two cells of a runtime have the same name."""
    hardware = "" if cell.hardware == "cpu" else f", {cell.hardware}"
    return label.series_label(cell) + hardware


def setting_label(old: Cell, new: Cell) -> str:
    return cell_label(new) if old.runtime == new.runtime else point_label(new)


def _list_observations(pair: Pair, *, names: Collection[str]) -> list[Observation]:
    """List all that a pair of cells shows, in the order of the checks. `names`: the metrics besides the headline."""
    order = {check: place for place, check in enumerate(CHECKS)}
    seen = [*_compare_cells(pair, names), *_compare_by_packages(pair)]
    return sorted(seen, key=lambda observation: order.get(observation.check, len(order)))


def _compare_cells(pair: Pair, names: Collection[str]) -> Iterator[Observation]:
    old, new = pair.old, pair.new
    # the candidate's cell, and what it is compared with: the other runtime, or on the same one the base
    where, than = cell_label(new), str(old.runtime)
    if old.runtime == new.runtime:
        where, than = f"The candidate ({where})", "the base"
    if not _is_done(new):
        if _is_done(old):
            yield Observation("failed", f"{where} {ENDINGS[new.status]}: {_describe_reason(new)}")
        return
    if not _is_done(old):
        ended = f"{cell_label(old)} {ENDINGS[old.status]}: {_describe_reason(old)}"
        yield Observation("undecided", f"{where} has nothing to be compared with: {ended}")
        return
    metrics = [metric for metric in _list_further_metrics(pair) if metric.name in names]
    yield from _compare_headline(pair, where, than)
    yield from _compare_repeated_metrics([metric for metric in metrics if metric.name in _BY_REPEAT], where, than)
    yield from _compare_outputs(old, new, where, than)
    moved = (change for change in cell_changes(old, new) if change.is_worse)
    yield from (Observation("placement", f"{where}: {change.sentence()}") for change in moved)
    yield from _compare_other_metrics([metric for metric in metrics if metric.name not in _BY_REPEAT], where, than)


def _compare_headline(pair: Pair, where: str, than: str) -> Iterator[Observation]:
    """Compare latency, items per second of other batches, or the highest rate where a load looks for it."""
    comparison = pair.comparison
    if comparison is None:
        yield Observation("undecided", f"{where} and {than} were not measured in one block")
        return
    change = change_between(comparison, pair.old, pair.new)
    level = percent(comparison.ci_level or 0.95)
    if change.word in _OPEN:
        yield Observation("undecided", f"{where} against {than} is {change.word}{_format_cause(comparison)}")
    elif change.word not in LOSSES:
        return
    elif change.quantity == "items":
        yield Observation("slower", f"{where} has {change.text} ({level} interval {change.interval}) against {than}")
    elif comparison.verdict_from == "rate":
        headline = metric_changes.headline_of(comparison)
        rates = [f": {metric_changes.describe(metric)}" for metric in comparison.metrics if metric.name == headline]
        yield Observation("lower", f"{where} keeps its bound up to a lower rate than {than}{''.join(rates)}")
    else:
        ratio, low, high = comparison.ratio, comparison.ci_low, comparison.ci_high
        size = "measurably slower"
        if ratio is not None and low is not None and high is not None:
            interval = change_interval(low, high, ratio=ratio)
            size = f"{format_change(ratio, low, high)} ({level} interval {interval})"
        yield Observation("slower", f"{where} is {size} than {than}")


def _compare_repeated_metrics(metrics: Sequence[MetricChange], where: str, than: str) -> Iterator[Observation]:
    """Compare memory, where a repeat decides."""
    if bigger := " and ".join(metric_changes.describe(metric) for metric in metrics if metric.verdict == "bigger"):
        yield Observation("bigger", f"{where} takes more memory than {than}: {bigger}")
    for metric in metrics:
        if metric.verdict == "undecided":
            title = metric_changes.title(metric)
            yield Observation("undecided", f"{where}: {title} against {than} is undecided{_format_cause(metric)}")


def _compare_other_metrics(metrics: Sequence[MetricChange], where: str, than: str) -> Iterator[Observation]:
    """Yield the metrics that are worse, and of those that somebody named also what is undecided."""
    for metric in metrics:
        title = metric_changes.title(metric)
        if metric.verdict in ("slower", "bigger", "lower") and metric_changes.is_loss(metric):
            text = f"{where}: {title} is {metric.verdict} than with {than}: {metric_changes.describe(metric)}"
            yield Observation(metric.verdict, text, metric.name)
        elif metric.verdict == "undecided" and metric.name not in USUAL:
            text = f"{where}: {title} against {than} is undecided{_format_cause(metric)}"
            yield Observation("undecided", text, metric.name)


def _compare_outputs(old: Cell, new: Cell, where: str, than: str) -> Iterator[Observation]:
    """Compare parity with the reference; of another model on the same runtime outputs and accuracy too."""
    if fails_parity(new) and old.parity.verdict != "fail":
        yield Observation("parity", f"{where} fails parity: {new.parity.text or 'outputs differ beyond tolerance'}")
    elif fails_parity(new) and (growth := checks.describe_parity_growth(old.parity.outputs, new.parity.outputs)):
        yield Observation("parity", f"{where} is further off than {than}: {growth}")
    if old.runtime != new.runtime:
        return  # of one model the reference judges them
    for outputs in new.engines:
        if outputs.cell == old.id and outputs.verdict == "fail":
            yield Observation("parity", f"{where}: {describe_outputs(outputs)}")
        if outputs.cell == old.id and outputs.unjudged:
            yield Observation("unjudged", f"{where}: {describe_outputs(outputs)}")
    if new.accuracy is not None and is_less_accurate(new.accuracy):
        yield Observation("lower", f"{where} is less accurate than {than}: {new.accuracy.text}")


def describe_outputs(outputs: EngineParity) -> str:
    """Describe how outputs differ from the base's, without the number of its cell, which a reader here has not seen."""
    return outputs.text.replace(f"{outputs.cell}'s", "the base's")


def _list_further_metrics(pair: Pair) -> Sequence[MetricChange]:
    """List the metrics besides the headline; none where the batches differ, of which they say nothing."""
    if pair.comparison is None or pair.old.batch != pair.new.batch:
        return []
    return metric_changes.list_further(pair.comparison)


def _compare_by_packages(pair: Pair) -> Iterator[Observation]:
    """Yield what kinds of change of packages find worse or undecided."""
    for kind in COMPARED_OUTSIDE:
        for change in find_changes(kind, pair, allowed=0.0):
            if change.verdict in ("worse", "undecided"):
                yield Observation(kind.key if change.verdict == "worse" else "undecided", change.text)


def _format_cause(compared: Comparison | MetricChange) -> str:
    return f": {compared.reason}" if compared.reason else ""


def _describe_reason(cell: Cell) -> str:
    return cell.reason.text if cell.reason else "no reason was given"


def _is_done(cell: Cell) -> bool:
    return cell.status is CellStatus.DONE
