"""Which blocks carry an A/A pair, from the history of the nodes that may take them."""

import pytest

from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.null_pairs import NullPairs
from farm.rules.planning.plans import NodeOffer, Plan
from tests.unit.rules.making import make_model


def plan_for(*nodes: NodeOffer, batches: int = 2) -> Plan:
    declared = matrix.from_options(runtime="1.31.1", batch=list(range(1, batches + 1)))
    return planner.plan(declared, make_model(), nodes, with_null_pair=True)


def has_twin(plan: Plan) -> list[bool]:
    return [any(arm.twin_of is not None for arm in block.arms) for block in plan.blocks]


def node(name: str = "a", **history: object) -> NodeOffer:
    return NodeOffer.model_validate({"id": name, "name": name, **history})


@pytest.mark.parametrize(("since", "expected"), [(None, True), (0, False), (6, False), (7, True), (40, True)])
def test_a_run_of_one_block_carries_a_pair_when_its_node_is_due(since: int | None, expected: bool) -> None:
    assert has_twin(plan_for(node(blocks_since_pair=since))) == [expected]


def test_on_a_nodes_first_day_every_block_carries_one() -> None:
    plan = plan_for(node(blocks_since_pair=0, is_first_day=True), batches=40)
    assert len(plan.blocks) > 2
    assert all(has_twin(plan))
    assert all(len(block.arms) <= 16 for block in plan.blocks)


def test_a_matrix_that_just_fits_a_block_is_split_on_the_first_day_only() -> None:
    assert has_twin(plan_for(node(blocks_since_pair=None), batches=16)) == [False]
    assert has_twin(plan_for(node(blocks_since_pair=None, is_first_day=True), batches=16)) == [True, True]


def test_blocks_of_a_long_run_count_on() -> None:
    plan = plan_for(node(blocks_since_pair=5), batches=200)
    assert has_twin(plan)[:12] == [number in (2, 10) for number in range(12)]


def test_one_new_node_among_those_that_may_take_it_is_enough() -> None:
    assert has_twin(plan_for(node("a", blocks_since_pair=0), node("b"))) == [True]


def test_a_block_of_two_nodes_counts_half_on_each() -> None:
    nodes = (node("a", blocks_since_pair=6), node("b", blocks_since_pair=6))
    pairs = NullPairs(nodes)
    pairs.record_block(nodes, has_pair=False)
    assert not pairs.is_due(nodes)
    pairs.record_block(nodes, has_pair=False)
    assert pairs.is_due(nodes)
    pairs.record_block(nodes, has_pair=True)
    assert not pairs.is_due(nodes)


def test_two_equal_cells_of_the_matrix_are_a_pair_already() -> None:
    declared = matrix.from_options(runtime="1.31.1,1.31.1", batch="1")
    plan = planner.plan(declared, make_model(), [node(is_first_day=True)], with_null_pair=True)
    assert [arm.id for arm in plan.blocks[0].arms] == ["c1", "c2"]
