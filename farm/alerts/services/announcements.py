"""Queues messages about alerts for channels. Each message is a row, written in the transaction of its cause."""

import secrets
import textwrap
from collections.abc import Mapping

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from farm.alerts.models import Alert, AlertEvent, Channel, Delivery
from farm.alerts.states import ANNOUNCED, AlertEventKind
from farm.contract.version import DELIVERY_QUEUE
from farm.registry.services.messages import DELIVER, send_hint_on_commit

TITLES = {
    AlertEventKind.OPENED: "new",
    AlertEventKind.REOPENED: "recurred",
    AlertEventKind.WIDENED: "more affected",
    AlertEventKind.WOKEN: "snooze expired",
    AlertEventKind.RESOLVED: "resolved",
    AlertEventKind.EXPLAINED: "explained",
    AlertEventKind.INFRA: "could not measure",
}
# kinds of events that are announced even while the alert is snoozed
ALWAYS = (AlertEventKind.RESOLVED, AlertEventKind.WOKEN)


def announce(alert: Alert, event: AlertEvent) -> list[Delivery]:
    """Queue a message about an event for each active channel of the alert's watch, and return the messages.

    A watch without channels uses those of its team. There is no message for a kind of event outside of ANNOUNCED. For
    a snoozed alert there is only one about its resolution or the end of its snooze.
    """
    kind = AlertEventKind(event.kind)
    if kind not in ANNOUNCED or (alert.is_snoozed and kind not in ALWAYS):
        return []
    chosen = alert.watch.channels.all()
    channels = chosen if chosen.exists() else Channel.objects.filter(team=alert.team_id)
    return [
        queue_message(
            channel,
            cause=f"event:{event.pk}",
            kind=f"alert.{kind.value}",
            subject=f"onnxfarm, {TITLES[kind]}: {event.text}",
            text=_write_text(alert, event),
            payload=_make_payload(alert, event),
            event=event,
        )
        for channel in channels.filter(is_active=True)
    ]


def queue_message(
    channel: Channel,
    *,
    cause: str,
    kind: str,
    subject: str,
    text: str,
    payload: Mapping[str, object],
    event: AlertEvent | None = None,
) -> Delivery:
    """Write a message to the outbox, to be sent once the transaction commits.

    The subject is put on one line and cut after a word to 300 characters. If the channel already has a message with
    this `cause`, return that row and send nothing.
    """
    with transaction.atomic():
        row, is_new = Delivery.objects.get_or_create(
            channel=channel,
            cause=cause,
            defaults={
                "event": event,
                "message_id": f"msg_{secrets.token_hex(16)}",
                "kind": kind,
                "subject": textwrap.shorten(subject, 300, placeholder=" …"),
                "text": text,
                "payload": {"type": kind, "timestamp": timezone.now().isoformat(), "data": dict(payload)},
            },
        )
        if is_new:
            send_hint_on_commit(DELIVER, row.pk, queue=DELIVERY_QUEUE)
    return row


def address_of(alert: Alert) -> str:
    return f"{settings.PUBLIC_URL}/alerts/{alert.pk}/"


def _write_text(alert: Alert, event: AlertEvent) -> str:
    lines = [event.text, ""]
    if event.kind != AlertEventKind.RESOLVED:
        lines += [f"- {symptom.text}" for symptom in alert.symptoms_by_weight() if not symptom.resolved_in]
        lines += [f"{alert.since_sentence}."] if alert.since_sentence else []
        lines += [f"- {investigation.sentence}" for investigation in alert.investigations.exclude(sentence="")]
    return "\n".join([*lines, "", f"Watch: {alert.watch.name}", address_of(alert), ""])


def _make_payload(alert: Alert, event: AlertEvent) -> dict[str, object]:
    return {
        "alert": alert.pk,
        "event": event.pk,
        "url": address_of(alert),
        "state": alert.state,
        "sentence": alert.sentence,
        "text": event.text,
        "watch": {"id": alert.watch_id, "name": alert.watch.name},
        "model": alert.model.name,
        "version": alert.version.number,
        "node": alert.node,
        "hardware": alert.hardware,
        "distribution": alert.distribution,
        "good": alert.good,
        "bad": alert.bad,
        "first_bad": alert.first_bad or None,
        "moved": list(alert.changed_packages),
        "symptoms": [
            {
                "kind": symptom.kind,
                "node": symptom.node,
                "series": symptom.label,
                "size": symptom.size,
                "text": symptom.text,
                "explanation": symptom.explanation or None,
                "run": symptom.run_id,
            }
            for symptom in alert.symptoms_by_weight()
        ],
        "investigations": {
            investigation.kind: investigation.sentence for investigation in alert.investigations.exclude(sentence="")
        },
    }
