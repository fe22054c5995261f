"""Comparing cells of any runs: a base and up to three others; the address holds the choice."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

from django.conf import settings
from django.core.paginator import Page
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import axes
from dashboard.reading import copies, side, whole_runs
from dashboard.views import downloads
from dashboard.views.access import page, person
from dashboard.views.lists import first, numbered, paged_in_order
from farm.accounts.refusals import Missing
from farm.contract.numbers import is_row_number
from farm.runs import selectors
from farm.runs.selectors import pages

if TYPE_CHECKING:
    from farm.accounts.models import User
    from farm.runs.models import CellDocument, Run

RUNS_SHOWN = 50


class Offered(TypedDict):
    """Runs to choose from, and the measured cells of the chosen one, a page of them."""

    runs: list["Run"]
    run: "Run | None"
    cells: list[dict[str, str | bool]]
    page: NotRequired[Page["CellDocument"]]


@page
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Cells named by `cells=RUN:CELL`, the first of them the base, and a list to choose more from; with `runs=RUN`
    twice or more, whole runs cell by cell."""
    user = person(request)
    if len(numbers := _numbers(request)) > 1:
        return _whole_runs(request, numbers)
    keys = list(dict.fromkeys(request.GET.getlist("cells")))[: side.MOST]
    chosen, problems = _chosen(request, keys)
    every, judged = request.GET.get("every") == "yes", judged_by_base(user, chosen)
    context: dict[str, object] = {
        "chosen": [{"one": one, "without": _without(chosen, one)} for one in chosen],
        "problems": problems,
        "every": every,
        "lines": [line for line in side.lines(chosen) if every or line.differs] if len(chosen) > 1 else [],
        "judged": judged,
        "headline": side.headline(chosen, judged),
        "copies": copies.of_cells(
            [one.run_id for one in chosen],
            chosen=pages.measured_as([(one.run_id, one.cell.id) for one in chosen]),
            url=settings.PUBLIC_URL,
        ),
        "share_subject": ",".join(one.key for one in chosen),
        "may_share": all(selectors.can_write_run(user, selectors.run(user, one.run_id)) for one in chosen),
        "may_add": len(chosen) < side.MOST,
        **(offered := _offered(request, {one.key for one in chosen})),
        **_two_of(offered["runs"], numbers),
    }
    return render(request, "dashboard/compare.html", context)


def _chosen(request: HttpRequest, keys: list[str]) -> tuple[list[side.Chosen], list[str]]:
    found, problems = [], []
    for key in keys:
        run_id, _, cell_id = key.partition(":")
        try:
            if not is_row_number(run_id):
                raise Missing(f"“{key[:60]}” names no cell: write RUN:CELL.")
            run = selectors.run(person(request), int(run_id))
            cell = selectors.cell_document(run, cell_id)
        except Missing as missing:
            problems.append(str(missing))
        else:
            address = reverse("dashboard:cell", args=[run.pk, cell.id])
            found.append(side.Chosen(key, run.pk, cell, address))
    return found, problems


def _without(chosen: list[side.Chosen], gone: side.Chosen) -> str:
    rest = "&".join(f"cells={one.key}" for one in chosen if one is not gone)
    return f"?{rest}"


def judged_by_base(user: "User", chosen: list[side.Chosen]) -> list[side.Judged]:
    """Each cell but the first against the first."""
    if len(chosen) < 2:
        return []
    base, *others = chosen
    run = selectors.run(user, base.run_id)
    measured = selectors.comparisons_of(run, name=base.cell.id, with_operators=False)
    return [side.judge(base, other, measured) for other in others]


def _offered(request: HttpRequest, taken: set[str]) -> Offered:
    runs = _runs(request)
    run = next((run for run in runs if str(run.pk) == request.GET.get("run", "")), runs[0] if runs else None)
    if run is None:
        return {"runs": [], "run": None, "cells": []}
    shown = paged_in_order(request, selectors.measured_cells(run))
    measured = [selectors.cell_of(row) for row in shown]
    along = axes.varying(measured)
    cells: list[dict[str, str | bool]] = [
        {"key": key, "name": axes.name_of(cell, along), "id": cell.id, "is_taken": key in taken}
        for cell in measured
        if (key := f"{run.pk}:{cell.id}")
    ]
    return {"runs": runs, "run": run, "cells": cells, "page": shown}


def _runs(request: HttpRequest) -> list["Run"]:
    """The newest runs, and the one that the address names."""
    runs = first(selectors.runs_listed(person(request)), RUNS_SHOWN)
    wanted = request.GET.get("run", "")
    if is_row_number(wanted) and all(str(run.pk) != wanted for run in runs):
        runs += selectors.runs_listed(person(request)).filter(pk=int(wanted))
    return runs


def _numbers(request: HttpRequest) -> list[int]:
    """The runs that the address names, each once."""
    return numbered(request.GET, "runs", most=side.MOST)


def _two_of(runs: list["Run"], named: list[int]) -> dict[str, int | None]:
    """Which runs the form begins with: the named one, else the second newest, as base, against the newest other."""
    known = [run.pk for run in runs]
    base = next((one for one in named if one in known), known[1] if len(known) > 1 else None)
    return {"base": base, "against": next((one for one in known if one != base), None)}


def _whole_runs(request: HttpRequest, numbers: list[int]) -> HttpResponse:
    """Two to four runs held against each other, cell by cell, as far as the filters of the address leave them."""
    rows = [selectors.run(person(request), number) for number in numbers]
    documents = [selectors.document(row, with_operators=False) for row in rows]
    every = whole_runs.matches(documents)
    filters = whole_runs.Filters.read(request.GET)
    left = whole_runs.shown(every, filters)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "compared-runs", left, lambda one: whole_runs.as_row(numbers, one))
    context = {
        "headline": whole_runs.headline(numbers, every),
        "rows": rows,
        "differing": whole_runs.differing(documents),
        "every": every,
        "left": left,
        "table": whole_runs.table(numbers, left, lambda run, cell: reverse("dashboard:cell", args=[run, cell])),
        "kinds": whole_runs.KINDS,
        "filters": filters,
        "least": round(100 * filters.least),
        "copies": copies.of_runs(numbers, url=settings.PUBLIC_URL),
    }
    return render(request, "dashboard/compare_runs.html", context)
