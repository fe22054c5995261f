"""The page of a search for the best settings of a model, and the form on the model's page that starts it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from pydantic import ValidationError

from dashboard.figures import accuracies, pareto
from dashboard.figures.figure import Figure
from dashboard.reading.best_settings import parse_number
from dashboard.reading.runs import version_address
from dashboard.views.access import action, carry_out, page, read_fields, signed_in_user, split_names
from dashboard.views.run import cell_addresses_in
from farm.accounts.selectors import can_write
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import cancel_find, start_find
from farm.base.refusals import Invalid, Refusal
from farm.contract.api.finds import FindOrder
from farm.contract.document_find import MAX_MINUTES, Found
from farm.contract.texts import strip_pydantic_prefix
from farm.registry.selectors import version
from farm.rules.presenting.race_settings import make_dropped_table, make_settings_table
from farm.rules.presenting.tables import Table
from farm.rules.wording import numbers
from farm.runs import selectors as runs

if TYPE_CHECKING:
    from farm.alerts.models import Find

# the number fields of the form, each with its label and its maximum in the unit of the field
NUMBERS = {
    "minutes": ("Minutes", MAX_MINUTES),
    "max_p50": ("p50", 1e7),
    "max_p99": ("p99", 1e7),
    "max_memory": ("Memory", 1e9),
    "min_accuracy": ("Accuracy", 100.0),
}


@dataclass(frozen=True)
class RacePanel:
    """The panel of a race, which is the search on one kind of hardware. Before the race has an answer, only `race` and
    `progress` are set. `settings`: the best settings; `left`: the settings that were dropped, each with the reason;
    `figure`: None without labelled data."""

    race: "Find"
    progress: str
    found: Found | None = None
    settings: Table | None = None
    left: Table | None = None
    figure: Figure | None = None


@page
def races(request: HttpRequest, find_id: int) -> HttpResponse:
    """Show the page of a search, with a panel for each of its races, one on each kind of hardware. `find_id`: the
    number of any of the races."""
    first = selectors.find_first_race(signed_in_user(request), find_id)
    search = selectors.summarise_races(first)
    context = {
        "first": first,
        "version": first.version,
        "headline": search.sentence or f"Searching on {numbers.counted(len(search.races), 'kind')} of hardware",
        "is_open": search.is_open,
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
    left = make_dropped_table(found, id=f"left-{race.pk}")
    return RacePanel(race, progress, found, settings, left, _draw_last_block(race))


def _draw_last_block(race: "Find") -> Figure | None:
    """Draw latency, accuracy and peak memory of the cells of the race's last run; None without a run or labelled
    data."""
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
    """Start a search as the form says, and redirect to its page; a refusal is shown on the model's page."""
    row = version(signed_in_user(request), version_id)
    try:
        order = _parse_order(row.pk, read_fields(request, ("goal", "hardware", "releases", *NUMBERS)))
        first = start_find(version=row, by=signed_in_user(request), order=order)
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(version_address(row))
    return redirect("dashboard:find", find_id=first.pk)


def _parse_order(version: int, typed: dict[str, str]) -> FindOrder:
    """Parse the fields of the form, where empty numbers are no limit. Raises Invalid for values that cannot be used."""
    numbers_of = {name: _parse_number(name, typed[name]) for name in NUMBERS}
    memory_mib, accuracy_percent = numbers_of["max_memory"], numbers_of["min_accuracy"]
    releases = split_names(typed["releases"])
    order = {
        "version": version,
        "goal": typed["goal"],
        "minutes": numbers_of["minutes"],
        "beside": {"runtime": releases} if releases else {},
        "hardware": split_names(typed["hardware"]),
        "max_p50_ms": numbers_of["max_p50"],
        "max_p99_ms": numbers_of["max_p99"],
        "max_memory_bytes": memory_mib and memory_mib * numbers.MIB,
        "min_accuracy": accuracy_percent and accuracy_percent / 100.0,
    }
    try:
        return FindOrder.model_validate({name: value for name, value in order.items() if value is not None})
    except ValidationError as problem:
        first = problem.errors()[0]
        reason = strip_pydantic_prefix(first["msg"])
        raise Invalid(f"The search's {first['loc'][0]} cannot be used: {reason}.", code="order") from None


def _parse_number(name: str, text: str) -> float | None:
    """Parse a number above 0, up to the field's maximum; None for an empty text. Raises Invalid for other texts."""
    label, bound = NUMBERS[name]
    value, error = parse_number(text, "a number")
    if error or (value is not None and not 0 < value <= bound):
        raise Invalid(f"{label} is {text[:40]!r}: give a number above 0, up to {bound:,.0f}.", code="number")
    return value


@action
def cancel(request: HttpRequest, find_id: int) -> HttpResponseBase:
    """Cancel the search with all its races, and redirect to its page, which shows a refusal. The best settings so far
    are kept."""
    user = signed_in_user(request)
    first = selectors.find_first_race(user, find_id)
    carry_out(request, cancel_find, lambda _: "The search is cancelled; the best so far stays.", find=first, by=user)
    return redirect("dashboard:find", find_id=first.pk)
