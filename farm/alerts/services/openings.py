"""Turns findings into alerts: one for each level shift of a model, however often it is measured.

A level shift is identified by the release that brought it. If an earlier alert is about the same series, and its
release lies between the two releases of a finding, the finding shows the same shift again. A finding between later
releases is a new shift. Nodes that show the same cause (an operator or a kind of change) share one alert, with a figure
for each node. All figures of a finding come from one run: the one that confirmed it, or else the round's own.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from farm.alerts.models import Alert, Symptom, WatchRound
from farm.alerts.services.announcements import announce
from farm.alerts.services.investigations import start_investigations
from farm.alerts.states import OPEN_ALERTS, AlertEventKind, AlertState
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.changes import watch_rounds
from farm.rules.changes.watch_rounds import Finding, Judgement
from farm.rules.comparing.sides import find_comparison
from farm.rules.findings import cell_pairs
from farm.rules.findings.kinds import kind_of
from farm.rules.presenting.changed_operators import describe_largest_type
from farm.rules.presenting.explanations import explain_change, find_causing_type
from farm.rules.runtimes.order import is_downgrade, release_order
from farm.rules.searches.watching import RoundAnswer
from farm.rules.wording.numbers import change, listed
from farm.runs.models import Run

# how many nodes an alert's sentence names; its page names all
MAX_NODES = 6


class RaisedAlert(NamedTuple):
    """An alert that got new symptoms, whether the alert is new, and the text of the worst finding on the first node."""

    alert: Alert
    is_new: bool
    text: str


@dataclass(frozen=True, slots=True)
class Detection:
    """A finding with the run that shows it and that run's document. `first_document` is of the round's first run.

    `node` is empty for a finding on no node. `comparison` is the one of the finding's two cells in `document`; None
    where there is none. `cell` is the candidate's; it raises StopIteration where `document` lacks it.
    """

    finding: Finding
    run: Run | None
    document: Document
    first_document: Document

    @property
    def node(self) -> str:
        return self.finding.node or ""

    @property
    def comparison(self) -> Comparison | None:
        return find_comparison(self.document, self.finding.baseline, self.finding.candidate)

    @property
    def cell(self) -> Cell:
        return next(cell for cell in self.document.cells if cell.id == self.finding.candidate)

    @property
    def hardware(self) -> str:
        """The hardware that the first run asked for, or `cell` where that run has none; confirming runs name a node."""
        place = self.finding.series, self.finding.node
        cells = (cell for cell in self.first_document.cells if (cell_pairs.series_digest(cell), cell.node) == place)
        return next(cells, self.cell).hardware


def raise_alerts(watch_round: WatchRound, document: Document, answer: RoundAnswer) -> list[Alert]:
    """Open, widen or reopen alerts for the findings of a round; return those that were opened or got a new symptom.

    A finding of a level shift that has an alert already is logged there, and opens that alert again if it was resolved
    or closed as a fault of the farm; such an alert is not returned. All but repeated findings are announced, and the
    searches of returned alerts are started. Call this in the transaction that judges the round.
    """
    # a confirmed finding is shown by the confirming run, any other by the round's first run
    detections = [
        Detection(finding, watch_round.confirming, answer.again or document, document)
        if finding.is_of_fresh_block
        else Detection(finding, watch_round.run, document, document)
        for finding in answer.findings
    ]
    detections.sort(key=lambda detection: detection.node)

    # sort the findings of each node into earlier alerts and new ones
    raised_by_id: dict[int, RaisedAlert] = {}
    for node, on_node in groupby(detections, key=lambda detection: detection.node):
        new_shifts = [detection for detection in on_node if not _log_in_earlier_alert(watch_round, detection)]
        if new_shifts:
            raised = _add_to_alert(watch_round, new_shifts, node=node)
            raised_by_id.setdefault(raised.alert.pk, raised)

    # describe and announce each alert once all of its nodes are known
    for raised in raised_by_id.values():
        _write_sentence(raised.alert)
        _announce_raised(raised, watch_round)
        start_investigations(raised.alert)
    return [raised.alert for raised in raised_by_id.values()]


def _log_in_earlier_alert(watch_round: WatchRound, detection: Detection) -> bool:
    """Log a finding in the alert that its level shift has already, and reopen that alert where it was closed.

    Return False where the level shift has no alert.
    """
    finding = detection.finding
    rows = Symptom.objects.filter(
        alert__watch=watch_round.watch_id, alert__model=watch_round.version.model_id,
        alert__distribution=watch_round.distribution, node=detection.node, series=finding.series, kind=finding.kind,
    )  # fmt: skip
    for symptom in rows.select_related("alert__watch", "alert__team").order_by("-pk"):
        alert = symptom.alert
        if not _may_contain_cause(watch_round, alert):
            continue
        # a confirmed measurement also reopens an alert that a person closed as a fault of the farm
        was_closed = alert.state in (AlertState.RESOLVED, AlertState.INFRA)
        if was_closed or (symptom.resolved_in and alert.state in OPEN_ALERTS):
            _reopen(watch_round, alert, symptom, detection)
        else:
            alert.log(AlertEventKind.SEEN_AGAIN, finding.text, round=watch_round.pk)
        return True
    return _reopen_resolved(watch_round, detection, rows=list(rows.select_related("alert")))


def _may_contain_cause(watch_round: WatchRound, alert: Alert) -> bool:
    """Say whether the release that caused the alert's shift may lie between the round's two releases.

    Until bisection has found that release, it may be any between the alert's two. A round with an older candidate and
    an alert with a newer one, or the other way round, have the same shift only if the same release is bad in both.
    """
    if is_downgrade(watch_round.old, watch_round.new) != is_downgrade(alert.good, alert.bad):
        return watch_round.new == alert.bad
    early, late = sorted((release_order(watch_round.old), release_order(watch_round.new)))
    if alert.first_bad:
        return early < release_order(alert.first_bad) <= late
    bounds = alert.last_good or alert.good, alert.earliest_bad or alert.bad
    first, last = sorted(map(release_order, bounds))
    return early < last and late > first


def _reopen_resolved(watch_round: WatchRound, detection: Detection, *, rows: Sequence[Symptom]) -> bool:
    """Reopen the newest alert whose shift was resolved in a release before this pair; False where there is none."""
    resolved = [
        row
        for row in rows
        if row.resolved_in
        and row.alert.state == AlertState.RESOLVED
        and release_order(row.resolved_in) <= release_order(watch_round.old)
        and not is_downgrade(row.alert.good, row.alert.bad)
    ]
    if not resolved or is_downgrade(watch_round.old, watch_round.new):
        return False
    symptom = max(resolved, key=lambda row: row.pk)
    _reopen(watch_round, Alert.objects.select_related("watch", "team").get(pk=symptom.alert_id), symptom, detection)
    return True


def _reopen(watch_round: WatchRound, alert: Alert, symptom: Symptom, detection: Detection) -> None:
    Symptom.objects.filter(pk=symptom.pk).update(**_make_symptom_columns(detection))
    alert.change(AlertState.OPEN, resolved_in="")
    text = f"Recurred in {watch_round.new}: {detection.finding.text}"
    announce(alert, alert.log(AlertEventKind.REOPENED, text, round=watch_round.pk, release=watch_round.new))


def _add_to_alert(watch_round: WatchRound, detections: Sequence[Detection], *, node: str) -> RaisedAlert:
    """Add a node's findings to the alert of the same cause, or to a new one."""
    worst_finding = watch_rounds.find_worst([detection.finding for detection in detections])
    worst = next(detection for detection in detections if detection.finding is worst_finding)
    alert, is_new = _find_alert(watch_round, detections, node=node), False
    if alert is None:
        alert, is_new = Alert.objects.get_or_create(
            watch=watch_round.watch,
            model=watch_round.version.model,
            node=node,
            distribution=watch_round.distribution,
            bad=watch_round.new,
            defaults={
                "team": watch_round.watch.team,
                "version": watch_round.version,
                "good": watch_round.old,
                "hardware": worst.hardware,
                "sentence": worst.finding.text[:2000],
                "round": watch_round,
            },
        )
    for detection in detections:
        finding = detection.finding
        Symptom.objects.update_or_create(
            alert=alert, node=node, series=finding.series, kind=finding.kind, defaults=_make_symptom_columns(detection)
        )
    return RaisedAlert(alert, is_new, worst.finding.text)


