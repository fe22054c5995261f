"""A gate over a bench document: may the candidate replace the baseline?"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell, EngineParity
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.reasons import CellStatus
from farm.rules.cells import label
from farm.rules.cells.metrics import COMPARED
from farm.rules.comparing.quantities import Change, change_between
from farm.rules.findings import cell_pairs, checks
from farm.rules.findings.cell_pairs import Pair
from farm.rules.findings.checks import find_changes
from farm.rules.findings.kinds import CHECKS, COMPARED_OUTSIDE, NOISY_CHECKS, Check
from farm.rules.presenting import metric_changes
from farm.rules.presenting.lines import fails_parity, is_less_accurate
from farm.rules.tracing.placement import cell_changes
from farm.rules.wording.numbers import change, change_interval, percent
from farm.rules.wording.vocabulary import ENDINGS, LOSSES

# what is checked besides the headline, unless it is said: what runs tell in their sentence, or watches alert on; what a
# program waits for once is asked for by name
USUAL = tuple(
    metric.name for metric, judging in COMPARED if judging.is_told or (judging.alerts_as and not judging.min_alert)
)
_OPEN = ("undecided", "not comparable")
_BY_REPEAT = frozenset(metric.name for metric, judging in COMPARED if judging.by == "repeat")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one pair of cells that found something. `is_failure`: the gate was told to fail on it.

    `is_unconfirmed`: it would have failed, and a fresh block contradicts it, or left it undecided, as its check says.
    `metric`: which it is about, where that is neither the headline nor memory.
    """

    check: Check
    baseline: str
    candidate: str
    text: str
    is_failure: bool
    metric: str = ""
    is_unconfirmed: bool = False

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
        """A gate that compared nothing has not shown anything, so it is not passed."""
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
            check,
            pair.old.id,
            pair.new.id,
            text,
            is_failure=check in fail_on and not (check == "slower" and not metric and _is_within(pair, max_slowdown)),
            metric=metric,
        )
        for pair in pairs
        for check, text, metric in _list_findings(pair, names=metrics)
    ]
    return GateAnswer(
        findings=tuple(findings),
        pairs=tuple((pair.old.id, pair.new.id) for pair in pairs),
        compared=sum(_is_done(pair.old) and _is_done(pair.new) for pair in pairs),
        fail_on=tuple(check for check in CHECKS if check in fail_on),
        unmeasured=tuple(
            dict.fromkeys(_why(pair.new) for pair in pairs if not (_is_done(pair.old) or _is_done(pair.new)))
        ),
        decided=frozenset((subject, pair.new.id) for pair in pairs if pair.is_finished for subject in _decided(pair)),
    )


def _decided(pair: Pair) -> Iterator[str]:
    """Noisy checks, and metrics by name, of which a finished pair leaves nothing open."""
    yield "failed"
    if pair.comparison and change_between(pair.comparison, pair.old, pair.new).word not in _OPEN:
        yield from ("slower", "lower")
    yield from (metric.name for metric in _further(pair) if metric.verdict != "undecided")
    for kind in COMPARED_OUTSIDE:
        if all(found.verdict != "undecided" for found in find_changes(kind, pair, allowed=0.0)):
            yield kind.key


def _list_findings(pair: Pair, *, names: Collection[str]) -> list[tuple[Check, str, str]]:
    """All that is found of a pair, with the metric where that is not the headline, in the order of the checks."""
    found = [
        *((check, text, "") for check, text in _checks(pair, names=names)),
        *((check, text, "") for check, text in _of_packages(pair)),
        *_metrics(pair, names=names),
    ]
    order = {check: place for place, check in enumerate(CHECKS)}
    return sorted(found, key=lambda finding: order.get(finding[0], len(order)))


