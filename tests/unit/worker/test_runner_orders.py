"""What the agent may tell a runner is what the runner reads, though neither imports the other."""

import dataclasses

import pytest

from worker.agent.measurement import orders
from worker.runner import order


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (orders.RunnerOrder, order.Order),
        (orders.BudgetPart, order.BudgetOrder),
        (orders.BuildingPart, order.BuildingPart),
        (orders.EvaluationPart, order.EvaluationPart),
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_runner_reads_every_key_that_the_agent_may_tell(told: type, read: type) -> None:
    keys = set(told.__annotations__) - {"version"}
    assert keys == {field.name for field in dataclasses.fields(read)}


def test_the_runner_takes_pairs_as_the_agent_tells_them() -> None:
    assert orders.Pair.__annotations__ == order.Pair.__annotations__
