"""Judges by a bench document whether a candidate may replace its baseline.

A *check* is a kind of change, such as `slower` or `parity`; the gate fails on those that it was asked to fail on.
"""

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
from farm.rules.tracing.placement import compare_cell_placements
from farm.rules.wording.numbers import change as format_change
from farm.rules.wording.numbers import change_interval, percent
from farm.rules.wording.vocabulary import ENDINGS, LOSSES

# The metrics that are checked besides the headline unless a caller names others: those that a run's sentence mentions,
# and those that watches alert on however small the change is.
DEFAULT_METRICS = tuple(
    metric.name for metric, judging in COMPARED if judging.is_told or (judging.alerts_as and not judging.min_alert)
)
SHOWN_AGAIN = "a fresh block showed it again"
_UNDECIDED = ("undecided", "not comparable")
# metrics whose change a repeat in the same block decides
_REPEATED_METRICS = frozenset(metric.name for metric, judging in COMPARED if judging.by == "repeat")


class Observation(NamedTuple):
    """What one check finds in a pair of cells."""

    check: Check
    text: str
    # the metric's name; empty for the headline and for memory
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found in one pair of cells, and whether the gate fails because of it."""

    check: Check
    # the ids of both cells
    baseline: str
    candidate: str
    text: str
    is_failure: bool
    # the metric's name; empty for the headline and for memory
    metric: str = ""
    # whether it failed the gate until a fresh block contradicted it or left it undecided
    is_unconfirmed: bool = False
    # whether a fresh block showed it again
    is_confirmed: bool = False

    @property
    def is_noisy(self) -> bool:
        """Whether a fresh block may contradict the finding, as it may for every metric and some checks."""
        return self.check in NOISY_CHECKS or bool(self.metric)

    @property
    def check_and_metric(self) -> str:
        return f"{self.check} {self.metric}".strip()

    @property
    def subject(self) -> str:
        """The metric, or the check where there is none."""
        return self.metric or self.check


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """All findings of a document. The gate passes where something was compared, nothing failed and `infra` is empty."""

    findings: tuple[Finding, ...]
    # the ids of (baseline, candidate) of each pair that was asked for
    pairs: tuple[tuple[str, str], ...] = ()
    # how many of the pairs ran on both sides
    compared: int = 0
    # the checks that fail the gate
    fail_on: tuple[Check, ...] = ()
    # why pairs ran on neither side: the candidate's reason, each text once
    unmeasured: tuple[str, ...] = ()
    # why something could not be measured, where neither model nor runtime is the cause; then nothing is judged
    infra: tuple[str, ...] = ()
    # (subject, id of the candidate) of each check and metric with a verdict: these can contradict a finding
    decided: frozenset[tuple[str, str]] = frozenset()

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that fail the gate; none where nothing is judged, because of `infra`."""
        return tuple(finding for finding in self.findings if finding.is_failure and not self.infra)

    @property
    def is_passed(self) -> bool:
        return self.compared > 0 and not self.failures and not self.infra

    @property
    def verdict(self) -> str:
        """`not measured`, `passed` or `failed`; a gate that compared nothing has failed."""
        if self.infra:
            return "not measured"
        return "passed" if self.is_passed else "failed"


def judge_gate(
    document: Document,
    *,
    old: Runtime | str,
    new: Runtime | str,
    fail_on: Collection[str],
    metrics: Collection[str] = DEFAULT_METRICS,
    of_models: bool = False,
    max_slowdown: float = 0.0,
) -> GateAnswer:
    """Compare the cells of two runtimes pair by pair, and fail the gate on what the checks in `fail_on` find.

    `metrics` are the names of those to check besides the headline. With `of_models`, `old` and `new` are names of
    models, and pairs that were compared although their batches differ count too. A latency that is slower by at most
    the fraction `max_slowdown` is a finding, but no failure. `infra` of the answer is left empty.
    """
    pairs = cell_pairs.pair_cells(document, old=old, new=new, of_models=of_models)
    if of_models:
        pairs += cell_pairs.pair_models(document, old=str(old), new=str(new))
    unmeasured = [_describe_reason(pair.new) for pair in pairs if not (_is_done(pair.old) or _is_done(pair.new))]
    findings = [
        Finding(
            observation.check,
            pair.old.id,
            pair.new.id,
            observation.text,
            is_failure=observation.check in fail_on and not _is_allowed(observation, pair, max_slowdown),
            metric=observation.metric,
        )
        for pair in pairs
        for observation in _list_observations(pair, metrics)
    ]
    return GateAnswer(
        findings=tuple(findings),
        pairs=tuple((pair.old.id, pair.new.id) for pair in pairs),
        compared=sum(pair.is_finished for pair in pairs),
        fail_on=tuple(check for check in CHECKS if check in fail_on),
        unmeasured=tuple(dict.fromkeys(unmeasured)),
        decided=frozenset(
            (subject, pair.new.id) for pair in pairs if pair.is_finished for subject in _list_decided_subjects(pair)
        ),
    )


