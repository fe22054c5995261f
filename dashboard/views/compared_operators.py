"""The operators of compared cells beside each other, and their traced inferences; which of them, the address says."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from dashboard.figures import timelines
from dashboard.reading import operators_beside as reading
from dashboard.reading import side
from dashboard.views import lists
from dashboard.views.access import person
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.sides import between, by_sides
from farm.runs import selectors
from farm.runs.services import timeline_of
from farm.runs.services.timelines import WAITS

if TYPE_CHECKING:
    from farm.accounts.models import User

VIEWS = ("operators", "timeline")
MOST_SEARCHED = 100


def view_of(request: HttpRequest, chosen: list[side.Chosen]) -> str:
    """Which of these views the address asks for; empty for none, and where there are not two cells."""
    view = request.GET.get("view", "")
    return view if view in VIEWS and len(chosen) > 1 else ""


def groups_of(user: "User", chosen: list[side.Chosen]) -> list[reading.Group]:
    """The cells' operators, joined; none where fewer than two of them were traced."""
    if sum(bool(choice.cell.operators) for choice in chosen) < 2:
        return []
    return reading.groups(chosen, paired(user, chosen))


def paired(user: "User", chosen: list[side.Chosen]) -> list[Comparison | None]:
    """Each cell but the base compared with the base, with operators; None where no block measured both."""
    base, *others = chosen
    run = selectors.run(user, base.run_id)
    known = by_sides(selectors.comparisons_of(run, name=base.cell.id))
    return [between(known, base.cell.id, other.cell.id) if other.run_id == base.run_id else None for other in others]


def panel(request: HttpRequest, view: str, chosen: list[side.Chosen], found: list[reading.Group]) -> dict[str, object]:
    """What the page says of them: the table of the operators, or the inferences on one axis."""
    if view == "timeline":
        return _timelines(request, chosen, found)
    every, wanted = request.GET.get("every") == "yes", request.GET.get("find", "").strip()[:MOST_SEARCHED]
    rows = reading.shown(found, every=every, wanted=wanted)
    return {
        "said": reading.headline(chosen, found) if found else reading.FEW,
        "found": found,
        "every": every,
        "find": wanted,
        "still": sum(not one.has_moved for one in found),
        "left_out": max(0, len(rows) - reading.SHOWN),
        "table": reading.table(chosen, rows),
        "graphs": _graphs(chosen) if found else [],
    }


def _graphs(chosen: list[side.Chosen]) -> list[tuple[str, str]]:
    """Where the base and another cell of the same version lie over one graph."""
    base, *others = chosen
    called = side.names(chosen)[1:]
    address = reverse("dashboard:graph", args=[base.version_id])
    return [
        (name, f"{address}?cell={other.key}&against={base.key}")
        for name, other in zip(called, others, strict=True)
        if other.version_id == base.version_id
    ]


def _timelines(request: HttpRequest, chosen: list[side.Chosen], found: list[reading.Group]) -> dict[str, object]:
    rows = [selectors.run(person(request), choice.run_id) for choice in chosen]
    read = [timeline_of(row, choice.cell.id) for row, choice in zip(rows, chosen, strict=True)]
    traced = [timelines.Traced(name, trace) for name, trace in zip(side.names(chosen), read, strict=True)]
    moved = {node for one in found if one.has_moved for node in (one.node, *one.covers)}
    return {"figure": timelines.timelines(traced, moved), "waits": WAITS in read}


def as_file(request: HttpRequest, chosen: list[side.Chosen], found: list[reading.Group]) -> HttpResponse:
    """The operators that the address chooses, as CSV, JSON or Parquet."""
    wanted = request.GET.get("find", "").strip()[:MOST_SEARCHED]
    rows = reading.shown(found, every=request.GET.get("every") == "yes", wanted=wanted)
    return lists.as_file(request, "compared-operators", rows, lambda one: reading.as_row(chosen, one))
