"""The page of a search for the settings to ship, and the form on a model's page that starts it."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.figures import accuracies, pareto
from dashboard.figures.figure import Figure
from dashboard.reading.runs import version_address
from dashboard.views.access import action, carry_out, page, read_fields, signed_in_user, split_names
from dashboard.views.run import cell_addresses_in
from farm.accounts.selectors import can_write
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import Question, cancel_find, start_find
from farm.base.refusals import Invalid, Refusal
from farm.contract.document_find import Found, Goal, LeftSetting
from farm.registry.selectors import version
from farm.rules.presenting.race_settings import make_settings_table
from farm.rules.presenting.tables import Column, Entry, Prose, Table
from farm.rules.searches.limits import Limits
from farm.rules.wording import numbers
from farm.runs import selectors as runs

if TYPE_CHECKING:
    from farm.alerts.models import Find

PERIOD_S = 5
FIELDS = ("goal", "minutes", "hardware", "max_p50", "max_p99", "max_memory", "min_accuracy", "releases")
# what a budget may be, in its unit
MAX_NUMBER = 1_000_000_000
LEFT_COLUMNS: tuple[Column[LeftSetting], ...] = (
    Column("Setting", lambda left: Entry(left.label, is_name=True)),
    Column("Left for", lambda left: Entry(f"budget of {left.budget}" if left.budget else left.why)),
    Prose("Why", lambda left: Entry(left.text)),
)


@dataclass(frozen=True)
class RacePanel:
    """One race as its page shows it. Until it has an answer, all but the first two are None."""

    race: "Find"
    progress: str
    found: Found | None = None
    settings: Table | None = None
    left: Table | None = None
    figure: Figure | None = None


@page
def races(request: HttpRequest, find_id: int) -> HttpResponse:
    """Shows progress, then each race's answer with what was close, what was excluded and how to set it."""
    first = selectors.find_first_race(signed_in_user(request), find_id)
    search = selectors.summarise_races(first)
    context = {
        "first": first,
        "version": first.version,
        "headline": search.sentence or f"Searching on {numbers.counted(len(search.races), 'kind')} of hardware",
        "is_open": search.is_open,
        "period": PERIOD_S,
        "panels": [_make_panel(race) for race in search.races],
        "may_write": can_write(signed_in_user(request), team=first.version.model.team),
    }
    return render(request, "dashboard/find.html", context)


def _make_panel(race: "Find") -> RacePanel:
    progress = selectors.describe_progress(race)
    if race.answer is None:
        return RacePanel(race, progress)
    found = Found.model_validate(race.answer)
    settings = make_settings_table(found, id=f"settings-{race.pk}")
    left = Table.of(f"left-{race.pk}", "Settings that left", LEFT_COLUMNS, found.left)
    return RacePanel(race, progress, found, settings, left, _draw_last_block(race))


def _draw_last_block(race: "Find") -> Figure | None:
    """Draws latency, accuracy and peak memory of the last block; None without labelled data."""
    if not race.question["limits"]["has_labels"] or (run := selectors.find_last_run(race)) is None:
        return None
    document = runs.document(run)
    if all(cell.accuracy is None for cell in document.cells):
        return None
    address = cell_addresses_in(run.pk)
    figure = pareto.draw_cells(document.cells, address, document.comparisons, accuracies.PEAK_MEMORY)
    return replace(figure, name=f"{figure.name}-{race.pk}")


@action
def start_search(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Starts a search with what was typed into the form of the model's page."""
    row = version(signed_in_user(request), version_id)
    try:
        question = _parse_question(read_fields(request, FIELDS))
        first = start_find(version=row, by=signed_in_user(request), question=question)
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(version_address(row))
    return redirect("dashboard:find", find_id=first.pk)


def _parse_question(typed: dict[str, str]) -> Question:
    """Parses the fields of the form; the service refuses an unknown goal. Raises Invalid."""
    releases = split_names(typed["releases"])
    memory_mib, percent = _parse_number(typed["max_memory"], "Memory"), _parse_number(typed["min_accuracy"], "Accuracy")
    return Question(
        goal=cast(Goal, typed["goal"][:40]),
        minutes=_parse_number(typed["minutes"], "Minutes") or Question.minutes,
        beside={"runtime": releases} if releases else {},
        hardware=split_names(typed["hardware"]),
        limits=Limits(
            _parse_number(typed["max_p50"], "p50"),
            _parse_number(typed["max_p99"], "p99"),
            memory_mib and memory_mib * numbers.MIB,
            percent and percent / 100.0,
        ),
    )


def _parse_number(text: str, name: str) -> float | None:
    """Parses a number above zero, up to MAX_NUMBER; None where nothing was typed. Raises Invalid."""
    if not text:
        return None
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = 0.0
    if not 0 < value <= MAX_NUMBER:
        raise Invalid(f"{name} is {text[:40]!r}: give a number above 0, up to {MAX_NUMBER:,}.", code="number")
    return value


@action
def cancel(request: HttpRequest, find_id: int) -> HttpResponseBase:
    """Stops its races. The best answers so far stay."""
    first = selectors.find_first_race(signed_in_user(request), find_id)
    stop = partial(cancel_find, find=first, by=signed_in_user(request))
    carry_out(request, stop, lambda row: "The search is cancelled; the best so far stays.")
    return redirect("dashboard:find", find_id=first.pk)
