"""One run as it fills in, and the orders about it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST, require_safe

from dashboard import numbers
from dashboard.figures.figure import Address
from dashboard.reading import cells, comparisons, copies, facts
from dashboard.reading.heatmap import HeatMap
from dashboard.views import charts
from dashboard.views.access import page, person
from dashboard.views.live_part import PERIOD_S, live_part, with_token
from dashboard.views.orders import ordered
from dashboard.views.run_pieces import MOST_CELLS, Whole, around, head_of, map_of, whole
from farm.alerts.selectors.origins import origin_of
from farm.contract.document import Document
from farm.rules.cells.commands import submit_command
from farm.rules.matrices.matrix_text import write_text
from farm.runs import selectors, services
from farm.runs.selectors import live, pages
from farm.runs.states import RunState

if TYPE_CHECKING:
    from farm.runs.models import Event, Run

EVENTS_SHOWN = 60
# of an open run so many lines of its log stand at its head
TAIL = 4
TABLES = ("compared", "cells")


class Shown(TypedDict):
    """What parts of a run's page are made of. `around`: the cells that the map shows, and those compared with them."""

    run: "Run"
    is_open: bool
    may_write: bool
    head_text: str
    map: HeatMap
    map_text: str
    around: Document


@page
@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """One run. `part=live` is what a running page asks for again and again: it costs next to nothing when unchanged.
    `part=compared` and `part=cells` are the tables of a large run, which come when they are scrolled to."""
    part = request.GET.get("part", "")
    if part == "live":
        seen = pages.revision_of(person(request), run_id)
        return live_part(request, seen, lambda: _changed(request, seen))
    row = selectors.run(person(request), run_id)
    context = _context(request, row, may_write=selectors.can_write_run(person(request), row))
    if part in TABLES:
        shown = {**context, **own_tables(request, row, context)}
        return render(request, f"dashboard/parts/run_{part}.html", shown)
    head = mark_safe(with_token(request, context["head_text"]))
    return render(request, "dashboard/run.html", {**context, **_below(request, row, context), "head_text": head})


def _changed(request: HttpRequest, seen: pages.Revision) -> str:
    """The head and the map, for all with these rights."""
    row = selectors.run(person(request), seen.run_id, is_light=True)
    context = _context(request, row, may_write=seen.may_write, part="live")
    return f"{context['head_text']}\n{context['map_text']}"


def _context(request: HttpRequest, row: "Run", *, may_write: bool, part: str = "") -> Shown:
    """What the head of the page and the map show, for all with these rights."""
    whole_run = whole(row)
    drawn, text = map_of(request, row, whole_run, address=address_in(row.pk), part=part)
    return {
        "run": row,
        "is_open": row.state != RunState.FINISHED,
        "may_write": may_write,
        "head_text": head_of(request, row, lambda: _head(row, whole_run, may_write=may_write), may_write=may_write),
        "map": drawn,
        "map_text": text,
        "around": around(whole_run, drawn),
    }


def _head(row: "Run", whole_run: Whole, *, may_write: bool) -> dict[str, object]:
    """What the head says of the run at this revision, to everybody with the same rights."""
    is_open = row.state != RunState.FINISHED
    now = _live(row) if is_open else None
    return {
        "run": row,
        "state": row.outcome or (_open_state(now) if now else row.state),
        "live": now,
        "origin": _origin(row),
        "is_open": is_open,
        "period": PERIOD_S,
        "headline": whole_run.headline,
        "because": whole_run.because,
        "progress": _progress(row, is_moving=bool(now and now["busy"])) if is_open else None,
        "warnings": whole_run.warnings,
        "facts": [*whole_run.told, *_who(row)],
        "may_write": may_write,
        "may_continue": whole_run.may_continue,
    }


def _who(row: "Run") -> list[facts.Fact]:
    by = row.requested_by.username if row.requested_by else "a former member"
    return [facts.Fact("Started", f"{row.created_at:%Y-%m-%d %H:%M} UTC by {by}")]


class Live(TypedDict):
    """What the head of an open run says of this moment. `why_not`: why nothing is measured; `tail`: the log's end."""

    busy: list[live.Busy]
    why_not: str
    tail: list["Event"]


def _live(row: "Run") -> Live:
    return {
        "busy": live.busy_blocks(row),
        "why_not": live.why_not_measured(row),
        "tail": list(selectors.events(row).order_by("-pk")[:TAIL]),
    }


def _open_state(now: Live) -> str:
    """One word for the whole page: measuring only while a node measures."""
    return "leased" if now["busy"] else "queued"


def _origin(row: "Run") -> dict[str, object] | None:
    """Why there is a run that no person asked for, and where that leads."""
    origin = origin_of(row)
    if origin is None:
        return None
    href = reverse("dashboard:alert", args=[origin.alert]) if origin.alert else ""
    href = reverse("dashboard:watch", args=[origin.watch]) if origin.watch else href
    return {"text": origin.text, "href": href}


