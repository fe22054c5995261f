"""Noise is shown twice: what a first block shows counts once a fresh block of the same cells shows it again."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.sides import turned
from farm.rules.findings.cell_pairs import series_of
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
    """The document with the operators of the second one, in comparisons of the same cells where those tell more.

    Figures and verdicts of the comparisons stay: what is told is what was found first, and was shown again.
    """
    places = places_of(again)
    fresh = {
        _sides(side, places): side for comparison in again.comparisons for side in (comparison, turned(comparison))
    }
    known = places_of(document)
    comparisons = [_explained(comparison, fresh.get(_sides(comparison, known))) for comparison in document.comparisons]
    return document.model_copy(update={"comparisons": comparisons})


def _explained(comparison: Comparison, fresh: Comparison | None) -> Comparison:
    if fresh is None or _evidence(fresh) <= _evidence(comparison):
        return comparison
    told = {"operators": fresh.operators, "prompt_operators": fresh.prompt_operators, "traces": fresh.traces}
    return comparison.model_copy(update=told)


def _evidence(comparison: Comparison) -> tuple[bool, bool]:
    """How much its operators tell: which part of the change is theirs, and whether each changed."""
    operators = comparison.operators
    return any(change.share is not None for change in operators), any(change.verdict for change in operators)


def places_of(document: Document) -> dict[str, Place]:
    """What tells a cell of one run from others of it, by the cell's name. Not the hardware that was asked for: a run
    that confirms asks for the very node."""
    return {cell.id: (series_of(cell), str(cell.runtime), cell.node or "") for cell in document.cells}


def _sides(comparison: Comparison, places: Mapping[str, Place]) -> tuple[Place, Place]:
    return places[comparison.baseline], places[comparison.candidate]
