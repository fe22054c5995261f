"""What a confirming block adds to what it confirms: its launches were traced, so that its operators have verdicts."""

from collections.abc import Mapping

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.changes.watch_rounds import place_of
from farm.rules.comparing.sides import turned

Place = tuple[str, ...]


def explained_by(document: Document, again: Document) -> Document:
    """The document with the operators of the second one, in comparisons of the same cells where those were judged.

    Figures and verdicts of the comparisons stay: what is told is what was found first, and was shown again.
    """
    places = _places(again)
    judged = [one for one in again.comparisons if any(change.verdict for change in one.operators)]
    fresh = {_sides(side, places): side for one in judged for side in (one, turned(one))}
    known = _places(document)
    comparisons = [_explained(one, fresh.get(_sides(one, known))) for one in document.comparisons]
    return document.model_copy(update={"comparisons": comparisons})


def _explained(one: Comparison, fresh: Comparison | None) -> Comparison:
    if fresh is None:
        return one
    return one.model_copy(update={"operators": fresh.operators, "traces": fresh.traces})


def _places(document: Document) -> dict[str, Place]:
    """What tells a cell of one run from others of it, by the cell's name."""
    return {cell.id: _place(cell) for cell in document.cells}


def _place(cell: Cell) -> Place:
    return (*place_of(cell), cell.runtime, cell.node or "")


def _sides(one: Comparison, places: Mapping[str, Place]) -> tuple[Place, Place]:
    return places[one.baseline], places[one.candidate]