def _is_within(pair: Pair, max_slowdown: float) -> bool:
    assert pair.comparison is not None  # what is slower was compared
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
        if finding.is_failure and finding.is_noisy and (finding.what, finding.candidate) not in again:
            if (finding.subject, finding.candidate) in decided:
                text = f"{finding.text}; a fresh block did not show it again"
                finding = replace(finding, is_failure=False, is_unconfirmed=True, text=text)
            else:
                text, is_failure = f"{finding.text}; a fresh block left it undecided", "undecided" in answer.fail_on
                finding = replace(finding, check="undecided", is_failure=is_failure, is_unconfirmed=True, text=text)
        findings.append(finding)
    return replace(answer, findings=tuple(findings))


def noisy_failures(answer: GateAnswer) -> Sequence[Finding]:
    return [finding for finding in answer.failures if finding.is_noisy]


def cell_label(cell: Cell) -> str:
    return f"{cell.runtime}, {point_label(cell)}"


def _named(old: Cell, new: Cell) -> tuple[str, str]:
    """The candidate's cell, and what it is compared with: the other runtime, or on the same one the base."""
    if old.runtime == new.runtime:
        return f"The candidate, {cell_label(new)},", "the base"
    return cell_label(new), str(old.runtime)


def point_label(cell: Cell) -> str:
    """A cell without its runtime: no two cells of a runtime are called the same."""
    hardware = "" if cell.hardware == "cpu" else f", {cell.hardware}"
    return label.series_label(cell) + hardware


def setting_label(old: Cell, new: Cell) -> str:
    """Name the candidate, with its runtime where both sides have the same."""
    return cell_label(new) if old.runtime == new.runtime else point_label(new)


def _checks(pair: Pair, *, names: Collection[str]) -> list[tuple[Check, str]]:
    found: list[tuple[Check, str]] = []
    old, new, comparison = pair.old, pair.new, pair.comparison
    where, than = _named(old, new)
    if not _is_done(new):
        return [("failed", f"{where} {ENDINGS[new.status]}: {_why(new)}")] if _is_done(old) else []
    if not _is_done(old):
        return [
            (
                "undecided",
                f"{where} has nothing to be compared with: {cell_label(old)} {ENDINGS[old.status]}: {_why(old)}",
            )
        ]
    told = None if comparison is None else change_between(comparison, old, new)
    if comparison is None or told is None:
        found.append(("undecided", f"{where} and {than} were not measured in one block"))
    elif told.word in LOSSES:
        found.append(_slower(comparison, told, where=where, than=than))
    elif told.word in _OPEN:
        why = f": {comparison.reason}" if comparison.reason else ""
        found.append(("undecided", f"{where} against {than} is {told.word}{why}"))
    found += _bigger(_further(pair), where=where, than=than, names=names)
    if fails_parity(new) and old.parity.verdict != "fail":
        found.append(("parity", f"{where} fails parity: {new.parity.text or 'outputs differ beyond tolerance'}"))
    elif fails_parity(new) and (grown := checks.describe_parity_growth(old.parity.outputs, new.parity.outputs)):
        found.append(("parity", f"{where} is further off than {than}: {grown}"))
    found += _beside(old, new, where=where, than=than)
    found += [("placement", f"{where}: {change.sentence()}") for change in cell_changes(old, new) if change.is_worse]
    return found


def _beside(old: Cell, new: Cell, *, where: str, than: str) -> list[tuple[Check, str]]:
    """Outputs and accuracy of another model on the same runtime; of one model the reference judges them."""
    if old.runtime != new.runtime:
        return []
    wrong = [beside for beside in new.engines if beside.cell == old.id and beside.verdict == "fail"]
    found: list[tuple[Check, str]] = [("parity", f"{where}: {describe_outputs(beside)}") for beside in wrong]
    found += [("unjudged", f"{where}: {describe_outputs(beside)}") for beside in unjudged_outputs(old, new)]
    if new.accuracy is not None and is_less_accurate(new.accuracy):
        found.append(("lower", f"{where} is less accurate than {than}: {new.accuracy.text}"))
    return found


def describe_outputs(beside: EngineParity) -> str:
    """Describe how outputs differ from the base's, without the number of its cell, which a reader here has not seen."""
    return beside.text.replace(f"{beside.cell}'s", "the base's")


