"""The page of an alert: its evidence, its first bad release and its work-around, each with its measurements. A symptom
without a run has no address."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.figures import operators, ratios
from dashboard.figures.figure import Figure
from dashboard.figures.ratios import Named
from dashboard.reading import alerts, runs
from dashboard.reading.alert_timeline import list_timeline
from dashboard.reading.openings import split_brackets, split_first_sentence
from dashboard.views.access import page, signed_in_user
from dashboard.views.cell import before_and_after_address
from farm.accounts.selectors import can_write, memberships_in
from farm.accounts.states import WRITING_ROLES
from farm.alerts.selectors import alerts as selectors
from farm.alerts.selectors.origins import activity_of_search, describe_search, list_graph_changes
from farm.contract.cells import Runtime
from farm.contract.document_comparisons import Comparison
from farm.rules.cells import commands
from farm.rules.findings.kinds import kind_of
from farm.rules.presenting.lines import BUSY, ComparisonLine, is_by_processor, make_comparison_line
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_number, verdict_entry
from farm.rules.runtimes import providers
from farm.rules.runtimes.order import is_downgrade
from farm.rules.searches.switches import Candidate, Trial
from farm.rules.searches.targets import Step
from farm.rules.searches.work_around import parse_trials
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import sign_of

if TYPE_CHECKING:
    from farm.alerts.models import Alert, Investigation, Symptom


def _change_entry(ratio: float | None, low: float | None, high: float | None) -> Entry:
    return Entry(numbers.change(ratio, low, high), ratio)


def _step_interval_entry(step: Step) -> Entry:
    interval = numbers.change_interval(step.get("low"), step.get("high"), ratio=step.get("ratio"))
    return Entry(interval, step.get("low"))


STEP_COLUMNS: tuple[Column[Step], ...] = (
    Column("Release", lambda step: Entry(step["version"], is_name=True)),
    Column("Outcome", lambda step: verdict_entry(step["outcome"])),
    Number(
        "change",
        lambda step: _change_entry(step.get("ratio"), step.get("low"), step.get("high")),
        "of p50 latency against the good release, in the same block",
    ),
    Number("95 % interval", _step_interval_entry),
    Number("minutes", lambda step: as_number(step.get("minutes"))),
    Column("Run", lambda step: runs.link_run(step.get("run"))),
    Prose("Why", lambda step: Entry(step.get("text") or "")),
)


class TriedSwitch(NamedTuple):
    """A session option that a search tried, and the number of the run that measured it."""

    trial: Trial
    run: int | None


def _trial_change_entry(tried: TriedSwitch) -> Entry:
    compared = tried.trial.comparison
    return _change_entry(compared.ratio, compared.ci_low, compared.ci_high)


TRIAL_COLUMNS: tuple[Column[TriedSwitch], ...] = (
    Column("Switch", lambda tried: Entry(_describe_switch(tried.trial.candidate), is_name=True)),
    Column(
        "Verdict",
        lambda tried: verdict_entry(tried.trial.comparison.verdict),
        "with the option against without it, on the bad release",
    ),
    Number("change", _trial_change_entry),
    Number(
        "removes",
        lambda tried: as_number(tried.trial.undone, numbers.share),
        "share of the slowdown it removes; 100 % is all of it",
    ),
    Number(
        "left",
        lambda tried: ratios.change_entry(tried.trial.remaining_change),
        "what remains, compared with the good release",
    ),
    Number("interval", lambda tried: ratios.interval_entry(tried.trial.remaining_change), "of what remains"),
    Column("Parity", lambda tried: verdict_entry("pass" if tried.trial.keeps_parity else "fail")),
    Column("Run", lambda tried: runs.link_run(tried.run)),
)


@dataclass(frozen=True)
class SearchPanel:
    """A search that was started from the alert. `row`: has its answer and its last run; `is_open`: it has not ended;
    `table`: its steps, or the options that it tried."""

    row: "Investigation"
    sentence: str
    state: str
    is_open: bool
    table: Table


@dataclass(frozen=True)
class FirstBad:
    """The first bad release. `name`: empty where it is not known; `why`: why it is not known, or how sure it is;
    `then`: the label of the link to the search, empty without a link."""

    name: str = ""
    why: str = ""
    then: str = ""


@dataclass(frozen=True)
class Opening:
    """The first words of the page. `because`: what is known about the change; `notes`: sentences on the alert's
    state."""

    headline: str
    because: str
    notes: Sequence[str] = field(default_factory=tuple)


def make_opening(alert: "Alert") -> Opening:
    """Make the first words of an alert's page: what changed, how sure that is, since when, the cause, and the
    work-around that a search found."""
    sentence, rest = split_first_sentence(alert.sentence)
    headline = _describe_change(alert)
    searches = [search for search in alert.investigations.all() if search.kind == "work_around" and search.answer]
    work_around = searches[-1].sentence if searches and (searches[-1].answer or {}).get("is_found") else ""
    _, details = split_brackets(sentence) if headline else ("", [])
    parts = [*details, rest, alert.since_sentence, alerts.shorten_cause(alert), work_around]
    text = " · ".join(part.rstrip(".") for part in parts if part)
    return Opening(headline or sentence, numbers.unbroken(text), _list_notes(alert))


def _describe_change(alert: "Alert") -> str:
    """Write `encoder: 1.32.0 is 59 % slower than 1.29.0`; empty for changes of anything but latency or throughput."""
    line = _make_line(alert.leading_symptom) if alert.leading_symptom is not None else None
    return alerts.write_change(alert, line.change.text) if line else ""


def _list_notes(alert: "Alert") -> list[str]:
    sentences = []
    if alert.is_snoozed:
        until = f"{alert.snoozed_until:%Y-%m-%d %H:%M} UTC" if alert.snoozed_until else f"release {alert.snoozed_for}"
        sentences.append(f"Snoozed until {until}. No notifications until then.")
    if alert.state == "resolved":
        how = f"by measurement, with {alert.resolved_in}" if alert.resolved_in else "by measurement"
        sentences.append(f"Resolved {how}.")
    if alert.state in ("invalid", "infra") and alert.note:
        sentences.append(f"{sign_of(alert.state).word.capitalize()}: {alert.note}")
    return sentences


def leading_provider(alert: "Alert") -> str:
    """Find the short name of the provider with which the label of the leading symptom begins; `cpu` where it names none
    or there is no symptom."""
    symptom = alert.leading_symptom
    word = _short_label(alert, symptom).partition(", ")[0] if symptom is not None else ""
    entry = providers.find(word) or providers.find(f"{word}ExecutionProvider")
    return entry.short if entry is not None else "cpu"


def find_headline_comparison(symptom: "Symptom") -> Comparison | None:
    """Read the comparison behind a change of latency or throughput; None for other changes, and where there is none."""
    if not symptom.comparison or not kind_of(symptom.kind).is_headline:
        return None
    return Comparison.model_validate(symptom.comparison)


def name_comparisons(alert: "Alert") -> list[Named]:
    """Name the comparisons of the alert's symptoms for the chart of ratios, once for each series on a node. Symptoms
    without a comparison are left out."""
    step = f"{alert.good} → {alert.bad}"
    symptoms = {(symptom.node, symptom.series): symptom for symptom in alert.symptoms.all() if symptom.comparison}
    named = []
    for symptom in symptoms.values():
        pair = Comparison.model_validate(symptom.comparison)
        node = f"{symptom.node}: " if len(alert.nodes) > 1 else ""
        where = f"{node}{_short_label(alert, symptom)}"
        named.append(Named(pair, where, step, cell_address(symptom), make_comparison_line(pair, {})))
    return named


def _short_label(alert: "Alert", symptom: "Symptom") -> str:
    return str(symptom.label).removeprefix(f"{alert.model.name}, ")


def cell_address(symptom: "Symptom") -> str:
    return reverse("dashboard:cell", args=[symptom.run_id, symptom.cell]) if symptom.run_id else ""


class Evidence(NamedTuple):
    """A row of the evidence. `line`: the comparison in words, None for changes that have no comparison."""

    symptom: "Symptom"
    line: ComparisonLine | None


def make_evidence_table(alert: "Alert") -> Table:
    """Make the table of all symptoms, also resolved ones, each with a link to its cell. Symptoms on the alert's own
    node come first, then the other nodes by name; of a node the weightiest first. Changes of outputs, placement or
    endings have no figures."""
    ordered = sorted(alert.symptoms_by_weight(), key=lambda symptom: (symptom.node != alert.node, symptom.node))
    rows = [Evidence(symptom, _make_line(symptom)) for symptom in ordered]
    columns: tuple[Column[Evidence], ...] = (
        Column("Change", lambda row: Entry(sign=kind_of(row.symptom.kind).title, value=row.symptom.kind)),
        *((Column("Node", lambda row: Entry(row.symptom.node)),) if len(alert.nodes) > 1 else ()),
        Column("Series", lambda row: Entry(_short_label(alert, row.symptom), href=cell_address(row.symptom))),
        Number("change", _size_entry, "the paired estimate, over the rounds of one block"),
        Number("95 % interval", lambda row: ratios.interval_entry(row.line.change if row.line else None)),
        Column("Of", lambda row: Entry(row.line.quantity, title=row.line.details) if row.line else Entry()),
        Number(alert.good, lambda row: _side_entry(row.line, 0), "median of the same launches, with the good release"),
        Number(alert.bad, lambda row: _side_entry(row.line, 1), "the same, with the bad release"),
        Number("rounds", lambda row: as_count(row.line.rounds) if row.line else Entry()),
        Column(
            "Now",
            lambda row: Entry(f"resolved in {row.symptom.resolved_in}" if row.symptom.resolved_in else "still present"),
        ),
        # a slowdown's sentence is already in the headline
        Prose("Cause", lambda row: Entry(row.symptom.explanation or ("" if row.line else row.symptom.text))),
    )
    return Table.of("evidence", "What changed, by series", columns, rows)


def _make_line(symptom: "Symptom") -> ComparisonLine | None:
    comparison = find_headline_comparison(symptom)
    return None if comparison is None else make_comparison_line(comparison, {})


def _side_entry(line: ComparisonLine | None, place: int) -> Entry:
    """Make the entry of a median: of the good release at place 0, of the bad one at 1. Where the line leaves both out
    it says so, with the reason on hover; without medians it is empty."""
    if line is None or not line.sides:
        return Entry("left out", title=line.why) if line and line.why else Entry()
    return Entry(f"{line.sides[place]} {line.unit}")


def _size_entry(row: "Evidence") -> Entry:
    symptom, line = row
    if line is not None:
        return ratios.change_entry(line.change)
    return Entry(numbers.change(symptom.size, words=kind_of(symptom.kind).words) if symptom.size else "", symptom.size)


def make_search_panel(alert: "Alert", kind: str) -> SearchPanel | None:
    """Make the panel of the newest search of a kind, `since_when` or `work_around`, open or ended; None where no such
    search was started. Tried options are sorted by how much of the slowdown they remove."""
    searches = [search for search in alert.investigations.all() if search.kind == kind]
    if not searches:
        return None
    newest = searches[-1]
    if kind == "since_when":
        table = Table.of("since-when", "Releases measured against the good one", STEP_COLUMNS, newest.steps)
    else:
        trials = [TriedSwitch(trial, step.get("run")) for step in newest.steps for trial in parse_trials(step)]
        trials.sort(key=lambda tried: -tried.trial.undone)
        table = Table.of("work-around", "Session options tried", TRIAL_COLUMNS, trials)
    is_open = newest.state in ("waiting", "measuring")
    return SearchPanel(newest, describe_search(newest), activity_of_search(newest), is_open, table)


def find_first_bad(alert: "Alert", search: SearchPanel | None, *, may_ask: bool) -> FirstBad:
    """Name the first bad release, or say why it is not known. `search`: the newest bisection, None where there was
    none; `may_ask`: the reader may start one. Nothing is started here."""
    if alert.first_bad:
        return FirstBad(name=alert.first_bad)
    if search is not None and search.is_open:
        return FirstBad(why="Bisecting…", then="See progress")
    if search is not None and (latest := (search.row.answer or {}).get("first_bad")):
        return FirstBad(name=latest, why="at the latest;", then="see the measurements")
    if search is not None:
        return FirstBad(why="not found.", then="See why, or bisect again")
    if not alert.node:
        return FirstBad(why="none: not measured")
    if alert.is_of_versions:
        return FirstBad(why="not applicable: versions of the model were compared on one release")
    if is_downgrade(alert.good, alert.bad):
        return FirstBad(why=f"not applicable: {alert.bad} is older than {alert.good}")
    return FirstBad(why="not known yet.", then="Bisect") if may_ask else FirstBad(why="not known: no bisection was run")


def _describe_switch(candidate: Candidate) -> str:
    if candidate.kind == "level":
        return f"optimization level {candidate.level}"
    if candidate.kind != "optimizers":
        return candidate.label
    return f"without {numbers.listed(candidate.names, most=4)}"


@page
def alert(request: HttpRequest, alert_id: int) -> HttpResponse:
    return render_alert(request, selectors.alert(signed_in_user(request), alert_id))


def render_alert(request: HttpRequest, row: "Alert", *, status: int = 200, **more: object) -> HttpResponse:
    """Render the page of an alert. `more` adds to or replaces parts of its context, such as the errors and texts of its
    forms."""
    kinds, compared = alerts.kinds_of(row), name_comparisons(row)
    pairs = [find_headline_comparison(symptom) for symptom in row.symptoms.all()]
    since_when, may_write = make_search_panel(row, "since_when"), can_write(signed_in_user(request), team=row.team)
    may_ask = (
        bool(row.node)
        and not row.is_of_versions
        and not is_downgrade(row.good, row.bad)
        and any(not symptom.resolved_in for symptom in row.symptoms.all())
    )
    lead = row.leading_symptom
    context = {
        "alert": row,
        "state": alerts.state_of(row),
        "kinds": [kind_of(kind).title for kind in kinds],
        "kind_names": kinds,
        "bisect_command": commands.bisect_command(
            row.version.artifact.main, good=row.good, bad=row.bad, provider=leading_provider(row)
        ),
        "opening": make_opening(row),
        "evidence": make_evidence_table(row),
        "busy": BUSY if any(is_by_processor(pair) for pair in pairs if pair is not None) else "",
        "figure": ratios.draw_ratios(compared) if len(compared) > 1 else None,
        "operators": _draw_operators(row),
        "graph_changes": list_graph_changes(lead) if lead is not None else [],
        "traces": before_and_after_address(lead.run_id, lead.baseline, lead.cell) if lead and lead.run_id else "",
        "since_when": since_when,
        "first_bad": find_first_bad(row, since_when, may_ask=may_write and may_ask),
        "work_around": make_search_panel(row, "work_around"),
        "members": [member.user for member in memberships_in(row.team) if member.role in WRITING_ROLES],
        "timeline": list_timeline(row),
        "may_write": may_write,
        "may_ask": may_ask,
        "report_command": f"onnxfarm report {row.pk}",
        "has_evidence": any(symptom.run_id for symptom in row.symptoms.all()),
        **more,
    }
    return render(request, "dashboard/alert.html", context, status=status)


def _draw_operators(row: "Alert") -> Figure | None:
    """Draw the operators behind the leading change of latency; None where the change was not traced."""
    comparison = find_headline_comparison(row.leading_symptom) if row.leading_symptom is not None else None
    if comparison is None or not comparison.operators:
        return None
    good, bad = (Runtime(distribution=row.distribution, version=version) for version in (row.good, row.bad))
    return operators.draw_operators(comparison, (titles.runtime(good), titles.runtime(bad)))