def _list_decided_subjects(pair: Pair) -> Iterator[str]:
    """Yield the noisy checks and the names of metrics that a finished pair has a verdict on."""
    yield "failed"
    if pair.comparison and change_between(pair.comparison, pair.old, pair.new).word not in _UNDECIDED:
        yield from ("slower", "lower")
    yield from (metric.name for metric in _list_further_metrics(pair) if metric.verdict != "undecided")
    for kind in COMPARED_OUTSIDE:
        if all(change.verdict != "undecided" for change in find_changes(kind, pair, allowed=0.0)):
            yield kind.key


def _is_allowed(observation: Observation, pair: Pair, max_slowdown: float) -> bool:
    """Whether the observation is a slower headline, by no more than the allowed fraction."""
    if observation.check != "slower" or observation.metric or pair.comparison is None:
        return False
    change = change_between(pair.comparison, pair.old, pair.new)
    slowdown = 1 / change.ratio if change.quantity == "items" and change.ratio else pair.comparison.ratio or inf
    return slowdown <= 1 + max_slowdown


def confirm_answer(
    answer: GateAnswer, *, shown_again: Collection[tuple[str, str]], decided: Collection[tuple[str, str]]
) -> GateAnswer:
    """Return the answer after a fresh block: a noisy failure that the block contradicts is no failure any more.

    One that the block left undecided becomes a finding of the check `undecided`. `shown_again` has (`check_and_metric`,
    candidate) of what the block found again, and `decided` has (`subject`, candidate) of all that it has a verdict on.
    Candidates are ids of the first document.
    """
    findings = []
    for finding in answer.findings:
        if not (finding.is_failure and finding.is_noisy):
            findings.append(finding)
        elif (finding.check_and_metric, finding.candidate) in shown_again:
            findings.append(replace(finding, is_confirmed=True, text=f"{finding.text}; {SHOWN_AGAIN}"))
        elif (finding.subject, finding.candidate) in decided:
            text = f"{finding.text}; a fresh block did not show it again"
            findings.append(replace(finding, is_failure=False, is_unconfirmed=True, text=text))
        else:
            text, is_failure = f"{finding.text}; a fresh block left it undecided", "undecided" in answer.fail_on
            findings.append(replace(finding, check="undecided", is_failure=is_failure, is_unconfirmed=True, text=text))
    return replace(answer, findings=tuple(findings))


def cell_label(cell: Cell) -> str:
    return f"{cell.runtime}, {point_label(cell)}"


def point_label(cell: Cell) -> str:
    """Name a cell by its settings without the runtime; no two cells of one model and runtime have the same label."""
    hardware = "" if cell.hardware == "cpu" else f", {cell.hardware}"
    return label.series_label(cell) + hardware


def setting_label(old: Cell, new: Cell) -> str:
    return cell_label(new) if old.runtime == new.runtime else point_label(new)


def _list_observations(pair: Pair, metric_names: Collection[str]) -> list[Observation]:
    """List what the checks find in a pair of cells, in the order of the checks."""
    order = {check: place for place, check in enumerate(CHECKS)}
    observations = [*_compare_cells(pair, metric_names), *_compare_by_packages(pair)]
    return sorted(observations, key=lambda observation: order.get(observation.check, len(order)))


def _compare_cells(pair: Pair, metric_names: Collection[str]) -> Iterator[Observation]:
    """Yield that a side did not run, or else what is worse or undecided in figures, outputs and placement."""
    old, new = pair.old, pair.new
    subject, base = cell_label(new), str(old.runtime)
    if old.runtime == new.runtime:
        subject, base = f"The candidate ({subject})", "the base"
    if not _is_done(new):
        if _is_done(old):
            yield Observation("failed", f"{subject} {ENDINGS[new.status]}: {_describe_reason(new)}")
        return
    if not _is_done(old):
        ended = f"{cell_label(old)} {ENDINGS[old.status]}: {_describe_reason(old)}"
        yield Observation("undecided", f"{subject} has nothing to be compared with: {ended}")
        return

    metrics = [metric for metric in _list_further_metrics(pair) if metric.name in metric_names]
    repeated = [metric for metric in metrics if metric.name in _REPEATED_METRICS]
    others = [metric for metric in metrics if metric.name not in _REPEATED_METRICS]
    yield from _compare_headline(pair, subject, base)
    yield from _compare_repeated_metrics(repeated, subject, base)
    yield from _compare_outputs(old, new, subject, base)
    worse = (change for change in compare_cell_placements(old, new) if change.is_worse)
    yield from (Observation("placement", f"{subject}: {change.sentence()}") for change in worse)
    yield from _compare_other_metrics(others, subject, base)


