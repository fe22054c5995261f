"""About which waiting nodes the gateway asks the database at once when a block is to be had."""

import pytest

from farm.gateway.dispatch import FIRST_PORTION, PORTION, split_into_portions


@pytest.mark.parametrize("count", [0, 1, FIRST_PORTION, FIRST_PORTION + 1, PORTION + FIRST_PORTION, 1000])
def test_every_waiting_node_is_asked_about_once_in_the_order_of_arrival(count: int) -> None:
    waiting = list(range(count))
    found = list(split_into_portions(waiting))
    assert [one for portion in found for one in portion] == waiting
    assert all(0 < len(portion) <= PORTION for portion in found)


def test_a_large_fleet_costs_a_block_a_question_about_few_nodes() -> None:
    assert len(next(iter(split_into_portions(range(1000))))) == FIRST_PORTION < PORTION
