"""Guards against noise: what a first block shows counts only if a fresh block of the same cells shows it again."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.search import Experiment, Measured, Result, Search


@dataclass
class Confirmation(Search[Measured, Result]):
    """A search that compares two sides of the matrix that `matrix` makes, and measures again what may be noise."""

    matrix: Callable[[], Matrix]
    measured: list[Measured] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def matrix_to_confirm(self, first: Measured) -> Matrix | None:
        """Return the matrix to measure again after the first block; None where nothing has to be confirmed."""

    def needs_another_block(self, again: Measured) -> bool:
        """Whether the second block neither confirms nor contradicts the first one, so that a third one is measured."""
        return False

    def next(self) -> Experiment | None:
        """Return the first block, then a fresh one of what has to be confirmed, and a third where that one says too
        little.

        Return None once nothing has to be measured.
        """
        if not self.measured:
            return Experiment(self.matrix())
        first, *again = self.measured
        is_asked = not again or (len(again) == 1 and self.needs_another_block(again[0]))
        matrix = self.matrix_to_confirm(first) if is_asked else None
        return None if matrix is None else Experiment(matrix)

    def record(self, outcome: Measured) -> None:
        self.measured.append(outcome)
