"""Resolving alerts by measurement: a later release, or a later version of the model, is equal to or faster than the
release that was still good; and waking those that were snoozed."""

from itertools import groupby

from django.db.models import Q
from django.utils import timezone

from farm.alerts.models import Alert, Symptom, WatchRound
from farm.alerts.services.announcements import tell
from farm.alerts.states import OPEN_ALERTS, AlertEventKind, AlertState
from farm.contract.document import Document
from farm.rules.changes import watch_rounds
from farm.rules.runtimes.order import release_order
from farm.rules.wording.numbers import listed


def resolve_alerts(one: WatchRound, document: Document) -> list[Alert]:
    """Resolves what this round shows to be well again. Call inside the transaction that judges the round."""
    rows = Alert.objects.filter(watch=one.watch, model=one.version.model, state__in=OPEN_ALERTS).exclude(node="")
    resolved = []
    for alert in rows.select_related("watch", "team", "model", "version"):
        if _is_later(one, alert):
            _wake(one, alert)
            if _is_well(one, alert, document):
                resolved.append(alert)
    return resolved


def _is_later(one: WatchRound, alert: Alert) -> bool:
    is_later_release = release_order(one.new) > release_order(alert.bad)
    return is_later_release or (one.version.number > alert.version.number and one.new == alert.bad)


def _is_well(one: WatchRound, alert: Alert, document: Document) -> bool:
    """Marks symptoms that are gone on their nodes; resolves the alert when none is left."""
    old, new = one.watch.runtime(alert.good), one.watch.runtime(one.new)
    for node, symptoms in groupby(alert.symptoms.filter(resolved_in="").order_by("node"), lambda row: row.node):
        there = [cell for cell in document.cells if cell.node in (node, None)]
        judgement = watch_rounds.judge(document.model_copy(update={"cells": there}), one.watch.rule, old=old, new=new)
        gone = [symptom.pk for symptom in symptoms if (symptom.kind, symptom.series) in judgement.cleared]
        Symptom.objects.filter(pk__in=gone).update(resolved_in=one.new)
    if alert.symptoms.filter(resolved_in="").exists() or not alert.symptoms.exists():
        return False
    if not alert.change(AlertState.RESOLVED, resolved_in=one.new):
        return False
    where = f" on {listed(alert.nodes)}" if alert.nodes else ""
    text = f"{alert.model.name}{where} is back to normal with {new}, compared with {old}: {alert.sentence}"
    tell(alert, alert.log(AlertEventKind.RESOLVED, text, round=one.pk, release=one.new))
    return True


def _wake(one: WatchRound, alert: Alert) -> None:
    """An alert that was snoozed until a release wakes when that one, or a later one, was measured."""
    if not alert.snoozed_for or release_order(one.new) < release_order(alert.snoozed_for):
        return
    if Alert.objects.filter(pk=alert.pk, snoozed_for=alert.snoozed_for).update(snoozed_for="", snoozed_until=None):
        text = f"Snoozed until {alert.snoozed_for}, which was measured: {alert.sentence}"
        alert.snoozed_for, alert.snoozed_until = "", None
        tell(alert, alert.log(AlertEventKind.WOKEN, text, round=one.pk))


def wake_due_alerts() -> int:
    """Wakes alerts whose date has come; gives how many."""
    due = Q(state__in=OPEN_ALERTS, snoozed_until__lte=timezone.now())
    count = 0
    for alert in Alert.objects.filter(due).select_related("watch", "team", "model", "version"):
        if Alert.objects.filter(pk=alert.pk, snoozed_until=alert.snoozed_until).update(snoozed_until=None):
            alert.snoozed_until = None
            tell(alert, alert.log(AlertEventKind.WOKEN, f"Snooze expired: {alert.sentence}"))
            count += 1
    return count
