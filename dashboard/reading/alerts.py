"""Alerts as a list: what changed, by how much and how sure, each in one row; its sentence on its own page."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading import runs
from farm.contract.cells import Runtime
from farm.rules.findings.kinds import kind_of, rank
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Button, Column, Entry, Number, Prose, Table, as_time, verdict_entry
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, AlertEvent, Investigation, Symptom


ORDERS = {
    "id": ("pk",),
    "state": ("state",),
    "change": ("largest",),
    "model": ("model__name",),
    "node": ("node",),
    "at": ("opened_at",),
}
# signs of what an alert's log tells
EVENT_SIGNS = {"opened": "open", "reopened": "open", "explained": "answered", "woken": "open"}


def state_of(alert: "Alert") -> str:
    return "snoozed" if alert.state in ("open", "acknowledged") and alert.is_snoozed else str(alert.state)


def kinds_of(alert: "Alert") -> list[str]:
    """List the kinds of its symptoms that are still present, the gravest first; of all symptoms where none is."""
    symptoms = list(alert.symptoms.all())
    present = [symptom for symptom in symptoms if not symptom.resolved_in] or symptoms
    return sorted({symptom.kind for symptom in present}, key=rank)


def describe_cause(alert: "Alert") -> str:
    """Name the operator that the leading change comes from; empty where no trace shows it."""
    return "" if alert.leading_symptom is None else alert.leading_symptom.explanation


def shorten_cause(alert: "Alert") -> str:
    """Write the cause in few words, `LayerNormalization explains 96 % of the change`: its times and doubts stand on
    the alert's page. Empty where no trace shows one."""
    first = describe_cause(alert).partition(" (")[0]
    name, times, part = *first.partition(": ")[::2], first.rpartition(", explains ")[2]
    return f"{name} explains {part}" if times and part != first else first


def find_lead(alert: "Alert") -> KeyResult:
    return KeyResult() if alert.leading_symptom is None else _read_figures(alert.leading_symptom)


def _read_figures(symptom: "Symptom") -> KeyResult:
    """Read the figures of a symptom, which farm.alerts.selectors.pages adds from its comparison."""
    known = {name: getattr(symptom, name, None) for name in ("ratio", "low", "high", "level", "rounds")}
    is_latency = kind_of(symptom.kind).is_headline
    ratio = known["ratio"] if is_latency and known["ratio"] is not None else symptom.size if is_latency else None
    bounds = {name: known[name] for name in ("low", "high", "level")} if is_latency else {}
    return KeyResult(ratio=ratio, rounds=known["rounds"] or 0, where=symptom.label, **bounds)


def write_headline(open_alerts: Sequence["Alert"], count: int) -> str:
    """Name the gravest of the open alerts that are given, `encoder: 1.32.0 is 59 % slower than 1.29.0`, and say how
    many of `count` there are beside it."""
    if not open_alerts:
        return numbers.counted(count, "open alert") if count else "No open alert"
    alert = min(open_alerts, key=lambda row: (rank(kinds_of(row)[0]), -find_lead(row).change.size))
    change = find_lead(alert).change.text
    found = f"{alert.bad} is {change} than {alert.good}" if change else _name_kind(alert)
    others = f", {numbers.counted(count - 1, 'more open alert')}" if count > 1 else ""
    return f"{alert.model.name}: {found}{others}"


def _name_kind(alert: "Alert") -> str:
    return f"{kind_of(kinds_of(alert)[0]).title.word} with {alert.bad}"


def describe_counts(counts: Mapping[str, int]) -> str:
    """Say how many open alerts are acknowledged, and how many alerts are snoozed or could not be measured; empty
    where none are. `counts`: by `acknowledged`, `snoozed` and `infra`."""
    words = (("acknowledged", "acknowledged"), ("snoozed", "snoozed"), ("infra", "could not be measured"))
    return " · ".join(f"{counts[key]} {what}" for key, what in words if counts[key])


