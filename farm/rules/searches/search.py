"""The protocol of all searches: `next` says what to measure, `record` takes the outcome, `answer` returns the result.

A search does not measure. On this machine `carry_out` measures in a loop. On a farm, a database row stores the search,
and each tick takes it one step further. Outcomes that rows store are therefore plain values.
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
    """A search cannot be answered; the message says why in one sentence.

    `is_infra` says that the machine is the cause, not the question.
    """

    def __init__(self, text: str, *, is_infra: bool = False) -> None:
        super().__init__(text)
        self.is_infra = is_infra


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to measure next, in one block.

    `asked` has plain values that identify it among the search's experiments. Rows store them until the outcome is read.
    """

    matrix: Matrix
    title: str = ""
    asked: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a bench measured.

    `positions` returns the position on each axis of the matrix for a cell's id in the document. `reviewed` has the
    names of nodes under review, whose figures do not count.
    """

    matrix: Matrix
    document: Document
    positions: Callable[[str], Positions]
    reviewed: frozenset[str] = frozenset()

    def narrow_to(self, cells: Iterable[str], *, runtimes: Sequence[Runtime], hardware: Sequence[str] = ()) -> Matrix:
        """Return the smallest matrix with the points of these cells, by id, on these runtimes and this hardware.

        Without `hardware` it keeps that of the matrix.
        """
        places = [self.positions(cell) for cell in dict.fromkeys(cells)]
        return narrow_matrix(self.matrix, places, runtimes=runtimes, hardware=hardware)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer as a sentence for people, and as plain values whose keys depend on the kind of search."""

    sentence: str
    plain: Mapping[str, object]


class Search(ABC, Generic[Outcome, Result]):
    """A question that is answered by measuring. `answer` may be called once `next` has returned None."""

    @abstractmethod
    def next(self) -> Experiment | None:
        """Return what to measure next, the same until an outcome is recorded; None once the answer is known."""

    def read(self, asked: Mapping[str, object], measured: Measured | None) -> Outcome:
        """Return the outcome to record for the experiment with this `asked`.

        `measured` is None if the results were lost. By default the outcome is `measured` itself.
        """
        return cast(Outcome, measured)

    def is_undecided(self, outcome: Outcome) -> bool:
        """Whether more rounds of the same experiment may still decide the outcome. By default they do not."""
        return False

    @abstractmethod
    def record(self, outcome: Outcome) -> None:
        """Record the outcome of the experiment that `next` returned.

        Raises SearchProblem if the question turns out to be wrong.
        """

    @abstractmethod
    def answer(self) -> Result: ...


class Bench(Protocol[Outcome]):
    """A place that measures an experiment at once and returns its outcome."""

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome: ...


def carry_out(search: Search[Outcome, Result], bench: Bench[Outcome]) -> Result:
    """Measure one experiment after another until the search has its answer, and return the answer."""
    while (experiment := search.next()) is not None:
        search.record(bench.measure(experiment, search))
    return search.answer()