def _find_alert(watch_round: WatchRound, detections: Sequence[Detection], *, node: str) -> Alert | None:
    """Find the alert about this release that has the node already, else an unsettled one of the same cause, or None."""
    distribution = watch_round.distribution
    rows = Alert.objects.filter(
        watch=watch_round.watch, model=watch_round.version.model, distribution=distribution, bad=watch_round.new
    )
    alerts = rows.exclude(node="").select_related("watch", "team", "model", "version").prefetch_related("symptoms")
    for alert in alerts:
        if node in alert.nodes:
            return alert
    causes = {(detection.finding.kind, _name_operator(detection.comparison)) for detection in detections}
    for alert in alerts:
        is_open = alert.state in OPEN_ALERTS and alert.good == watch_round.old
        if is_open and _share_cause(causes, _list_causes(alert)):
            return alert
    return None


def _list_causes(alert: Alert) -> set[tuple[str, str]]:
    return {
        (symptom.kind, _name_operator(Comparison.model_validate(symptom.comparison) if symptom.comparison else None))
        for symptom in alert.symptoms.all()
        if not symptom.resolved_in
    }


def _name_operator(comparison: Comparison | None) -> str:
    return "" if comparison is None else find_causing_type(comparison)


def _share_cause(causes: Collection[tuple[str, str]], others: Collection[tuple[str, str]]) -> bool:
    """Say whether a cause of `causes` and one of `others` have the same kind and do not name different operators."""
    return any(
        kind == other_kind and (operator == other_operator or not operator or not other_operator)
        for kind, operator in causes
        for other_kind, other_operator in others
    )


