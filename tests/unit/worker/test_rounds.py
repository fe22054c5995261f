"""The order of a round's arms."""

import itertools
from collections import Counter

import pytest

from worker.agent.measurement.schedule import order_arms


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 16])
def test_every_arm_stands_once_in_every_place_within_as_many_rounds_as_arms(count: int) -> None:
    arms = list(range(count))
    orders = [order_arms(arms, round_number=number, seed="block") for number in range(count)]
    for place in range(count):
        assert {order[place] for order in orders} == set(arms)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_every_arm_follows_every_other_once_within_as_many_rounds_as_arms(count: int) -> None:
    orders = [order_arms(range(count), round_number=number, seed="block") for number in range(count)]
    followed = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert set(followed.values()) == {1}
    assert len(followed) == count * (count - 1)


def test_the_order_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    def orders(seed: str) -> list[list[int]]:
        return [order_arms(range(5), round_number=number, seed=seed) for number in range(10)]

    assert orders("a") == orders("a")
    assert orders("a") != orders("b")


def test_an_arm_that_was_dropped_is_left_out_and_the_others_all_stand_in_the_round() -> None:
    assert sorted(order_arms([0, 2, 5], round_number=3, seed="block")) == [0, 2, 5]
    assert order_arms([4], round_number=1, seed="block") == [4]
    assert order_arms([], round_number=1, seed="block") == []
