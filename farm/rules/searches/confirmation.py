"""Noise is shown twice: what a first block shows counts once a fresh block of the same cells shows it again."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.search import Experiment, Measured, Result, Search


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
