"""Alerts as a list: what changed, by how much and how sure, each in one row; its sentence on its own page."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading import runs
from farm.rules.findings.kinds import rank, title_of
from farm.rules.presenting.leads import Lead
from farm.rules.presenting.tables import Act, Column, Entry, Number, Prose, Table, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Symptom

ORDERS = {
    "id": ("pk",),
    "state": ("state",),
    "change": ("largest",),
    "model": ("model__name",),
    "node": ("node",),
    "at": ("opened_at",),
}


def state_of(alert: "Alert") -> str:
    """The alert's state; `snoozed` for an unsettled one that is silent."""
    return "snoozed" if alert.state in ("open", "acknowledged") and alert.is_snoozed else str(alert.state)


def kinds_of(alert: "Alert") -> list[str]:
    """What kinds of change it has, the gravest first; those that are still there, unless none is."""
    return sorted({one.kind for one in _left(alert)}, key=rank)


def because(alert: "Alert") -> str:
    """Which operator a change of latency comes from; empty where no trace says it."""
    return next((symptom.explanation for symptom in alert.symptoms.all() if symptom.explanation), "")


def lead_of(alert: "Alert") -> Lead:
    """The figures of its gravest symptom, of several alike the largest; those of none where it has no figures."""
    left = sorted(_left(alert), key=lambda one: (rank(one.kind), -(one.size or 0.0)))
    return _figures(left[0]) if left else Lead()


def _left(alert: "Alert") -> list["Symptom"]:
    symptoms = list(alert.symptoms.all())
    return [symptom for symptom in symptoms if not symptom.resolved_in] or symptoms


def _figures(symptom: "Symptom") -> Lead:
    """As farm.alerts.selectors.pages reads them from the symptom's comparison."""
    known = {name: getattr(symptom, name, None) for name in ("ratio", "low", "high", "level", "rounds")}
    is_latency = symptom.kind == "slower"
    ratio = known["ratio"] if is_latency and known["ratio"] is not None else symptom.size if is_latency else None
    bounds = {name: known[name] for name in ("low", "high", "level")} if is_latency else {}
    return Lead(ratio=ratio, rounds=known["rounds"] or 0, where=symptom.label, **bounds)


def headline(counts: Mapping[str, int]) -> str:
    """How much has to be looked at, in one sentence."""
    first = numbers.counted(counts["open"], "open alert") if counts["open"] else "No open alert"
    others = [f"{counts['snoozed']} snoozed"] if counts["snoozed"] else []
    if counts["infra"]:
        others.append(f"{counts['infra']} where the farm could not measure")
    return f"{first}; {numbers.listed(others)}" if others else first


def _name(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert", args=[alert.pk])
    return Entry(f"alert {alert.pk}", alert.pk, href=address, title=alert.sentence)


def _kinds(alert: "Alert") -> Entry:
    signs = [title_of(kind) for kind in kinds_of(alert)]
    return Entry(signs=signs, value=signs[0].word if signs else None)


def _change(alert: "Alert") -> Entry:
    return runs.change(lead_of(alert))


def _what(alert: "Alert") -> Entry:
    """The series, by its label without the model, and what its change comes from; the sentence of what could not be
    measured."""
    label = lead_of(alert).where
    text = label.removeprefix(f"{alert.model.name}, ") if label else alert.sentence
    return Entry(text, soft=because(alert))


def _release(alert: "Alert") -> Entry:
    return Entry(alert.began, is_name=True, title=f"found in {alert.bad}, against {alert.good}")


def _model(alert: "Alert") -> Entry:
    return Entry(alert.model.name, href=reverse("dashboard:model", args=[alert.model_id]))


def _assignee(alert: "Alert") -> str:
    return alert.assignee.username if alert.assignee else ""


def _acknowledge(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert_order", args=[alert.pk, "acknowledge"])
    return Entry(act=Act("Acknowledge", address, f"Acknowledge alert {alert.pk}", key="a"))


COLUMNS: tuple[Column["Alert"], ...] = (
    Column("Alert", _name, order="id"),
    Column("State", lambda alert: verdict_entry(state_of(alert), soft=_assignee(alert)), order="state"),
    Column("Kind", _kinds),
    Number("change", _change, "of p50 latency against the release before", order="change"),
    Number("interval", lambda alert: runs.interval(lead_of(alert))),
    Number("confidence", lambda alert: runs.confidence(lead_of(alert)), "level of the interval, and rounds"),
    Column("Model", _model, order="model"),
    Prose("What", _what),
    Column("Began", _release),
    Column("Node", lambda alert: Entry(numbers.listed(alert.nodes) or "no node"), order="node"),
    Column("Opened", lambda alert: runs.moment(alert.opened_at), order="at"),
)


def table(
    alerts: Iterable["Alert"], *, writable: Collection[int] = (), is_ordered: bool = False, box: str = ""
) -> Table:
    """Alerts in columns. `writable`: the teams in which the reader may change alerts, by number.

    Where none of them may be acknowledged, none can be chosen.
    """
    rows = list(alerts)
    columns = list(COLUMNS) if is_ordered else [column.unordered for column in COLUMNS]
    may_acknowledge = any(_may_acknowledge(alert, writable) for alert in rows)
    if may_acknowledge:
        columns.append(Column("Action", lambda one: _acknowledge(one) if _may_acknowledge(one, writable) else Entry()))
    return Table.of("alert", "Alerts", columns, rows).keyed(
        [alert.pk for alert in rows], box=box if may_acknowledge else ""
    )


def _may_acknowledge(alert: "Alert", writable: Collection[int]) -> bool:
    return alert.state == "open" and alert.team_id in writable