def _progress(row: "Run", *, is_moving: bool) -> dict[str, object]:
    """How far it is, how long it has taken, and what is left at the pace of its rounds; no estimate at a standstill."""
    progress = selectors.progress(row)
    planned = sum(progress.cells.values())
    parts = [f"{progress.cells_ended} of {numbers.count(planned, 'cell')} ended"]
    parts.append(f"round {progress.rounds} of {progress.rounds_most}")
    if progress.started_at is not None:
        elapsed = (timezone.now() - progress.started_at).total_seconds()
        parts.append(f"{numbers.duration(elapsed)} since it was started")
    if is_moving and progress.minutes_left:
        parts.append(f"about {numbers.duration(60 * progress.minutes_left)} left")
    return {"percent": round(100 * progress.share), "words": f"{'; '.join(parts)}."}


def _below(request: HttpRequest, row: "Run", context: Shown) -> dict[str, object]:
    """What stands below the head: a chart, tables, downloads, the log."""
    document = context["around"]
    address = address_in(row.pk)
    main = row.version.artifact.main
    is_large = len(document.cells) > MOST_CELLS and request.GET.get("tables") != "yes"
    drawn = charts.of_run(request, row, document, address)
    if is_large:
        drawn["figure"] = replace(drawn["figure"], table=drawn["figure"].table.first(MOST_CELLS))
    return {
        **drawn,
        "is_large": is_large,
        **({} if is_large else own_tables(request, row, context)),
        "events": list(selectors.events(row).order_by("-pk")[:EVENTS_SHOWN]),
        "matrix_text": matrix_text(row),
        "copies": copies.of_run(row.pk, matrix=matrix_text(row), url=settings.PUBLIC_URL),
        "results_command": f"onnxfarm results {row.pk} --json > run-{row.pk}.json",
        "submit_command": submit_command(main, matrix="matrix.yaml"),
    }


def own_tables(request: HttpRequest, row: "Run", context: Shown) -> dict[str, object]:
    """The tables of a run that is not only shared: its cells are chosen to be compared, and one is run again."""
    document, address = context["around"], address_in(row.pk)
    again = {"version": row.version_id, "like": row.pk}
    repeat = partial(_again, again) if context["may_write"] else None
    keys = [f"{row.pk}:{cell.id}" for cell in document.cells]
    return {
        **_compared(request, document, address),
        "cells": cells.table(document.cells, address, comparisons=document.comparisons, again=repeat).keyed(
            keys, box="cells"
        ),
    }


def _again(like: Mapping[str, object], cell_id: str) -> str:
    """Where a run of one cell alone begins."""
    return f"{reverse('dashboard:new_run')}?{urlencode({**like, 'cell': cell_id})}"


def tables(request: HttpRequest, document: Document, address: Address) -> dict[str, object]:
    return {
        **_compared(request, document, address),
        "cells": cells.table(document.cells, address, comparisons=document.comparisons),
    }


def _compared(request: HttpRequest, document: Document, address: Address) -> dict[str, object]:
    by_id = {cell.id: cell for cell in document.cells}
    wanted = request.GET.get("along", "") or comparisons.leading_axis(document.comparisons, by_id)
    along = comparisons.along(document.comparisons, wanted)
    return {
        "comparisons": comparisons.table(along, by_id, address),
        "compared_axes": comparisons.axes_compared(document.comparisons),
        "along": along[0].axis if along else "",
    }


def matrix_text(row: "Run") -> str:
    return write_text(row.matrix)


def address_in(run_id: int) -> Callable[[str], str]:
    """From a cell's id to its page within the run."""
    return lambda cell_id: reverse("dashboard:cell", args=[run_id, cell_id])


@page
@require_POST
def cancel(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Stops the run; what is done stays."""
    row = selectors.run(person(request), run_id)
    ordered(request, lambda: services.cancel_run(run=row, by=person(request)), lambda _: "Cancelled.")
    return redirect("dashboard:run", run_id=row.pk)


@page
@require_POST
def more(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """More rounds of the undecided blocks; of all blocks when none is undecided."""
    row = selectors.run(person(request), run_id)
    typed = request.POST.get("rounds", "")
    rounds = int(typed) if typed.isdecimal() and len(typed) < 5 else 0
    undecided = any(one.verdict == "undecided" for one in selectors.comparisons_of(row, with_operators=False))
    blocks = None if undecided else list(row.blocks.filter(state="done").values_list("number", flat=True))
    ordered(
        request,
        lambda: services.more_rounds(run=row, by=person(request), rounds=rounds, blocks=blocks),
        lambda _: f"{rounds} more rounds were queued.",
    )
    return redirect("dashboard:run", run_id=row.pk)
