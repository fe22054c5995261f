"""The panel of a cell's page that asks its node for the first divergent node, and shows the answer."""

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.reading import divergence as reading
from dashboard.views.access import action, page, person
from dashboard.views.orders import ordered
from farm.base.refusals import Missing
from farm.contract.document_cells import Cell
from farm.runs import selectors, services
from farm.runs.selectors.divergences import divergences_of

if TYPE_CHECKING:
    from farm.runs.models import Run


@page
def divergence(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponse:
    """The panel alone, as it is while an answer is waited for."""
    row = selectors.run(person(request), run_id)
    cells = selectors.document(row, with_operators=False).cells
    cell = next((one for one in cells if one.id == cell_id), None)
    if cell is None:
        raise Missing(f"Run {run_id} has no cell {cell_id!r}.")
    context = {"run": row, "cell": cell, **panel(request, row, cells, cell)}
    return render(request, "dashboard/parts/divergence.html", context)


@action
def ask(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponseBase:
    """Asks, and goes back to the cell."""
    row = selectors.run(person(request), run_id)
    against = request.POST.get("against", "")[:40] or None
    ordered(
        request,
        lambda: services.ask_divergence(run=row, cell=cell_id, by=person(request), against=against),
        lambda _: "Requested. The node will look for the first divergent operator.",
    )
    return redirect("dashboard:cell", run_id=run_id, cell_id=cell_id)


def panel(request: HttpRequest, row: "Run", cells: list[Cell], cell: Cell) -> dict[str, object]:
    """What the panel shows; its questions only to those who may ask them."""
    answers = reading.answers(divergences_of(row, cell.id), cells)
    may_ask = selectors.can_write_run(person(request), row)
    return {
        "divergences": answers,
        "may_fetch_part": may_ask,
        "divergence_questions": reading.questions(cells, cell) if may_ask else [],
        "is_diverging": any(answer.is_open for answer in answers),
    }
