"""What all searches share: a search says what to measure next, is told the outcome, and knows its answer.

Who measures is not its concern: this machine does it in a loop (`carry_out`), and the farm keeps the search in a row
that its tick takes one step further. Outcomes that are kept in rows are plain values.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Positions, narrow_matrix

Outcome = TypeVar("Outcome")
Result = TypeVar("Result")


class SearchProblem(ValueError):
    """Why a search cannot be answered, in one sentence. `is_infra`: because of the machine, not of the question."""

    def __init__(self, text: str, *, is_infra: bool = False) -> None:
        super().__init__(text)
        self.is_infra = is_infra


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to measure next, in one block. `asked`: plain values that identify it among the search's experiments; a row
    keeps them until the outcome is read."""

    matrix: Matrix
    title: str = ""
    asked: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a bench measured. `positions`: finds a cell's place in the matrix by the cell's id in the document.

    `reviewed`: names of nodes under review, whose figures do not count. `narrow_to` makes the matrix of some of its
    cells alone, on other runtimes and hardware.
    """

    matrix: Matrix
    document: Document
    positions: Callable[[str], Positions]
    reviewed: frozenset[str] = frozenset()

    def narrow_to(self, cells: Iterable[str], *, runtimes: Sequence[Runtime], hardware: Sequence[str] = ()) -> Matrix:
        places = [self.positions(cell) for cell in dict.fromkeys(cells)]
        return narrow_matrix(self.matrix, places, runtimes=runtimes, hardware=hardware)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer as a sentence for people, and as plain values whose keys depend on the kind of search."""

    sentence: str
    plain: Mapping[str, object]


class Search(ABC, Generic[Outcome, Result]):
    """A question that is answered by measuring.

    `is_undecided` says of an outcome whether more rounds of the same experiment may still decide it; `answer` is valid
    once `next` returns None.
    """

    @abstractmethod
    def next(self) -> Experiment | None:
        """Return what to measure next, the same until an outcome is recorded; None once the answer is known."""

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Outcome:
        """Turn what was measured into the outcome to record. `asked`: the experiment's; `measured`: None where its
        results were lost. As it stands here, the outcome is all that was measured."""
        return cast(Outcome, measured)

    def is_undecided(self, outcome: Outcome) -> bool:
        return False

    @abstractmethod
    def record(self, outcome: Outcome) -> None:
        """Note an outcome. Raises SearchProblem where the question turns out to be wrong."""

    @abstractmethod
    def answer(self) -> Result: ...


class Bench(Protocol[Outcome]):
    """A place that measures an experiment at once and returns its outcome."""

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome: ...


def carry_out(search: Search[Outcome, Result], bench: Bench[Outcome]) -> Result:
    """Measure one experiment after another until the search has its answer, and return that."""
    while (experiment := search.next()) is not None:
        search.record(bench.measure(experiment, search))
    return search.answer()
