"""Noise is shown twice: what a first block shows counts once a fresh block of the same cells shows it again."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.sides import turned
from farm.rules.findings.cell_pairs import place_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.search import Experiment, Measured, Result, Search

Place = tuple[str, ...]


@dataclass
class Confirmation(Search[Measured, Result]):
    """Two sides of a matrix, which `matrix` makes."""

    matrix: Callable[[], Matrix]
    measured: list[Measured] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def fresh(self, first: Measured) -> Matrix | None:
        """What has to be shown again; None where nothing has to be."""

    def leaves_open(self, again: Measured) -> bool:
        """Whether the fresh block neither shows it nor contradicts it, so that one more is measured."""
        return False

    def next(self) -> Experiment | None:
        if not self.measured:
            return Experiment(self.matrix())
        first, *again = self.measured
        is_asked = not again or (len(again) == 1 and self.leaves_open(again[0]))
        matrix = self.fresh(first) if is_asked else None
        return None if matrix is None else Experiment(matrix)

    def record(self, outcome: Measured) -> None:
        self.measured.append(outcome)


def explained_by(document: Document, again: Document) -> Document:
    """The document with the operators of the second one, in comparisons of the same cells where those were judged.

    Figures and verdicts of the comparisons stay: what is told is what was found first, and was shown again.
    """
    places = _places(again)
    judged = [comparison for comparison in again.comparisons if any(change.verdict for change in comparison.operators)]
    fresh = {_sides(side, places): side for comparison in judged for side in (comparison, turned(comparison))}
    known = _places(document)
    comparisons = [_explained(comparison, fresh.get(_sides(comparison, known))) for comparison in document.comparisons]
    return document.model_copy(update={"comparisons": comparisons})


def _explained(comparison: Comparison, fresh: Comparison | None) -> Comparison:
    if fresh is None:
        return comparison
    return comparison.model_copy(update={"operators": fresh.operators, "traces": fresh.traces})


def _places(document: Document) -> dict[str, Place]:
    """What tells a cell of one run from others of it, by the cell's name."""
    return {cell.id: (*place_of(cell), str(cell.runtime), cell.node or "") for cell in document.cells}


def _sides(comparison: Comparison, places: Mapping[str, Place]) -> tuple[Place, Place]:
    return places[comparison.baseline], places[comparison.candidate]