def unjudged_outputs(old: Cell, new: Cell) -> list[EngineParity]:
    return [beside for beside in new.engines if beside.cell == old.id and beside.unjudged]


def _further(pair: Pair) -> Sequence[MetricChange]:
    """Metrics beside the headline; of other batches they say nothing."""
    if pair.comparison is None or pair.old.batch != pair.new.batch:
        return []
    return metric_changes.list_further(pair.comparison)


def _bigger(
    further: Sequence[MetricChange], *, where: str, than: str, names: Collection[str]
) -> list[tuple[Check, str]]:
    """Memory, where a repeat decides."""
    repeated = [metric for metric in further if metric.name in _BY_REPEAT and metric.name in names]
    said = " and ".join(metric_changes.describe(metric) for metric in repeated if metric.verdict == "bigger")
    found: list[tuple[Check, str]] = []
    if said:
        found.append(("bigger", f"{where} takes more memory than {than}: {said}"))
    for metric in repeated:
        if metric.verdict == "undecided":
            why = f": {metric.reason}" if metric.reason else ""
            text = f"{where}: {metric_changes.title(metric)} against {than} is undecided{why}"
            found.append(("undecided", text))
    return found


def _metrics(pair: Pair, *, names: Collection[str]) -> list[tuple[Check, str, str]]:
    """Other metrics that are worse; of those that somebody named also what is undecided."""
    found: list[tuple[Check, str, str]] = []
    old, new = pair.old, pair.new
    for metric in _further(pair) if _is_done(old) and _is_done(new) else ():
        if metric.name not in names or metric.name in _BY_REPEAT:
            continue
        title, (where, than) = metric_changes.title(metric), _named(old, new)
        if metric.verdict in ("slower", "bigger", "lower") and metric_changes.is_loss(metric):
            text = f"{where}: {title} is {metric.verdict} than with {than}: {metric_changes.describe(metric)}"
            found.append((metric.verdict, text, metric.name))
        elif metric.verdict == "undecided" and metric.name not in USUAL:
            why = f": {metric.reason}" if metric.reason else ""
            found.append(("undecided", f"{where}: {title} against {than} is undecided{why}", metric.name))
    return found


def _of_packages(pair: Pair) -> Iterator[tuple[Check, str]]:
    """What kinds of change of packages compare: what is worse, and what is undecided."""
    for kind in COMPARED_OUTSIDE:
        for found in find_changes(kind, pair, allowed=0.0):
            if found.verdict in ("worse", "undecided"):
                yield kind.key if found.verdict == "worse" else "undecided", found.text


def _why(cell: Cell) -> str:
    return cell.reason.text if cell.reason else "no reason was given"


def _is_done(cell: Cell) -> bool:
    return cell.status is CellStatus.DONE


def _size(pair: Comparison) -> str:
    """`24 % slower (95 % interval 21–26 %)`."""
    if pair.ratio is None or pair.ci_low is None or pair.ci_high is None:
        return "measurably slower"
    size = change(pair.ratio, pair.ci_low, pair.ci_high)
    interval = change_interval(pair.ci_low, pair.ci_high, ratio=pair.ratio)
    return f"{size} ({percent(pair.ci_level or 0.95)} interval {interval})"


def _slower(pair: Comparison, judged: Change, *, where: str, than: str) -> tuple[Check, str]:
    """The headline: latency, items per second of other batches, or the highest rate where a load looks for it."""
    if judged.quantity == "items":
        level = percent(pair.ci_level or 0.95)
        return "slower", f"{where} has {judged.text} ({level} interval {judged.interval}) against {than}"
    if pair.verdict_from != "rate":
        return "slower", f"{where} is {_size(pair)} than {than}"
    headline = metric_changes.headline_of(pair)
    told = [f": {metric_changes.describe(metric)}" for metric in pair.metrics if metric.name == headline]
    return "lower", f"{where} keeps its bound up to a lower rate than {than}{''.join(told)}"