def describe_watching(watches: int, confirming: int) -> str:
    """Say for an empty list of alerts how many watches would open one, and how many changes are being confirmed;
    empty without a watch."""
    if not watches:
        return ""
    found = numbers.counted(confirming, "change") + (" is" if confirming == 1 else " are")
    more = f" {found} measured again before an alert opens." if confirming else ""
    return f"{numbers.counted(watches, 'watch', 'watches')} would open an alert here.{more}"


def _name(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert", args=[alert.pk])
    return Entry(f"alert {alert.pk}", alert.pk, href=address, title=alert.sentence)


def _kinds(alert: "Alert") -> Entry:
    signs = [kind_of(kind).title for kind in kinds_of(alert)]
    return Entry(signs=signs, value=signs[0].word if signs else None)


def _change(alert: "Alert") -> Entry:
    return runs.lead_change(find_lead(alert))


def _what(alert: "Alert", shared: Collection[str] = ()) -> Entry:
    """What the change comes from, and the series by the settings that are not `shared` by all rows, all of it on hover;
    the sentence of what could not be measured."""
    settings = [part for part in runs.list_settings(find_lead(alert)) if part != alert.model.name]
    series, cause = ", ".join(settings), describe_cause(alert)
    own = ", ".join(part for part in settings if part not in shared)
    parts = [shorten_cause(alert), own] if series else [alert.sentence]
    first, *rest = [*filter(None, parts), ""]
    return Entry(first, soft="".join(rest), title=". ".join(filter(None, (series, cause))))


def _release(alert: "Alert") -> Entry:
    found = f"found in {alert.bad}"
    soft = "" if alert.bad in alert.since_phrase else found
    return Entry(alert.since_phrase, is_name=True, soft=soft, title=f"{found}, against {alert.good}")


def _model(alert: "Alert") -> Entry:
    return Entry(alert.model.name, href=reverse("dashboard:model", args=[alert.model_id]))


def _state(alert: "Alert") -> Entry:
    return verdict_entry(state_of(alert), soft=alert.assignee.username if alert.assignee else "")


def _acknowledge(alert: "Alert") -> Entry:
    address = reverse("dashboard:alert_order", args=[alert.pk, "acknowledge"])
    return Entry(button=Button("Acknowledge", address, f"Acknowledge alert {alert.pk}", key="a"))


COLUMNS: tuple[Column["Alert"], ...] = (
    Column("Alert", _name, order="id"),
    Column("State", _state, order="state"),
    Column("Kind", _kinds),
    Number(
        "change", _change, "against the release that was still good, in the block that confirmed it", order="change"
    ),
    Number("interval", lambda alert: runs.lead_interval(find_lead(alert))),
    Column("Model", _model, order="model"),
    Prose("What", _what),
    Column("Began", _release),
    Column("Node", lambda alert: Entry(numbers.listed(alert.nodes) or "no node"), order="node"),
    Column("Opened", lambda alert: as_time(alert.opened_at), order="at"),
)


def make_table(
    alerts: Iterable["Alert"], *, writable: Collection[int] = (), is_ordered: bool = False, box: str = ""
) -> Table:
    """Make the table of alerts. `writable`: the ids of teams in which the reader may change alerts; `is_ordered`:
    the server sorts them; `box`: the name of the boxes that choose rows. Without an alert to acknowledge no rows can
    be chosen."""
    rows = list(alerts)
    models = {alert.model.name for alert in rows}
    shared = [part for part in runs.find_shared_settings(map(find_lead, rows)) if part not in models]
    subject = Prose["Alert"]("What", lambda alert: _what(alert, shared))
    known = [subject if column.text == subject.text else column for column in COLUMNS]
    columns = known if is_ordered else [column.unordered for column in known]
    unseen = {alert.pk for alert in rows if alert.state == "open" and alert.team_id in writable}
    if unseen:
        columns.append(Column("Action", lambda alert: _acknowledge(alert) if alert.pk in unseen else Entry()))
    table = Table.of("alert", "Alerts", columns, rows).with_row_keys(
        [alert.pk for alert in rows], box=box if unseen else ""
    )
    return replace(table, shared=", ".join(shared))


@dataclass(frozen=True)
class Change:
    """One thing that happened, in a sentence that leads to it."""

    at: datetime
    sign: Sign
    text: str
    href: str


def make_release_change(distribution: str, count: int, version: str, at: datetime) -> Change:
    """Describe releases that the package index newly offers, in one change. `version` is named only where `count` is
    1."""
    runtime = titles.runtime_in_words(Runtime(distribution=distribution, version=version))
    text = f"{runtime} appeared." if count == 1 else f"{count} releases of {distribution} became known."
    href = reverse("dashboard:release", args=[distribution, version]) if count == 1 else reverse("dashboard:runtimes")
    return Change(at, Sign("→", "release", "quiet"), text, href)


# newest entries of the log that are shown
SHOWN = 200
MEASURED, CONFIRMED = Sign("→", "measured", "quiet"), Sign("✓", "confirmed", "quiet")
BEGAN = Sign("→", "asked", "quiet")
SEARCHES = {"since_when": "Bisection", "work_around": "Search for a work-around"}


@dataclass(frozen=True)
class TimelineEntry:
    """One line: when, its sign, the sentence, and the number of the run that it is about."""

    at: datetime
    sign: Sign
    text: str
    run: int | None = None

    @property
    def href(self) -> str:
        return reverse("dashboard:run", args=[self.run]) if self.run else ""


def list_timeline(alert: "Alert") -> list[TimelineEntry]:
    """List the events of an alert, the oldest first: the round that found it, the run that confirmed it, the newest
    SHOWN entries of its log, and its searches, which stand for what the log says was explained."""
    # what was explained is what the searches found, which stands beside them
    events = [event for event in alert.events.all() if event.kind != "explained"][-SHOWN:]
    searches = [entry for investigation in alert.investigations.all() for entry in _list_search_entries(investigation)]
    return sorted([*_list_round_entries(alert), *map(_event, events), *searches], key=lambda entry: entry.at)


def _list_round_entries(alert: "Alert") -> Iterator[TimelineEntry]:
    """The round that found it, and the run that repeated it before anybody was told."""
    found = alert.round
    if found is None:
        return
    # of a change between what works and what does not, one side has no figures
    did = "measured" if found.compared else "tried"
    sentence = f"{found.new} was {did} against {found.old} on {found.version}."
    measured_at = (found.run.finished_at if found.run else None) or found.judged_at or found.created_at
    yield TimelineEntry(measured_at, MEASURED, sentence, found.run_id)
    if found.confirming_id and found.judged_at:
        yield TimelineEntry(found.judged_at, CONFIRMED, "A second run confirmed it.", found.confirming_id)


def _event(event: "AlertEvent") -> TimelineEntry:
    # the headline has said what was found
    text = "The alert was opened." if event.kind == "opened" else str(event.text)
    return TimelineEntry(event.at, sign_of(EVENT_SIGNS.get(event.kind, event.kind)), numbers.unbroken(text))


def _list_search_entries(search: "Investigation") -> Iterator[TimelineEntry]:
    """That it began, how many measurements it took so far, and its answer."""
    took = [float(step.get("minutes") or 0.0) for step in search.steps]
    minutes = f" in {numbers.duration(round(60.0 * sum(took)))}" if sum(took) else ""
    so_far = f": {numbers.counted(len(took), 'run')}{minutes}" if took else ""
    began = f"{SEARCHES.get(search.kind, search.kind)} began{so_far}."
    yield TimelineEntry(search.started_at, BEGAN, began, search.run_id)
    if search.ended_at:
        yield TimelineEntry(search.ended_at, sign_of(search.state), numbers.unbroken(search.sentence))
