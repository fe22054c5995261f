"""Runs as a list: what each leads with in columns, its sentence only on its own page; and that page's first words."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.reading.cell import describe_placement
from farm.alerts.selectors.origins import confirmed_leads
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.rules.presenting import answers, sentences
from farm.rules.presenting.answers import Answer
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import name_cells, rank_results
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_time, verdict_entry
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG
from farm.runs.states import RunReason

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.registry.models import Version
    from farm.runs.models import Run
    from farm.runs.selectors.pages import FinishedRun


NOTHING = KeyResult()
IN_BRACKETS = re.compile(r" \(([^()]*)\)")
# what a run leads with that has measured nothing
FATES = frozenset(CellStatus) - {CellStatus.DONE}


def find_lead(run: "Run | None") -> KeyResult:
    return KeyResult.model_validate(run.lead) if run is not None and run.lead else NOTHING


def confirm(runs: Iterable["Run | None"]) -> dict[int, KeyResult]:
    """Finds what the fresh blocks lead with that confirmed runs of watches, by the number of the confirmed run; runs
    that were not confirmed are left out. Asks the database nothing where no watch began one."""
    watched = [run.pk for run in runs if run is not None and run.reason == RunReason.WATCH]
    return confirmed_leads(watched) if watched else {}


def lead_verdict(lead: KeyResult) -> Entry:
    """Makes the table entry of the verdict, empty without one; a precision or batch beside another has not the
    colour of a regression."""
    entry = verdict_entry(lead.verdict) if lead.verdict else Entry()
    is_choice = lead.axis and entry.sign is not None and not _is_news(lead)
    return replace(entry, sign=replace(entry.sign, tone="quiet")) if is_choice and entry.sign else entry


def pick_confirmed(lead: KeyResult, confirmed: KeyResult) -> KeyResult:
    """Returns what the fresh block leads with where it confirms what the run leads with, else that of the run."""
    is_same = (confirmed.step, confirmed.verdict) == (lead.step, lead.verdict)
    return confirmed if confirmed.ratio is not None and lead.ratio is not None and is_same else lead


def lead_change(lead: KeyResult, confirmed: KeyResult = NOTHING) -> Entry:
    """Makes the table entry of the change; of a run of one cell, of its latency; empty where there is neither.
    `confirmed`: what the fresh block leads with that confirmed the run; its change is shown where it has the same
    step and verdict, the first behind it."""
    shown = pick_confirmed(lead, confirmed)
    if shown.ratio is not None:
        return Entry(shown.change.text, shown.ratio, soft="" if shown == lead else f"first {lead.change.amount}")
    if lead.p50_ms is not None:
        soft = "CPU time" if lead.quantity == "processor" else ""
        return Entry(f"{numbers.milliseconds(lead.p50_ms, lead.p50_ci_ms)} ms", soft=soft)
    return Entry()


def lead_interval(lead: KeyResult, confirmed: KeyResult = NOTHING) -> Entry:
    """Makes the table entry of the interval of the change, its level and rounds on hover; of a run of one cell, of
    its latency; empty where there is neither. `confirmed` as in lead_change."""
    lead = pick_confirmed(lead, confirmed)
    if lead.ratio is not None and lead.low is not None:
        sure = f"{numbers.percent(lead.level)}, {numbers.counted(lead.rounds, 'round')}" if lead.level else ""
        return Entry(lead.change.interval, lead.low, title=sure)
    if lead.p50_ms is not None:
        return Entry(numbers.plus_minus(lead.p50_ms, lead.p50_ci_ms))
    return Entry()


def list_settings(lead: KeyResult) -> list[str]:
    """Lists the settings that both sides of the leading comparison have in common, and `on` the node where they were
    measured."""
    return [*(lead.where.split(", ") if lead.where else []), *([f"on {lead.node}"] if lead.node else [])]


def find_shared_settings(leads: Iterable[KeyResult]) -> list[str]:
    """Find the settings that all leads have or compare, which need not stand in every row; empty for a single lead.
    Leads without settings do not count."""
    known = [(found, {*found, *lead.step.split(" → ")}) for lead in leads if (found := list_settings(lead))]
    every = dict.fromkeys(part for settings, _ in known for part in settings)
    return [part for part in every if all(part in parts for _, parts in known)] if len(known) > 1 else []


def lead_subject(lead: KeyResult, shared: Collection[str] = ()) -> Entry:
    """Makes the table entry of what was compared; behind it the settings that are not `shared` by all rows, why there
    are no figures, and what failed. All of it on hover."""
    settings = list_settings(lead)
    where = ", ".join(part for part in settings if part not in shared)
    why = lead.reason if lead.ratio is None and lead.p50_ms is None else ""
    why = why.rstrip(".") if lead.unfinished else why
    soft = ". ".join(filter(None, (where, why, lead.unfinished)))
    return Entry(lead.step, soft=soft, title=". ".join(filter(None, (", ".join(settings), why, lead.unfinished))))


def link_run(run_id: int | None, *, title: str = "", soft: str = "") -> Entry:
    """Makes a table entry that links to a run by its number; without one it says that the run was removed."""
    if run_id is None:
        return Entry("removed")
    return Entry(f"run {run_id}", run_id, href=reverse("dashboard:run", args=[run_id]), title=title, soft=soft)


def measured_entry(run: "Run | None", *, last: "Run | None" = None) -> Entry:
    """Makes the table entry of when a run ended, named unless it is the `last`; empty where it measured nothing."""
    if run is None or run.finished_at is None or not run.lead or find_lead(run).verdict in FATES:
        return Entry()
    return replace(as_time(run.finished_at), soft="" if run == last else f"run {run.pk}")


def person_name(person: "User | None") -> str:
    """Return the username; without a person “a former member”."""
    return person.username if person else "a former member"


def version_address(version: "Version") -> str:
    return f"{reverse('dashboard:model', args=[version.model_id])}?version={version.number}"


NAMES: tuple[Column["Run"], ...] = (
    Column("Run", lambda run: link_run(run.pk, title=run.headline), order="id"),
    Column("Model", lambda run: Entry(str(run.version), href=version_address(run.version)), order="model"),
)
ORIGINS: tuple[Column["Run"], ...] = (
    Column("Why", lambda run: Entry(run.reason)),
    Number("cells", lambda run: as_count(run.cell_count), order="cells"),
    Column("Submitted", lambda run: as_time(run.created_at), order="at"),
    Column("By", lambda run: Entry(person_name(run.requested_by))),
)
ORDERS = {
    "id": ("pk",),
    "model": ("version__model__name", "version__number"),
    "state": ("state", "outcome"),
    "verdict": ("lead__verdict",),
    "change": ("lead__ratio",),
    "cells": ("cell_count",),
    "at": ("created_at",),
}


def make_table(runs: Iterable["Run"], states: Mapping[int, str], *, is_ordered: bool = False, box: str = "") -> Table:
    """Makes the table of runs, a row each. `states`: of each, by its number; `is_ordered`: the server sorts them;
    `box`: the name of the boxes that choose rows, none where it is empty. Settings that all rows share stand once,
    above the rows; why and by whom runs were made has a column only where rows differ in it."""
    rows = list(runs)
    shared, confirmed = find_shared_settings(map(find_lead, rows)), confirm(rows)
    state = Column["Run"]("State", lambda run: verdict_entry(states[run.pk]), order="state")
    figures = (
        Column["Run"]("Verdict", lambda run: lead_verdict(find_lead(run)), order="verdict"),
        Number["Run"](
            "change",
            lambda run: lead_change(find_lead(run), confirmed.get(run.pk, NOTHING)),
            "of what the run leads with, new against old",
            order="change",
        ),
        Number["Run"]("interval", lambda run: lead_interval(find_lead(run), confirmed.get(run.pk, NOTHING))),
    )
    subject = Prose["Run"]("What", lambda run: lead_subject(find_lead(run), shared))
    # why a run was made, and by whom, where that is not the same in every row
    origins = [column for column in ORIGINS if column.order or len({column.entry(run).text for run in rows}) > 1]
    columns = [column if is_ordered else column.unordered for column in (*NAMES, state, *figures, subject, *origins)]
    table = Table.of("runs", "Runs", columns, rows).with_row_keys([run.pk for run in rows], box=box)
    return replace(table, shared=", ".join(shared))


@dataclass(frozen=True)
class News:
    """Models that a release or a version changed lately, the gravest first.

    `headline` names the worst, and is empty where nothing got worse; `counts` says in words how many are worse and
    better. `is_measured` says whether any run has ended.
    """

    table: Table
    headline: str
    counts: str
    is_measured: bool


# of one model: its newest run, what that leads with, and what a fresh block did that confirmed it
NewsRow = tuple["FinishedRun", KeyResult, KeyResult]
NEWS: tuple[Column[NewsRow], ...] = (
    Column("Model", lambda news: Entry(news[0].name, href=reverse("dashboard:model", args=[news[0].model]))),
    Column("Verdict", lambda news: lead_verdict(news[1])),
    Number("change", lambda news: lead_change(news[1], news[2])),
    Prose("What", lambda news: lead_subject(news[1])),
    Column("Run", lambda news: link_run(news[0].run)),
    Column("Measured", lambda news: as_time(news[0].at)),
)
# models that have a row
MAX_NEWS = 12


def make_news(ended: Sequence["FinishedRun"], *, since: datetime) -> News:
    """Find the models that got better or worse since a moment. `ended`: ended runs, the newest first.

    Of each model the newest run counts that compared releases or versions of it, or had wrong or misplaced outputs;
    a later run of precisions alone does not hide it. All such models are counted, and the first MAX_NEWS have a row.
    The counts say “in the last 7 days” whatever `since` is.
    """
    newest: dict[int, tuple[FinishedRun, KeyResult]] = {}
    for row in ended:
        lead = KeyResult.model_validate(row.lead)
        if _is_news(lead):
            newest.setdefault(row.model, (row, lead))
    recent = [(row, lead) for row, lead in newest.values() if row.at >= since]
    ranked = sorted(((_rank_gravity(lead), row, lead) for row, lead in recent), key=lambda known: known[0])
    news = [(row, lead) for gravity, row, lead in ranked if gravity < (SETTLED, 0.0)]
    worse = sum(is_worse(lead) for _, lead in news)
    sides = [f"{count} {word}" for count, word in ((worse, "worse"), (len(news) - worse, "better")) if count]
    counts = f"{', '.join(sides)} in the last 7 days" if sides else ""
    again = confirmed_leads(row.run for row, _ in news[:MAX_NEWS]) if news else {}
    shown = [(row, lead, again.get(row.run, NOTHING)) for row, lead in news[:MAX_NEWS]]
    headline = write_worst((row.name, pick_confirmed(lead, again.get(row.run, NOTHING))) for row, lead in news)
    return News(Table.of("news", "Better or worse", NEWS, shown), headline, counts, bool(ended))


def is_worse(lead: KeyResult) -> bool:
    """Whether outputs are wrong or ran elsewhere than asked, or a release or a version made the model worse."""
    return _is_news(lead) and _rank_gravity(lead) < (SETTLED, 0.0) and not lead.change.is_gain


def write_worst(found: Iterable[tuple[str, KeyResult]]) -> str:
    """Write the headline of a list of models or runs: the gravest of what got worse, and how many others did.
    `found`: the name of each model and what its run leads with. Empty where nothing got worse."""
    worse = sorted(((name, lead) for name, lead in found if is_worse(lead)), key=lambda row: _rank_gravity(row[1]))
    if not worse:
        return ""
    others = f", {len(worse) - 1} more got worse" if len(worse) > 1 else ""
    return f"{_write_loss(*worse[0])}{others}"


def _write_loss(name: str, lead: KeyResult) -> str:
    if lead.verdict in (WRONG, ELSEWHERE):
        return f"{name} {'has wrong outputs' if lead.verdict == WRONG else 'ran elsewhere than asked'}"
    newer = lead.step.rpartition(" → ")[2]
    return f"{name} {'has' if lead.change.unit else 'is'} {lead.change.text} with {newer}"


# of news, in this order; what has settled is none
SETTLED = 4


def _is_news(lead: KeyResult) -> bool:
    return lead.axis in ("runtime", "model") or lead.verdict in (WRONG, ELSEWHERE)


def _rank_gravity(lead: KeyResult) -> tuple[int, float]:
    """Return the rank among news: wrong outputs, losses, what ran elsewhere, gains; the largest of each first."""
    if lead.verdict in (WRONG, ELSEWHERE):
        return (0 if lead.verdict == WRONG else 2), 0.0
    if not lead.change.is_decided:
        return SETTLED, 0.0
    return (3 if lead.change.is_gain else 1), -lead.change.size


def address_to_repeat(run: "Run", cell_id: str = "") -> str:
    """Returns the address of the form that starts the run again, or one cell of it alone; nothing is started yet."""
    of_cell = {"cell": cell_id} if cell_id else {}
    return f"{reverse('dashboard:new_run')}?{urlencode({'version': run.version_id, 'like': run.pk, **of_cell})}"


def split_first_sentence(text: str) -> tuple[str, str]:
    """Splits a text into its first sentence and the rest; numbers stay beside their units."""
    found = answers.Answer.from_sentences(numbers.unbroken(text))
    return found.headline, found.rest


def split_brackets(sentence: str) -> tuple[str, list[str]]:
    """Splits a sentence into itself without what stands in brackets, and that: a headline, and what it rests on."""
    return IN_BRACKETS.sub("", sentence), IN_BRACKETS.findall(sentence)


# an open run without a verdict opens with what goes on in it
OPENINGS = {
    "measuring": "Measuring {model}",
    "queued": "Queued: waiting for a node",
    "preparing": "Preparing {model}",
    "settling": "Settling the results of {model}",
}


def make_opening(document: Document, *, model: str, planned: int, ended: int, activity: str) -> Answer:
    """Write the headline of a run's page and the rest. `activity`: the state of an open run, a key of OPENINGS; empty
    once it has ended. Until there are comparisons it is the headline, and the rest says which outputs are wrong."""
    if activity and not document.comparisons:
        doing = OPENINGS.get(activity, "Finishing {model}").format(model=model)
        cells = {cell.id: cell for cell in document.cells}
        return Answer(doing, sentences.describe_wrong(rank_results([], cells), cells))
    found = answers.make_answer(document)
    if not activity:
        return found
    so_far = f"So far: {ended} of {numbers.counted(planned, 'cell')} have ended."
    return replace(found, rest=f"{found.rest} {so_far}".strip())


def list_warnings(cells: Sequence[Cell]) -> list[str]:
    """Says in one sentence which cells ran elsewhere than asked; the list is empty where none did. Wrong outputs are
    in the headline already; A/A twins do not count."""
    cells = list_planned_cells(cells)
    elsewhere = [cell for cell in cells if not describe_placement(cell).is_as_asked]
    if not elsewhere:
        return []
    ran = numbers.counted(len(elsewhere), "cell")
    return [f"Not as asked: {ran} ran on other providers than requested ({name_cells(elsewhere, cells)})."]
