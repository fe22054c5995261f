"""The page of a variant, and the look into what quantisation did to it."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render

from dashboard.figures import accuracies
from dashboard.reading import variant as reading
from dashboard.reading import variant_cells as cells
from dashboard.views.access import action, page, person
from farm.accounts.selectors import can_write
from farm.base.refusals import Missing, NotAllowed
from farm.registry import selectors, services
from farm.registry.states import MakingState
from farm.runs.selectors.variants import measured_cell, measured_cells_of, processor_of

OPEN = (MakingState.PENDING, MakingState.MAKING)


@page
def variant(request: HttpRequest, variant_id: int) -> HttpResponse:
    """How a variant was made, what of it is quantised, where its error is, and what to try next."""
    user = person(request)
    row = selectors.variant(user, variant_id)
    measured = measured_cell(user, row)
    run, cell = measured or (None, None)
    arch, sets = processor_of(run, cell.node) if run is not None and cell is not None else ("", ())
    made = reading.made(row, cell, arch=arch, instruction_sets=sets)
    rows = measured_cells_of(user, row)
    context = {
        "variant": row,
        "version": selectors.version_of_artifact(user, row.artifact),
        "made": made,
        "measured": cells.table(rows),
        "finding": cells.finding(rows),
        "files": row.derived.bundle.files if row.derived else (),
        "run": run,
        "cell": cell,
        "stayed": accuracies.stayed(cell) if cell else "",
        "is_open": row.state in OPEN or made.report in OPEN,
        "may_write": can_write(user, team=row.artifact.team),
    }
    name = "dashboard/parts/variant.html" if request.headers.get("HX-Target") == "variant" else "dashboard/variant.html"
    return render(request, name, context)


@action
def look_into(request: HttpRequest, variant_id: int) -> HttpResponseBase:
    """Order the errors by layer and the scales."""
    row = selectors.variant(person(request), variant_id)
    services.order_variant_report(variant=row, by=person(request))
    return redirect("dashboard:variant", variant_id=row.pk)


@page
def raw(request: HttpRequest, variant_id: int) -> HttpResponseBase:
    """The report as JSON: every error, and every scale of every channel. Raises Missing before it was made.

    Scales are a part of the quantised model, and so for members.
    """
    row = selectors.variant(person(request), variant_id)
    if not can_write(person(request), team=row.artifact.team):
        raise NotAllowed(f"Only members can see the scales of variant {variant_id}: they are part of the model.")
    report = getattr(row, "report", None)
    if report is None or report.report_json is None:
        raise Missing(
            f"Variant {variant_id} has not been analysed yet.", hint="Start the analysis on the variant's page."
        )
    return JsonResponse(report.report_json)
