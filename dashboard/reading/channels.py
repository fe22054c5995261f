"""Channels in the settings: where each of them tells, how its messages fare, and what becomes of each message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from farm.alerts.selectors.alerts import shown_target
from farm.alerts.selectors.outbox import Fate
from farm.base.refusals import Refusal
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, moment, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Channel, Delivery

KINDS = {
    "mail": ("Mail", "a mail address", "team@example.org"),
    "webhook": ("Webhook", "an https:// address; every message is signed", "https://example.org/hook"),
    "apprise": ("Apprise", "Slack, Teams, Discord, Matrix and others by their apprise address", "slack://…"),
}
DIGESTS = (("never", "no digest"), ("day", "every day"), ("week", "every week"))
FIELD_OF_CODE = {
    "bad_name": "name",
    "name_taken": "name",
    "too_many": "name",
    "unknown_kind": "kind",
    "no_mail": "kind",
    "digest": "digest",
    "bad_target": "target",
    "not_found": "team",
    "not_allowed": "team",
    "team_not_named": "team",
}
COLUMNS: tuple[Column["Delivery"], ...] = (
    Column("Message", lambda one: Entry(one.kind, href=_alert(one))),
    Column("State", lambda one: verdict_entry(one.state, soft="permanently" if one.state == "failed" else _again(one))),
    Prose("Subject", lambda one: Entry(one.subject)),
    Number("tries", lambda one: counted(one.tries)),
    Prose("Problem", lambda one: Entry(one.problem)),
    Column("Made", lambda one: moment(one.created_at)),
    Column("Sent", lambda one: moment(one.sent_at)),
)


@dataclass(frozen=True)
class Line:
    """One channel. `fate` in words; `problem`: why messages failed for good, empty where none did."""

    channel: "Channel"
    kind: str
    target: str
    digest: str
    fate: str
    problem: str
    may_manage: bool


def lines(channels: Iterable["Channel"], fates: Mapping[int, Fate], *, managed: Iterable[int]) -> list[Line]:
    """Channels with the fate of their messages. `managed`: teams whose channels the reader may change."""
    teams = set(managed)
    return [_line(channel, fates.get(channel.pk, Fate()), channel.team_id in teams) for channel in channels]


def _line(channel: "Channel", fate: Fate, may_manage: bool) -> Line:
    problem = ""
    if fate.failed:
        problem = f"{numbers.counted(fate.failed, 'message')} failed permanently; last error: {fate.problem}"
    return Line(
        channel,
        KINDS[channel.kind][0],
        shown_target(channel),
        dict(DIGESTS)[channel.digest],
        _fate(fate),
        problem,
        may_manage,
    )


def _fate(fate: Fate) -> str:
    parts = [f"{fate.sent} sent"] if fate.sent else []
    parts += [f"{fate.waiting} pending"] if fate.waiting else []
    return ", ".join(parts) or "no messages yet"


def messages_table(deliveries: Iterable["Delivery"]) -> Table:
    return Table.of("messages", "Messages to this channel", COLUMNS, deliveries)


def _alert(one: "Delivery") -> str:
    alert = one.event.alert_id if one.event else None
    return reverse("dashboard:alert", args=[alert]) if alert else ""


def _again(one: "Delivery") -> str:
    return f"retry at {one.due_at:%H:%M} UTC" if one.state == "waiting" and one.tries else ""


def field_of(refusal: Refusal) -> str:
    return FIELD_OF_CODE.get(refusal.code, "target")
