"""The page of a search for the settings to ship, and the form on a model's page that starts it."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.figures import pareto
from dashboard.figures.figure import Figure
from dashboard.reading.runs import version_address
from dashboard.views.access import action, carry_out, page, read_fields, signed_in_user
from dashboard.views.run import cell_addresses_in
from farm.accounts.selectors import can_write
from farm.alerts.selectors import finds as selectors
from farm.alerts.services.finds import Question, cancel_find, start_find
from farm.base.refusals import Invalid, Refusal
from farm.contract.document_find import Found, FoundSetting, Goal, LeftSetting
from farm.registry.selectors import version
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table
from farm.rules.searches.limits import Limits
from farm.rules.wording import numbers
from farm.runs import selectors as runs

if TYPE_CHECKING:
    from farm.alerts.models import Find

PERIOD_S = 5
# what a budget may be, in its unit
MAX_NUMBER = 1_000_000_000
# a setting, and what it is in the answer
SETTING_COLUMNS: tuple[Column[tuple[str, FoundSetting]], ...] = (
    Column("Setting", lambda row: Entry(row[1].label, is_name=True)),
    Column("Is", lambda row: Entry(row[0])),
    Number("p50, ms", lambda row: Entry(numbers.plain(row[1].p50_ms), row[1].p50_ms)),
    Number("±, ms", lambda row: Entry(numbers.plus_minus(row[1].p50_ms, row[1].p50_ci_ms).removeprefix("± "))),
    Number("against the first", lambda row: Entry(_against(row[1]), row[1].ratio)),
    Number("memory", lambda row: Entry(numbers.memory(row[1].peak_memory_bytes), row[1].peak_memory_bytes)),
    Column("Accuracy", lambda row: Entry(row[1].accuracy)),
    Prose("Note", lambda row: Entry(row[1].note)),
)
LEFT_COLUMNS: tuple[Column[LeftSetting], ...] = (
    Column("Setting", lambda left: Entry(left.label, is_name=True)),
    Column("Left for", lambda left: Entry(f"budget of {left.budget}" if left.budget else left.why)),
    Prose("Why", lambda left: Entry(left.text)),
)


@dataclass(frozen=True)
class Shown:
    """One race as the page shows it."""

    race: "Find"
    found: Found | None = None
    settings: Table | None = None
    left: Table | None = None
    figure: Figure | None = None

    @property
    def doing(self) -> str:
        return selectors.describe_progress(self.race)


@page
def find(request: HttpRequest, find_id: int) -> HttpResponse:
    """Progress, then each race's answer with what was close, what was excluded and how to set it."""
    first = selectors.find(signed_in_user(request), find_id)
    together = selectors.summarise_races(first)
    context = {
        "first": first,
        "version": first.version,
        "headline": together.sentence or f"Searching on {numbers.counted(len(together.races), 'kind')} of hardware",
        "is_open": together.is_open,
        "period": PERIOD_S,
        "races": [_shown(race) for race in together.races],
        "may_write": can_write(signed_in_user(request), team=first.version.model.team),
    }
    return render(request, "dashboard/find.html", context)


def _shown(race: "Find") -> Shown:
    if race.answer is None:
        return Shown(race)
    found = Found.model_validate(race.answer)
    rows = [("answer", each) for each in found.answer]
    rows += [("in its final block", each) for each in found.beside]
    rows += [("apart", each) for each in found.apart]
    if found.default is not None and all(found.default.settings != each.settings for _, each in rows):
        rows.append(("default", found.default))
    return Shown(
        race,
        found,
        Table.of(f"settings-{race.pk}", "Settings that were measured", SETTING_COLUMNS, rows),
        Table.of(f"left-{race.pk}", "Settings that left", LEFT_COLUMNS, found.left),
        _figure(race),
    )


def _figure(race: "Find") -> Figure | None:
    """Latency against accuracy and size, of the last block; None without labelled data."""
    if not race.question["limits"]["has_labels"] or (run := selectors.last_run(race)) is None:
        return None
    document = runs.document(run)
    if all(cell.accuracy is None for cell in document.cells):
        return None
    drawn = pareto.draw_cells(document.cells, cell_addresses_in(run.pk), document.comparisons)
    return replace(drawn, name=f"{drawn.name}-{race.pk}")


def _against(setting: FoundSetting) -> str:
    if not setting.ratio:
        return ""
    return numbers.change_interval(setting.ratio_low, setting.ratio_high, ratio=setting.ratio, is_directed=False)


@action
def start_search(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Starts a search with what was typed into the form of the model's page."""
    row = version(signed_in_user(request), version_id)
    typed = read_fields(
        request, ("goal", "minutes", "hardware", "max_p50", "max_p99", "max_memory", "min_accuracy", "releases")
    )
    try:
        first = start_find(version=row, by=signed_in_user(request), question=_question(typed))
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(version_address(row))
    return redirect("dashboard:find", find_id=first.pk)


def _question(typed: dict[str, str]) -> Question:
    """Raises Invalid."""
    releases = [name.strip() for name in typed["releases"].split(",") if name.strip()]
    memory_mib, accuracy = _number(typed["max_memory"], "Memory"), _number(typed["min_accuracy"], "Accuracy")
    return Question(
        # what is none of them the service refuses
        goal=cast(Goal, typed["goal"][:40]),
        minutes=_number(typed["minutes"], "Minutes") or Question.minutes,
        beside={"runtime": releases} if releases else {},
        hardware=tuple(name.strip() for name in typed["hardware"].split(",") if name.strip()),
        limits=Limits(
            _number(typed["max_p50"], "p50"),
            _number(typed["max_p99"], "p99"),
            memory_mib and memory_mib * numbers.MIB,
            accuracy and accuracy / 100.0,
        ),
    )


def _number(text: str, name: str) -> float | None:
    """Above zero, up to MAX_NUMBER; None where nothing was typed. Raises Invalid."""
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
    """Stops its races; what is known stays."""
    first = selectors.find(signed_in_user(request), find_id)
    stop = partial(cancel_find, find=first, by=signed_in_user(request))
    carry_out(request, stop, lambda row: "The search is cancelled; the best so far stays.")
    return redirect("dashboard:find", find_id=first.pk)
