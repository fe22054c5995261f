"""Cells to choose from when comparing: those of one run, or of every run by words; the address holds both."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

from django.core.paginator import Page
from django.http import HttpRequest

from dashboard import axes
from dashboard.views.access import person
from dashboard.views.lists import first, paged_in_order, searched
from farm.contract.numbers import is_row_number
from farm.rules.wording import titles
from farm.runs import selectors
from farm.runs.selectors.cell_search import MOST, MeasuredCell, cells_matching

if TYPE_CHECKING:
    from farm.runs.models import CellDocument, Run

RUNS_SHOWN = 50


class Offered(TypedDict):
    """Runs to choose from, and cells: those that the words fit, else a page of those of the chosen run."""

    runs: list["Run"]
    run: "Run | None"
    words: str
    cells: list[dict[str, str | bool]]
    has_more: NotRequired[bool]
    page: NotRequired[Page["CellDocument"]]


def offered(request: HttpRequest, taken: set[str]) -> Offered:
    """What may be chosen. `taken`: keys of cells that are chosen already."""
    runs, typed = _runs(request), searched(request)
    if typed:
        matching = cells_matching(person(request), typed)
        cells = [_entry(_key(one), _said(one), f"run {one.run_id}, {one.name}", taken) for one in matching[:MOST]]
        return {"runs": runs, "run": None, "words": typed, "cells": cells, "has_more": len(matching) > MOST}
    run = next((run for run in runs if str(run.pk) == request.GET.get("run", "")), runs[0] if runs else None)
    if run is None:
        return {"runs": [], "run": None, "words": "", "cells": []}
    shown = paged_in_order(request, selectors.measured_cells(run))
    measured = [selectors.cell_of(row) for row in shown]
    along = axes.varying(measured)
    cells = [_entry(f"{run.pk}:{cell.id}", axes.name_of(cell, along), cell.id, taken) for cell in measured]
    return {"runs": runs, "run": run, "words": "", "cells": cells, "page": shown}


def _entry(key: str, name: str, where: str, taken: set[str]) -> dict[str, str | bool]:
    return {"key": key, "name": name, "id": where, "is_taken": key in taken}


def _key(one: MeasuredCell) -> str:
    return f"{one.run_id}:{one.name}"


def _said(one: MeasuredCell) -> str:
    where = f" on {one.node}" if one.node else ""
    return f"{one.model} v{one.version}: {titles.setting(one)}{where}"


def _runs(request: HttpRequest) -> list["Run"]:
    """The newest runs, and the one that the address names."""
    runs = first(selectors.runs_listed(person(request)), RUNS_SHOWN)
    wanted = request.GET.get("run", "")
    if is_row_number(wanted) and all(str(run.pk) != wanted for run in runs):
        runs += selectors.runs_listed(person(request)).filter(pk=int(wanted))
    return runs
