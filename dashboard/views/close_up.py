"""A closer look at one cell: a timeline of one inference, its placement, and how its processes settle."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.figures import placement_map, timelines, warm_up
from dashboard.views.access import page, person
from farm.runs import selectors
from farm.runs.selectors.closer import launches_of
from farm.runs.selectors.retention import removed_timings
from farm.runs.services import timeline_of
from farm.runs.services.timelines import WAITS


@page
def closer(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponse:
    """A page of its own, which the cell's page fetches its last part from once a reader gets there."""
    row = selectors.run(person(request), run_id)
    cell = selectors.cell_document(row, cell_id)
    trace, gone = timeline_of(row, cell_id), removed_timings(row)
    context = {
        "run": row,
        "cell": cell,
        "figures": [
            timelines.timeline(trace, untraced_ms=cell.p50_ms),
            placement_map.placed(trace),
            *([] if gone else [warm_up.warm_up(cell, launches_of(row, cell_id))]),
        ],
        "gone": gone,
        "waits": trace == WAITS,
        # the cell's page has a head of its own
        "is_own_page": not request.htmx or request.htmx.current_url_abs_path == request.path,  # type: ignore[attr-defined]
        "trace": selectors.traces_of(row, cell_id).first(),
    }
    return render(request, "dashboard/closer.html", context)