def _write_sentence(alert: Alert) -> None:
    """Update the alert's sentence: the text of its leading symptom, followed by a figure for each further node."""
    symptoms = [symptom for symptom in alert.symptoms_by_weight() if not symptom.resolved_in]
    weightiest_by_node = {symptom.node: symptom for symptom in reversed(symptoms)}
    leading = weightiest_by_node.pop(alert.node, None)
    if leading is None:
        return
    other_nodes = []
    for node, symptom in sorted(weightiest_by_node.items()):
        kind = kind_of(symptom.kind)
        figure = change(symptom.size, words=kind.words) if symptom.size else kind.title.word
        other_nodes.append(f"{node} ({figure})")
    suffix = f" Also on {listed(other_nodes, most=MAX_NODES)}." if other_nodes else ""
    alert.sentence = f"{leading.text}{suffix}"[:2000]
    Alert.objects.filter(pk=alert.pk).update(sentence=alert.sentence)


def _announce_raised(raised: RaisedAlert, watch_round: WatchRound) -> None:
    alert, text = raised.alert, raised.text
    if raised.is_new:
        # announce the sentence of a new alert, as it names the other nodes too
        kind, text = AlertEventKind.OPENED, alert.sentence
    elif alert.state in OPEN_ALERTS:
        kind = AlertEventKind.WIDENED
    else:
        alert.change(AlertState.OPEN, resolved_in="")
        kind = AlertEventKind.REOPENED
    announce(alert, alert.log(kind, text, round=watch_round.pk, release=watch_round.new))


def _make_symptom_columns(detection: Detection) -> dict[str, object]:
    finding, comparison = detection.finding, detection.comparison
    return {
        "label": cell_pairs.series_label(detection.cell)[:300],
        "text": finding.text[:2000],
        "size": finding.size,
        "run": detection.run,
        "baseline": finding.baseline,
        "cell": finding.candidate,
        "comparison": None if comparison is None else comparison.model_dump(mode="json"),
        "explanation": _explain_latency(finding, comparison),
        "resolved_in": "",
    }


def _explain_latency(finding: Finding, comparison: Comparison | None) -> str:
    """Say which operator a change of latency comes from; empty for other kinds of change."""
    if not kind_of(finding.kind).is_headline or comparison is None:
        return ""
    return (explain_change(comparison) or describe_largest_type(comparison))[:500]


def update_infra_alert(watch_round: WatchRound, judgement: Judgement) -> Alert | None:
    """Raise the alert that the farm could not measure, one for each release and model, and return it.

    If there is such an alert, it is set to `infra` again, or the problem is only logged in it. Where the farm could
    measure, resolve the model's alerts of this kind in the watch that are in the state `infra`, and return None.
    """
    identity = {
        "watch": watch_round.watch,
        "model": watch_round.version.model,
        "node": "",
        "distribution": watch_round.distribution,
    }
    alerts = Alert.objects.filter(**identity).select_related("watch", "team")
    release = Runtime(distribution=watch_round.distribution, version=watch_round.new)
    if not judgement.infra:
        # a release that failed to run has been measured too, so it resolves these alerts
        measured_again = alerts.none() if judgement.outcome == "infra" else alerts.filter(state=AlertState.INFRA)
        for alert in measured_again:
            if alert.change(AlertState.RESOLVED, resolved_in=watch_round.new):
                text = f"{alert.model.name} is being measured again with {release}."
                announce(alert, alert.log(AlertEventKind.RESOLVED, text, round=watch_round.pk))
        return None
    text = f"The watch “{watch_round.watch.name}” could not measure {watch_round.version} on {release}: "
    text = (text + judgement.infra[0])[:2000]
    alert, is_new = alerts.get_or_create(
        **identity, bad=watch_round.new,
        defaults={
            "team": watch_round.watch.team, "version": watch_round.version, "good": watch_round.old,
            "state": AlertState.INFRA, "sentence": text, "round": watch_round,
        },
    )  # fmt: skip
    if is_new or alert.change(AlertState.INFRA, sentence=text):
        announce(alert, alert.log(AlertEventKind.INFRA, text, round=watch_round.pk))
    else:
        alert.log(AlertEventKind.SEEN_AGAIN, text, round=watch_round.pk)
    return alert


