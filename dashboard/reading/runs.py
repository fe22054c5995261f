"""Runs as a table: a row for each run, with its lead (its most important result) in columns."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.reading import leads
from dashboard.reading.leads import NO_LEAD, read_lead
from farm.contract.reasons import CellStatus
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, as_count, as_time, verdict_entry

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.registry.models import Version
    from farm.runs.models import Run


# a run that measured nothing has the status of most of its cells as its verdict
UNMEASURED = frozenset(CellStatus) - {CellStatus.DONE}


def link_run(run_id: int | None, *, title: str = "", soft: str = "") -> Entry:
    """Make the table entry that links to a run by its number; for None it says `removed`."""
    if run_id is None:
        return Entry("removed")
    return Entry(f"run {run_id}", run_id, href=reverse("dashboard:run", args=[run_id]), title=title, soft=soft)


def measured_entry(run: "Run | None", *, last: "Run | None" = None) -> Entry:
    """Make the table entry of the time when a run ended, followed by its number unless it is the `last` run. Empty
    without a run, before it has ended, without a lead, and where it measured nothing."""
    if run is None or run.finished_at is None or not run.lead or read_lead(run).verdict in UNMEASURED:
        return Entry()
    return replace(as_time(run.finished_at), soft="" if run == last else f"run {run.pk}")


def person_name(person: "User | None") -> str:
    """Return the username, or “a former member” for None."""
    return person.username if person else "a former member"


def version_address(version: "Version") -> str:
    return f"{reverse('dashboard:model', args=[version.model_id])}?version={version.number}"


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


def make_table(
    runs: Iterable["Run"],
    states: Mapping[int, str],
    confirmed: Mapping[int, KeyResult],
    *,
    is_ordered: bool = False,
    box: str = "",
) -> Table:
    """Make the table of runs, in the order given. `states`: the state of each run, by its number; `confirmed`: what
    load_confirmed_leads returns for them; `is_ordered`: headings link to the list sorted by the server; `box`: the name
    of the checkboxes that select rows, none where it is empty. Settings that all rows share stand once, above the
    table. The columns with the reason of a run and its submitter appear only where rows differ in them."""
    rows = list(runs)
    shared = leads.find_shared_settings(map(read_lead, rows))
    columns = (
        Column["Run"]("Run", lambda run: link_run(run.pk, title=run.headline), order="id"),
        Column["Run"]("Model", lambda run: Entry(str(run.version), href=version_address(run.version)), order="model"),
        Column["Run"]("State", lambda run: verdict_entry(states[run.pk]), order="state"),
        Column["Run"]("Verdict", lambda run: leads.make_verdict_entry(read_lead(run)), order="verdict"),
        Number["Run"](
            "change",
            lambda run: leads.make_change_entry(read_lead(run), confirmed.get(run.pk, NO_LEAD)),
            "of what the run leads with, new against old",
            order="change",
        ),
        Number["Run"](
            "interval", lambda run: leads.make_interval_entry(read_lead(run), confirmed.get(run.pk, NO_LEAD))
        ),
        Prose["Run"]("What", lambda run: leads.make_subject_entry(read_lead(run), shared)),
        *(column for column in ORIGINS if column.order or len({column.entry(run).text for run in rows}) > 1),
    )
    shown = columns if is_ordered else [column.unordered for column in columns]
    table = Table.of("runs", "Runs", shown, rows).with_row_keys([run.pk for run in rows], box=box)
    return replace(table, shared=", ".join(shared))


def address_to_repeat(run: "Run", cell_id: str = "") -> str:
    """Return the address of the form that starts the run again, or one of its cells alone. Opening it starts
    nothing."""
    of_cell = {"cell": cell_id} if cell_id else {}
    return f"{reverse('dashboard:new_run')}?{urlencode({'version': run.version_id, 'like': run.pk, **of_cell})}"
