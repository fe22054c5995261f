"""The panel of a cell's page that requests a search for the first divergent graph node, and shows the results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from dashboard.views.access import action, carry_out, page, signed_in_user
from farm.base.refusals import Missing
from farm.contract.divergence import DivergenceDocument, Part, Spread, TensorLook
from farm.contract.document_cells import Cell, EngineParity
from farm.rules.presenting.tables import Column, Entry, Number, Table, as_count
from farm.rules.wording import numbers, titles
from farm.runs import selectors, services
from farm.runs.selectors.divergences import divergences_of

if TYPE_CHECKING:
    from farm.runs.models import Divergence, Run


COLUMNS: tuple[Column[tuple[str, Spread]], ...] = (
    Column("Side", lambda side: Entry(side[0])),
    Number("minimum", lambda side: _figure_entry(side[1].minimum)),
    Number("maximum", lambda side: _figure_entry(side[1].maximum)),
    Number("mean", lambda side: _figure_entry(side[1].mean)),
    Number("standard deviation", lambda side: _figure_entry(side[1].std)),
    Number("not numbers", lambda side: as_count(side[1].nan_count)),
    Number("infinite", lambda side: as_count(side[1].inf_count)),
)


@dataclass(frozen=True)
class Question:
    """A button that requests a search. `against`: the id of the cell to compare with, empty for the reference (the CPU
    without optimisations)."""

    label: str
    against: str = ""


@dataclass(frozen=True)
class Answer:
    """A requested search and its result. `part`: the part of the graph that shows the difference, None before a
    divergent tensor was found; `table`: the values of the first divergent tensor on both sides; `beyond`: how many
    values are beyond tolerance, in words."""

    row: "Divergence"
    title: str
    state: str
    part: Part | None = None
    table: Table | None = None
    beyond: str = ""


def list_engine_pairs(cells: Iterable[Cell], cell: Cell) -> list[tuple[Cell, EngineParity]]:
    """List those of the cells whose outputs were compared with the cell's, from either side, with the result."""
    by_id = {other.id: other for other in cells if other.id != cell.id}
    own = [(by_id[pair.cell], pair) for pair in cell.engines if pair.cell in by_id]
    return own + [(other, pair) for other in by_id.values() for pair in other.engines if pair.cell == cell.id]


def list_questions(cells: Sequence[Cell], cell: Cell) -> list[Question]:
    """List the searches that are worth requesting: against the reference where parity or the check without
    optimisations failed, and against each cell of the block with the same recipe whose outputs differ from this cell's.
    Searches that were requested before are listed again."""
    levels = cell.unoptimised is not None and cell.unoptimised.verdict == "fail"
    asked = [Question("Find the first divergent node")] if cell.parity.verdict == "fail" or levels else []
    alike = [other for other in cells if other.block == cell.block and other.recipe == cell.recipe]
    differing = [other for other, pair in list_engine_pairs(alike, cell) if pair.verdict == "fail"]
    return [*asked, *(Question(f"Find where it parts from {_name_cell(other)}", other.id) for other in differing)]


def _make_answer(row: "Divergence", known: dict[str, Cell]) -> Answer:
    against = row.against.name if row.against else ""
    other = f"{_name_cell(known[against])}" if against in known else against or "the reference"
    document = row.document
    state = "waiting" if row.is_open else "failed" if document is None else "done"
    answer = Answer(row, f"Against {other}", state)
    if document is None or document.found is None:
        return answer
    difference, look = document.found, document.found.look
    return replace(
        answer,
        part=difference.part,
        table=_make_table(document, difference.tensor, look, number=row.pk) if look else None,
        beyond=_describe_beyond(look) if look else "",
    )


def _make_table(document: DivergenceDocument, tensor: str, look: TensorLook, *, number: int) -> Table:
    sides = ((str(document.candidate), look.candidate), (document.reference, look.reference))
    known = [(name, spread) for name, spread in sides if spread is not None]
    caption = f"Values of {tensor} on both sides"
    return Table.of(f"divergence-{number}", caption, COLUMNS, known)


def _figure_entry(value: float | None) -> Entry:
    return Entry() if value is None else Entry(f"{value:.6g}".replace("-", numbers.MINUS), value)


def _describe_beyond(look: TensorLook) -> str:
    at = look.furthest
    where = f"; at {list(at.index)} {at.candidate:g} where the reference has {at.reference:g}" if at is not None else ""
    return f"{look.violations:,} of {look.elements:,} values are beyond tolerance{where}."


def _name_cell(cell: Cell) -> str:
    level = "" if cell.optimization == "all" else f", optimization {cell.optimization}"
    return f"{cell.id} ({titles.runtime_in_words(cell.runtime)}, {titles.provider(cell.provider)}{level})"


@page
def divergence(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponse:
    """Render the panel alone, which the page loads again until the result is there. Raises Missing for a cell that the
    run does not have, and for a cell without results."""
    row = selectors.run(signed_in_user(request), run_id)
    cells = selectors.document(row, with_operators=False).cells
    cell = next((cell for cell in cells if cell.id == cell_id), None)
    if cell is None:
        raise Missing(f"Run {run_id} has no cell {cell_id!r}.")
    context = {"run": row, "cell": cell, **make_panel(request, row, cells, cell)}
    return render(request, "dashboard/parts/divergence.html", context)


@action
def ask(request: HttpRequest, run_id: int, cell_id: str) -> HttpResponseBase:
    """Request the search for the first divergent graph node, against the cell that the form names, else the reference.
    A search that has ended is made again, and its result is deleted. Redirects to the cell's page, which shows a
    refusal, and later the result."""
    user, against = signed_in_user(request), request.POST.get("against", "")[:40] or None
    row = selectors.run(user, run_id)
    done = "Requested. The node will look for the first divergent operator."
    carry_out(request, services.ask_divergence, lambda _: done, run=row, cell=cell_id, by=user, against=against)
    return redirect("dashboard:cell", run_id=run_id, cell_id=cell_id)


def make_panel(request: HttpRequest, row: "Run", cells: list[Cell], cell: Cell) -> dict[str, object]:
    """Make the context of the panel: the searches so far, also open ones, the newest first, and the buttons for further
    searches. Readers who may not write get no buttons."""
    known = {cell.id: cell for cell in cells}
    found = [_make_answer(divergence, known) for divergence in reversed(list(divergences_of(row, cell.id)))]
    may_ask = selectors.can_write_run(signed_in_user(request), row)
    return {
        "divergences": found,
        "may_fetch_part": may_ask,
        "divergence_questions": list_questions(cells, cell) if may_ask else [],
        "is_diverging": any(answer.row.is_open for answer in found),
    }
