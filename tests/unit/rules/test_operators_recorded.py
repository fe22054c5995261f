"""Operators judged on times that real launches of a model against itself had, round by round."""

import pytest

from farm.rules.tracing.node_verdicts import judge_nodes
from tests.bench import operators

SEED = 5
BLOCKS = 12


@pytest.fixture(scope="module")
def recorded() -> operators.Recorded:
    return operators.Recorded.read()


def test_a_tenth_more_at_one_operator_is_called_there_and_hardly_ever_elsewhere(recorded: operators.Recorded) -> None:
    found = operators.judge_recorded(recorded, count=BLOCKS, pairs=12, seed=SEED)
    assert found["called"] >= 0.8 * BLOCKS
    assert found["wrong"] + found["aa"] <= 1


def test_an_operator_that_hands_its_time_to_the_one_behind_it_is_not_called(recorded: operators.Recorded) -> None:
    first = max(recorded.neighbours, key=lambda name: float(recorded.times[:, 0, recorded.groups.index(name)].mean()))
    second = max(
        recorded.neighbours[first], key=lambda name: float(recorded.times[:, 0, recorded.groups.index(name)].mean())
    )
    pairs = {name: [(us, us)] * 12 for name, us in ((first, 400.0), (second, 400.0))}
    pairs[first] = [(400.0, 340.0 + number % 3) for number in range(12)]
    pairs[second] = [(400.0, 460.0 - number % 3) for number in range(12)]
    judged = judge_nodes(pairs, neighbours=recorded.neighbours, margin=0.02)
    assert {one.verdict for one in judged.values()} == {"undecided"}
    assert {one.verdict for one in judge_nodes(pairs, neighbours={}, margin=0.02).values()} == {"slower", "faster"}
