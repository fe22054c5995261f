"""Alerts as a table: a row for each, with what changed, by how much and how sure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading.leads import find_shared_settings, list_settings, make_change_entry, make_interval_entry
from farm.rules.findings.kinds import KINDS, kind_of, rank
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Button, Column, Entry, Number, Prose, Table, as_time, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Alert


ORDERS = {
    "id": ("pk",),
    "state": ("state",),
    "change": ("largest",),
    "model": ("model__name",),
    "node": ("node",),
    "at": ("opened_at",),
}


def state_of(alert: "Alert") -> str:
    """Return the state that lists show: `snoozed` for a snoozed alert that is open or acknowledged, else its state."""
    return "snoozed" if alert.state in ("open", "acknowledged") and alert.is_snoozed else str(alert.state)


def kinds_of(alert: "Alert") -> list[str]:
    """List the kinds of the symptoms that are not resolved, each once, the gravest first. Where all symptoms are
    resolved, their kinds are listed; empty without symptoms."""
    symptoms = list(alert.symptoms.all())
    present = [symptom for symptom in symptoms if not symptom.resolved_in] or symptoms
    return sorted({symptom.kind for symptom in present}, key=rank)


def describe_cause(alert: "Alert") -> str:
    """Explain the leading change by an operator, with its times and doubts; empty where no trace shows a cause.

    It is stored with the leading symptom, usually as `NAME: OLD → NEW µs, explains SHARE (DOUBTS)`.
    """
    return "" if alert.leading_symptom is None else alert.leading_symptom.explanation


def shorten_cause(alert: "Alert") -> str:
    """Write the cause without its times and doubts: `LayerNormalization explains 96 % of the change`. A cause of
    another form only loses what follows ` (`. Empty where no trace shows one."""
    cause = describe_cause(alert).partition(" (")[0]
    name, times, _ = cause.partition(": ")
    _, explains, share = cause.rpartition(", explains ")
    return f"{name} explains {share}" if times and explains else cause


def make_lead(alert: "Alert") -> KeyResult:
    """Make the key result of the alert's leading symptom; an empty one where the alert has no symptom.

    The figures are attributes that farm.alerts.selectors.pages sets on the symptom from its comparison. Where it did
    not, the ratio is the symptom's own size, and the bounds and the level are None. A change of anything but latency
    has only rounds and settings, no figures.
    """
    symptom = alert.leading_symptom
    if symptom is None:
        return KeyResult()
    figures = {name: getattr(symptom, name, None) for name in ("ratio", "low", "high", "level")}
    if not kind_of(symptom.kind).is_headline:
        figures = {}
    elif figures["ratio"] is None:
        figures["ratio"] = symptom.size
    return KeyResult(**figures, rounds=getattr(symptom, "rounds", None) or 0, where=symptom.label)


def find_gravest(alerts: Sequence["Alert"]) -> "Alert":
    """Find the gravest of these alerts, of equally grave ones that with the largest change. There must be one."""
    return min(alerts, key=lambda row: (min(map(rank, kinds_of(row)), default=len(KINDS)), -make_lead(row).change.size))


def write_headline(open_alerts: Sequence["Alert"], count: int) -> str:
    """Name the gravest of these open alerts, and say how many others there are. `count`: how many alerts are open in
    all, of which `open_alerts` may be a part. Without `open_alerts` the headline says only `count`, or `No open
    alert`."""
    if not open_alerts:
        return numbers.counted(count, "open alert") if count else "No open alert"
    alert = find_gravest(open_alerts)
    change = make_lead(alert).change.text
    others = f", {numbers.counted(count - 1, 'more open alert')}" if count > 1 else ""
    return f"{write_change(alert, change) if change else _name_kind(alert)}{others}"


def write_change(alert: "Alert", change: str) -> str:
    """Write a change in the words of headlines: `encoder: 1.32.0 is 59 % slower than 1.29.0`."""
    return f"{alert.model.name}: {alert.bad} is {change} than {alert.good}"


def _name_kind(alert: "Alert") -> str:
    """Name the gravest kind and the release: `encoder: wrong with 1.32.0`. Only an alert that says what could not be
    measured has no symptom; it is open once it is reopened."""
    kinds = kinds_of(alert)
    word = kind_of(kinds[0]).title.word if kinds else "could not be measured"
    return f"{alert.model.name}: {word} with {alert.bad}"


def describe_counts(counts: Mapping[str, int]) -> str:
    """Say how many open alerts are acknowledged, and how many alerts are snoozed or could not be measured; empty
    where all counts are 0. `counts`: must have the keys `acknowledged`, `snoozed` and `infra`."""
    words = (("acknowledged", "acknowledged"), ("snoozed", "snoozed"), ("infra", "could not be measured"))
    return " · ".join(f"{counts[key]} {what}" for key, what in words if counts[key])


def describe_watching(watches: int, confirming: int) -> str:
    """Write the text of an empty list of alerts: how many watches would open an alert, and how many changes are being
    measured again before an alert opens. Empty where there is no watch."""
    if not watches:
        return ""
    found = numbers.counted(confirming, "change") + (" is" if confirming == 1 else " are")
    more = f" {found} measured again before an alert opens." if confirming else ""
    return f"{numbers.counted(watches, 'watch', 'watches')} would open an alert here.{more}"


def _make_name_entry(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert", args=[alert.pk])
    return Entry(f"alert {alert.pk}", alert.pk, href=address, title=alert.sentence)


def _make_kinds_entry(alert: "Alert") -> Entry:
    signs = [kind_of(kind).title for kind in kinds_of(alert)]
    return Entry(signs=signs, value=signs[0].word if signs else None)


def _make_subject_entry(alert: "Alert", shared: Collection[str]) -> Entry:
    """Make the entry of the cause and of the settings that are not `shared` by all rows, with all settings on hover. An
    alert without a series has its sentence."""
    settings = [setting for setting in list_settings(make_lead(alert)) if setting != alert.model.name]
    if not settings:
        return Entry(alert.sentence, title=describe_cause(alert))
    own_settings = ", ".join(setting for setting in settings if setting not in shared)
    cause = shorten_cause(alert)
    title = ". ".join(filter(None, (", ".join(settings), describe_cause(alert))))
    return Entry(cause or own_settings, soft=own_settings if cause else "", title=title)


def _make_release_entry(alert: "Alert") -> Entry:
    found = f"found in {alert.bad}"
    soft = "" if alert.bad in alert.since_phrase else found
    return Entry(alert.since_phrase, is_name=True, soft=soft, title=f"{found}, against {alert.good}")


def _make_state_entry(alert: "Alert") -> Entry:
    return verdict_entry(state_of(alert), soft=alert.assignee.username if alert.assignee else "")


def _make_acknowledge_entry(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert_order", args=[alert.pk, "acknowledge"])
    return Entry(button=Button("Acknowledge", address, f"Acknowledge alert {alert.pk}", key="a"))


def make_table(
    alerts: Iterable["Alert"], *, writable: Collection[int] = (), is_ordered: bool = False, box: str = ""
) -> Table:
    """Make the table of alerts, in the order given. `writable`: the ids of teams in which the reader may change alerts;
    `is_ordered`: the headings link to the list sorted by the server; `box`: the name of the checkboxes that select
    rows. The checkboxes and the column Action appear only where the reader may acknowledge one of the alerts, which
    must be of one of those teams and in the state `open`. Settings that all rows share are written only in the table's
    `shared`."""
    rows = list(alerts)
    models = {alert.model.name for alert in rows}
    shared = [part for part in find_shared_settings(map(make_lead, rows)) if part not in models]
    columns: list[Column[Alert]] = [
        Column("Alert", _make_name_entry, order="id"),
        Column("State", _make_state_entry, order="state"),
        Column("Kind", _make_kinds_entry),
        Number(
            "change",
            lambda alert: make_change_entry(make_lead(alert)),
            "against the release that was still good, in the block that confirmed it",
            order="change",
        ),
        Number("interval", lambda alert: make_interval_entry(make_lead(alert))),
        Column(
            "Model",
            lambda alert: Entry(alert.model.name, href=reverse("dashboard:model", args=[alert.model_id])),
            order="model",
        ),
        Prose("What", lambda alert: _make_subject_entry(alert, shared)),
        Column("Began", _make_release_entry),
        Column("Node", lambda alert: Entry(numbers.listed(alert.nodes) or "no node"), order="node"),
        Column("Opened", lambda alert: as_time(alert.opened_at), order="at"),
    ]
    columns = columns if is_ordered else [column.unordered for column in columns]
    unacknowledged = {alert.pk for alert in rows if alert.state == "open" and alert.team_id in writable}
    if unacknowledged:
        columns.append(
            Column("Action", lambda alert: _make_acknowledge_entry(alert) if alert.pk in unacknowledged else Entry())
        )
    table = Table.of("alert", "Alerts", columns, rows).with_row_keys(
        [alert.pk for alert in rows], box=box if unacknowledged else ""
    )
    return replace(table, shared=", ".join(shared))
