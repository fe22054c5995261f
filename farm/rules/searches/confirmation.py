"""Guards against noise: what a first block shows counts only if a fresh block of the same cells shows it again."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.search import Experiment, Measured, Result, Search


@dataclass
class Confirmation(Search[Measured, Result]):
    """A search that measures the matrix that `matrix` returns, and then measures again what may be noise."""

    matrix: Callable[[], Matrix]
    measured: list[Measured] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def matrix_to_confirm(self, first: Measured) -> Matrix | None:
        """Return the matrix to measure again after the first block; None where nothing has to be confirmed."""

    def needs_another_block(self, again: Measured) -> bool:
        """Whether a third block is needed, because the second one, `again`, neither confirms nor contradicts the first.

        By default none is needed.
        """
        return False

    def next(self) -> Experiment | None:
        """Return the first block, then a fresh one of what has to be confirmed, then a third one if the second does not
        decide; None once nothing has to be measured."""
        if not self.measured:
            return Experiment(self.matrix())
        first, *later = self.measured
        if len(later) > 1 or (later and not self.needs_another_block(later[0])):
            return None
        matrix = self.matrix_to_confirm(first)
        return None if matrix is None else Experiment(matrix)

    def record(self, outcome: Measured) -> None:
        self.measured.append(outcome)