def resolve_alerts(watch_round: WatchRound, document: Document) -> list[Alert]:
    """Resolve the alerts whose changes this round shows to be gone, and return them.

    Only open or acknowledged alerts about an earlier release, or about an earlier version on the same release, are
    checked. Symptoms that are gone are marked; an alert is resolved once all of its symptoms are. Alerts that are
    snoozed until this release or an earlier one wake, resolved or not. Call this in the transaction that judges the
    round.
    """
    of_model = {"watch": watch_round.watch, "model": watch_round.version.model}
    rows = Alert.objects.filter(**of_model, distribution=watch_round.distribution, state__in=OPEN_ALERTS)
    resolved = []
    for alert in rows.exclude(node="").select_related("watch", "team", "model", "version"):
        is_later_release = release_order(watch_round.new) > release_order(alert.bad)
        is_later_version = watch_round.new == alert.bad and watch_round.version.number > alert.version.number
        if is_later_release or is_later_version:
            _wake(watch_round, alert)
            if _resolve_if_gone(watch_round, alert, document):
                resolved.append(alert)
    return resolved


def _resolve_if_gone(watch_round: WatchRound, alert: Alert, document: Document) -> bool:
    """Mark symptoms that are gone on their nodes, and resolve the alert if none is left; log what is found again."""
    old, new = watch_round.watch.runtime(alert.good), watch_round.watch.runtime(watch_round.new)
    found_again: list[Finding] = []
    for node, rows in groupby(alert.symptoms.filter(resolved_in="").order_by("node"), lambda row: row.node):
        symptoms = {(symptom.kind, symptom.series): symptom.pk for symptom in rows}
        on_node = document.model_copy(update={"cells": [cell for cell in document.cells if cell.node in (node, None)]})
        judgement = watch_rounds.judge(on_node, watch_round.watch.rule, old=old, new=new)
        gone = [symptom for key, symptom in symptoms.items() if key in judgement.cleared]
        found_again += [finding for finding in judgement.findings if (finding.kind, finding.series) in symptoms]
        Symptom.objects.filter(pk__in=gone).update(resolved_in=watch_round.new)
    if found_again and not alert.events.filter(facts__round=watch_round.pk).exists():
        alert.log(AlertEventKind.SEEN_AGAIN, watch_rounds.find_worst(found_again).text, round=watch_round.pk)
    is_left = alert.symptoms.filter(resolved_in="").exists() or not alert.symptoms.exists()
    if is_left or not alert.change(AlertState.RESOLVED, resolved_in=watch_round.new):
        return False
    where = f" on {listed(alert.nodes)}" if alert.nodes else ""
    text = f"{alert.model.name}{where} is back to normal with {new}, compared with {old}: {alert.sentence}"
    announce(alert, alert.log(AlertEventKind.RESOLVED, text, round=watch_round.pk, release=watch_round.new))
    return True


def _wake(watch_round: WatchRound, alert: Alert) -> None:
    """Wake an alert that is snoozed until a release, where that one or a later one was measured."""
    if not alert.snoozed_for or release_order(watch_round.new) < release_order(alert.snoozed_for):
        return
    if Alert.objects.filter(pk=alert.pk, snoozed_for=alert.snoozed_for).update(snoozed_for="", snoozed_until=None):
        text = f"Snoozed until {alert.snoozed_for}, which was measured: {alert.sentence}"
        alert.snoozed_for, alert.snoozed_until = "", None
        announce(alert, alert.log(AlertEventKind.WOKEN, text, round=watch_round.pk))


def wake_due_alerts() -> int:
    """Wake and announce the unsettled alerts that were snoozed until a date that has come; return how many."""
    due = Q(state__in=OPEN_ALERTS, snoozed_until__lte=timezone.now())
    count = 0
    for alert in Alert.objects.filter(due).select_related("watch", "team", "model", "version"):
        if Alert.objects.filter(pk=alert.pk, snoozed_until=alert.snoozed_until).update(snoozed_until=None):
            alert.snoozed_until = None
            announce(alert, alert.log(AlertEventKind.WOKEN, f"Snooze expired: {alert.sentence}"))
            count += 1
    return count
