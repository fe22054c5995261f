"""Tokens drawn from scores: among how many, how often which, and the same again from the same seed."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from worker.runner.faults import Refusal
from worker.runner.scenarios import token_choice

# probabilities 0.5, 0.25, 0.125, 0.125 in another order
SCORES = np.log(np.array([[0.125, 0.5, 0.125, 0.25]], dtype=np.float32))


def chosen(count: int = 4000, **told: Any) -> Counter[int]:
    choose = token_choice.make_chooser({"temperature": 1.0, "seed": 3, **told})
    return Counter(int(choose(SCORES)[0]) for _ in range(count))


def test_the_likeliest_is_the_first_of_equal_ones() -> None:
    assert token_choice.make_chooser({})(np.array([[1.0, 2.0, 2.0], [5.0, 1.0, 0.0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("limit", "shares"),
    [
        (0.5, {1: 1.0}),
        (0.7, {1: 2 / 3, 3: 1 / 3}),
        (1.0, {1: 0.5, 3: 0.25, 0: 0.125, 2: 0.125}),
    ],
)
def test_top_p_draws_from_the_fewest_that_have_so_much(limit: float, shares: dict[int, float]) -> None:
    found = chosen(sampling="top-p", limit=limit)
    assert found.keys() == shares.keys()
    assert all(found[token] / 4000 == pytest.approx(share, abs=0.04) for token, share in shares.items())


def test_top_k_draws_from_so_many_and_temperature_flattens() -> None:
    assert chosen(sampling="top-k", limit=2.0).keys() == {1, 3}
    assert chosen(sampling="top-k", limit=40.0).keys() == {0, 1, 2, 3}
    warm = chosen(sampling="top-k", limit=2.0, temperature=10.0)
    assert warm[1] / 4000 == pytest.approx(0.517, abs=0.03)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    told = {"sampling": "top-p", "limit": 1.0, "temperature": 1.0}
    first, again, other = (token_choice.make_chooser({**told, "seed": seed}) for seed in (3, 3, 4))
    streams = [[int(one(SCORES)[0]) for _ in range(50)] for one in (first, again, other)]
    assert streams[0] == streams[1] != streams[2]


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(Refusal, match="knows no sampling named 'beams'"):
        token_choice.make_chooser({"sampling": "beams", "limit": 2.0})
