"""The news on the home page: models that got better or worse lately, and releases that appeared."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.urls import reverse

from dashboard.reading import leads
from dashboard.reading.leads import NO_LEAD, is_news, prefer_confirmed
from dashboard.reading.runs import link_run
from farm.alerts.selectors.origins import confirmed_leads
from farm.contract.cells import Runtime
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_time
from farm.rules.wording import titles
from farm.rules.wording.numbers import counted
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG, Sign

if TYPE_CHECKING:
    from farm.runs.selectors.pages import FinishedRun

MAX_ROWS = 12
RELEASE = Sign("→", "release", "quiet")


@dataclass(frozen=True)
class News:
    """Models that a release or a version changed lately, the gravest first.

    `headline`: names the model that got worst, empty where none got worse; `counts`: says how many models got worse and
    better, empty where none did; `is_measured`: at least one run has ended.
    """

    table: Table
    headline: str
    counts: str
    is_measured: bool


@dataclass(frozen=True)
class Row:
    """The newest run of a model that is news, its lead, and the lead of the run that confirmed it."""

    run: "FinishedRun"
    lead: KeyResult
    confirmed: KeyResult = NO_LEAD


COLUMNS: tuple[Column[Row], ...] = (
    Column("Model", lambda row: Entry(row.run.name, href=reverse("dashboard:model", args=[row.run.model]))),
    Column("Verdict", lambda row: leads.make_verdict_entry(row.lead)),
    Number("change", lambda row: leads.make_change_entry(row.lead, row.confirmed)),
    Prose("What", lambda row: leads.make_subject_entry(row.lead)),
    Column("Run", lambda row: link_run(row.run.run)),
    Column("Measured", lambda row: as_time(row.run.at)),
)


def make_news(ended: Sequence["FinishedRun"], *, since: datetime) -> News:
    """Find the models that got better or worse since a moment. `ended`: ended runs, the newest first.

    The newest run of each model that is news counts (see leads.is_news), so that a later comparison of precisions does
    not hide it. All such models are counted, and the first MAX_ROWS have a row. The counts say “in the last 7 days”,
    whatever `since` is.
    """
    newest: dict[int, Row] = {}
    for run in ended:
        lead = KeyResult.model_validate(run.lead)
        if is_news(lead):
            newest.setdefault(run.model, Row(run, lead))
    changed = [row for row in newest.values() if row.run.at >= since and _is_decided(row.lead)]
    changed.sort(key=lambda row: _rank_gravity(row.lead))

    worse = sum(_is_worse(row.lead) for row in changed)
    known = [(count, word) for count, word in ((worse, "worse"), (len(changed) - worse, "better")) if count]
    counts = [f"{count if place else counted(count, 'model')} {word}" for place, (count, word) in enumerate(known)]

    confirmed = confirmed_leads(row.run.run for row in changed[:MAX_ROWS]) if changed else {}
    rows = [replace(row, confirmed=confirmed.get(row.run.run, NO_LEAD)) for row in changed]
    return News(
        table=Table.of("news", "Better or worse", COLUMNS, rows[:MAX_ROWS]),
        headline=write_worst((row.run.name, prefer_confirmed(row.lead, row.confirmed)) for row in rows),
        counts=f"{', '.join(counts)} in the last 7 days" if counts else "",
        is_measured=bool(ended),
    )


def write_worst(named_leads: Iterable[tuple[str, KeyResult]], *, noun: str = "model") -> str:
    """Name the model that got worst, and say how many others got worse; empty where none did. `named_leads`: the name
    of each model with the lead of its run; `noun`: what is counted."""
    worse = sorted(
        ((name, lead) for name, lead in named_leads if _is_worse(lead)), key=lambda pair: _rank_gravity(pair[1])
    )
    if not worse:
        return ""
    others = f", {counted(len(worse) - 1, f'more {noun}')} got worse" if len(worse) > 1 else ""
    return f"{_write_loss(*worse[0])}{others}"


def _write_loss(name: str, lead: KeyResult) -> str:
    if lead.verdict in (WRONG, ELSEWHERE):
        return f"{name} {'has wrong outputs' if lead.verdict == WRONG else 'ran elsewhere than asked'}"
    newer = lead.step.rpartition(" → ")[2]
    return f"{name} {'has' if lead.change.unit else 'is'} {lead.change.text} with {newer}"


def _is_worse(lead: KeyResult) -> bool:
    """Whether outputs are wrong or ran on other providers than requested, or a release or version is worse."""
    return is_news(lead) and _is_decided(lead) and not lead.change.is_gain


def _is_decided(lead: KeyResult) -> bool:
    return lead.verdict in (WRONG, ELSEWHERE) or lead.change.is_decided


def _rank_gravity(lead: KeyResult) -> tuple[int, float]:
    """Return the sort key: wrong outputs, losses, runs on other providers, gains; the largest change of each first."""
    if lead.verdict in (WRONG, ELSEWHERE):
        return (0 if lead.verdict == WRONG else 2), 0.0
    return (3 if lead.change.is_gain else 1), -lead.change.size


@dataclass(frozen=True)
class NewRelease:
    """A sentence about releases that appeared in the package index, with a link to the release, or to the list of
    runtimes where there are several."""

    at: datetime
    text: str
    href: str
    sign: Sign = RELEASE


def describe_releases(distribution: str, count: int, version: str, at: datetime) -> NewRelease:
    """Describe the `count` releases of a distribution that the package index newly offers. `version`: the release,
    which is named only where `count` is 1; `at`: when the last of them appeared."""
    if count > 1:
        return NewRelease(at, f"{count} releases of {distribution} became known.", reverse("dashboard:runtimes"))
    runtime = titles.runtime_in_words(Runtime(distribution=distribution, version=version))
    return NewRelease(at, f"{runtime} appeared.", reverse("dashboard:release", args=[distribution, version]))
