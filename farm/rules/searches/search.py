"""What all searches share: one says what to measure next, is given what came of it, and knows its answer.

Where it is measured is a bench's affair: this machine does it in a loop (`carry_out`), the farm with a row that a tick
takes one step further. Outcomes of searches that rows keep are plain values.
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
    """The question itself is wrong, in one sentence. `is_infra`: the machine, not the question, is to blame."""

    def __init__(self, text: str, *, is_infra: bool = False) -> None:
        super().__init__(text)
        self.is_infra = is_infra


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to measure next, side by side. `asked`: what tells it from the search's others, as a row keeps it."""

    matrix: Matrix
    title: str = ""
    asked: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a bench measured. `positions`: where a cell of the document, by its name, stands in the matrix.

    `reviewed`: names of nodes under review, whose figures do not count.
    """

    matrix: Matrix
    document: Document
    positions: Callable[[str], Positions]
    reviewed: frozenset[str] = frozenset()

    def narrowed(self, cells: Iterable[str], *, runtimes: Sequence[Runtime], hardware: Sequence[str] = ()) -> Matrix:
        places = [self.positions(cell) for cell in dict.fromkeys(cells)]
        return narrow_matrix(self.matrix, places, runtimes=runtimes, hardware=hardware)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to people, and as plain values in the shape of its kind."""

    sentence: str
    plain: Mapping[str, object]


class Search(ABC, Generic[Outcome, Result]):
    """One question that is answered by measuring."""

    @abstractmethod
    def next(self) -> Experiment | None:
        """What to measure next; None when the answer is known. The same until an outcome is recorded."""

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Outcome:
        """What the measured experiment says, to be recorded: everything. `measured` None: it was lost."""
        return cast(Outcome, measured)

    def is_undecided(self, outcome: Outcome) -> bool:
        return False

    @abstractmethod
    def record(self, outcome: Outcome) -> None:
        """Note an outcome. Raises SearchProblem."""

    @abstractmethod
    def answer(self) -> Result: ...


class Bench(Protocol[Outcome]):
    """Where experiments are measured while one waits."""

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome: ...


def carry_out(search: Search[Outcome, Result], bench: Bench[Outcome]) -> Result:
    """The answer, once everything is measured."""
    while (experiment := search.next()) is not None:
        search.record(bench.measure(experiment, search))
    return search.answer()
