"""A small race on the search protocol: arms share blocks, and leave when their interval against the leader shuts them
out. It stands here alone, and shows that both benches can drive such a search.
"""

from dataclasses import dataclass, field, replace

import pytest

from farm.contract.cells import Budget, CellSpec
from farm.contract.document import Document
from farm.rules.comparing.sides import between, by_sides
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix import Matrix
from farm.rules.searches.search import Experiment, Measured, Search, carry_out
from onnxfarm.here.workbench import Machine
from tests.unit.commands.made_up import MadeUpBench

AXIS = "threads"


@dataclass
class Race(Search[Measured, list[int]]):
    """Which numbers of threads are the fastest: quick blocks until no arm leaves, then a final one."""

    matrix: Matrix
    arms: list[int]
    is_over: bool = False
    is_final: bool = False
    raced: list[list[int]] = field(default_factory=list)

    def next(self) -> Experiment | None:
        if self.is_over:
            return None
        budget = Budget.STANDARD if self.is_final else Budget.QUICK
        axes = {**self.matrix.axes, AXIS: tuple(self.arms)}
        return Experiment(replace(self.matrix, axes=axes, budget=budget), asked={"arms": list(self.arms)})

    def record(self, outcome: Measured) -> None:
        left = left_in(outcome.document)
        self.raced.append(list(self.arms))
        self.is_over, self.is_final = self.is_final, left == self.arms or len(left) == 1
        self.arms = left

    def answer(self) -> list[int]:
        return self.arms


def left_in(document: Document) -> list[int]:
    """The leader, and the arms that its interval does not exclude."""
    pairs = by_sides(document.comparisons)
    cells = [cell for cell in document.cells if cell.twin_of is None and cell.p50_ms is not None]
    leader = min(cells, key=lambda cell: cell.p50_ms or 0.0)
    against = {cell.threads: between(pairs, leader.id, cell.id) for cell in cells}
    return [threads for threads, pair in against.items() if pair is None or (pair.ci_low or 0.0) <= 1.0 + pair.margin]


def race(*arms: int) -> Race:
    declared = {"batch": [1], "precision": ["fp32"], "runtime": ["1.31.1"], AXIS: list(arms)}
    return Race(matrices.parse(declared), list(arms))


def bench(**p50_ms: float) -> MadeUpBench:
    def latency(spec: CellSpec) -> float:
        return p50_ms[f"t{spec.session.threads}"]

    return MadeUpBench(p50_ms=latency)


@pytest.mark.parametrize(
    ("times", "blocks", "answer"),
    [
        ({"t1": 2.0, "t2": 1.0, "t4": 1.5, "t8": 3.0}, [4, 1], [2]),
        ({"t1": 2.0, "t2": 1.0, "t4": 1.0, "t8": 3.0}, [4, 2, 2], [2, 4]),
        ({"t1": 1.0, "t2": 1.0, "t4": 1.0, "t8": 1.0}, [4, 4], [1, 2, 4, 8]),
    ],
)
def test_arms_leave_on_their_interval_and_the_rest_run_a_final_block(
    times: dict[str, float], blocks: list[int], answer: list[int]
) -> None:
    made_up = bench(**times)
    search = race(1, 2, 4, 8)
    assert carry_out(search, Machine(made_up, lambda block: block)) == answer
    assert [len(arms) for arms in search.raced] == [len(versions) for versions in made_up.measured] == blocks


def test_a_race_that_is_built_anew_from_its_outcomes_goes_on_where_it_was() -> None:
    machine = Machine(bench(t1=2.0, t2=1.0, t4=1.0, t8=3.0), lambda block: block)
    search, outcomes = race(1, 2, 4, 8), []
    while (experiment := search.next()) is not None:
        assert search.next() == experiment, "the same until an outcome is recorded"
        again = race(1, 2, 4, 8)
        for outcome in outcomes:
            again.record(outcome)
        assert again.next() == experiment
        outcomes.append(machine.measure(experiment, again))
        search.record(outcomes[-1])
    assert len(outcomes) == 3