def _compare_headline(pair: Pair, subject: str, base: str) -> Iterator[Observation]:
    """Compare latency, items per second of other batches, or the highest rate where a load looks for it."""
    comparison = pair.comparison
    if comparison is None:
        yield Observation("undecided", f"{subject} and {base} were not measured in one block")
        return
    change = change_between(comparison, pair.old, pair.new)
    level = percent(comparison.ci_level or 0.95)
    if change.word in _UNDECIDED:
        yield Observation("undecided", f"{subject} against {base} is {change.word}{_format_cause(comparison)}")
    elif change.word not in LOSSES:
        return
    elif change.quantity == "items":
        yield Observation("slower", f"{subject} has {change.text} ({level} interval {change.interval}) against {base}")
    elif comparison.verdict_from == "rate":
        headline = metric_changes.headline_metric_name(comparison)
        rates = [f": {metric_changes.describe(metric)}" for metric in comparison.metrics if metric.name == headline]
        yield Observation("lower", f"{subject} keeps its bound up to a lower rate than {base}{''.join(rates)}")
    else:
        ratio, low, high = comparison.ratio, comparison.ci_low, comparison.ci_high
        slowdown = "measurably slower"
        if ratio is not None and low is not None and high is not None:
            interval = change_interval(low, high, ratio=ratio)
            slowdown = f"{format_change(ratio, low, high)} ({level} interval {interval})"
        yield Observation("slower", f"{subject} is {slowdown} than {base}")


def _compare_repeated_metrics(metrics: Sequence[MetricChange], subject: str, base: str) -> Iterator[Observation]:
    """Yield one observation for all memory that is bigger, and one for each metric of memory that is undecided."""
    if bigger := " and ".join(metric_changes.describe(metric) for metric in metrics if metric.verdict == "bigger"):
        yield Observation("bigger", f"{subject} takes more memory than {base}: {bigger}")
    for metric in metrics:
        if metric.verdict == "undecided":
            title = metric_changes.title(metric)
            yield Observation("undecided", f"{subject}: {title} against {base} is undecided{_format_cause(metric)}")


def _compare_other_metrics(metrics: Sequence[MetricChange], subject: str, base: str) -> Iterator[Observation]:
    """Yield the metrics that are worse, and those that are undecided unless they are checked by default."""
    for metric in metrics:
        title = metric_changes.title(metric)
        if metric.verdict in ("slower", "bigger", "lower") and metric_changes.is_loss(metric):
            text = f"{subject}: {title} is {metric.verdict} than with {base}: {metric_changes.describe(metric)}"
            yield Observation(metric.verdict, text, metric.name)
        elif metric.verdict == "undecided" and metric.name not in DEFAULT_METRICS:
            text = f"{subject}: {title} against {base} is undecided{_format_cause(metric)}"
            yield Observation("undecided", text, metric.name)


def _compare_outputs(old: Cell, new: Cell, subject: str, base: str) -> Iterator[Observation]:
    """Compare parity with the reference, and for two models on one runtime their outputs and accuracy too."""
    if fails_parity(new) and old.parity.verdict != "fail":
        yield Observation("parity", f"{subject} fails parity: {new.parity.text or 'outputs differ beyond tolerance'}")
    elif fails_parity(new) and (growth := checks.describe_parity_growth(old.parity.outputs, new.parity.outputs)):
        yield Observation("parity", f"{subject} is further off than {base}: {growth}")
    if old.runtime != new.runtime:
        return  # the outputs of one model are judged by the reference alone
    for outputs in new.engines:
        if outputs.cell == old.id and outputs.verdict == "fail":
            yield Observation("parity", f"{subject}: {describe_outputs(outputs)}")
        if outputs.cell == old.id and outputs.unjudged:
            yield Observation("unjudged", f"{subject}: {describe_outputs(outputs)}")
    if new.accuracy is not None and is_less_accurate(new.accuracy):
        yield Observation("lower", f"{subject} is less accurate than {base}: {new.accuracy.text}")


def describe_outputs(outputs: EngineParity) -> str:
    """Say how outputs differ from the base's, without the id of its cell, which readers of an answer never see."""
    return outputs.text.replace(f"{outputs.cell}'s", "the base's")


def _list_further_metrics(pair: Pair) -> Sequence[MetricChange]:
    """List the metrics besides the headline; none where the batches differ, which makes them incomparable."""
    if pair.comparison is None or pair.old.batch != pair.new.batch:
        return []
    return metric_changes.list_secondary_changes(pair.comparison)


def _compare_by_packages(pair: Pair) -> Iterator[Observation]:
    """Yield what the kinds of change of packages find to be worse or undecided."""
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
