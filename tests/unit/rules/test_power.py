"""What rounds can see."""

import numpy as np
import pytest

from farm.rules.comparing import power, verdicts


@pytest.mark.parametrize(
    ("deviation", "rounds", "smallest"), [(0.0, 8, 0.02), (0.007, 8, 0.0242), (0.056, 8, 0.0911), (0.056, 24, 0.0526)]
)
def test_the_smallest_detectable_change_shrinks_with_rounds_down_to_the_margin(
    deviation: float, rounds: int, smallest: float
) -> None:
    assert power.smallest_detectable(deviation, rounds, 0.02) == pytest.approx(smallest, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "deviation", "rounds"),
    [(0.05, 0.015, 8), (-0.05, 0.015, 8), (0.03, 0.015, 12), (0.05, 0.056, None), (0.02, 0.0001, None), (0.1, 0.0, 8)],
)
def test_a_wished_change_takes_so_many_rounds_or_none_will_do(change: float, deviation: float, rounds: int | None):
    assert power.rounds_for(change, deviation, 0.02) == rounds


@pytest.mark.parametrize(("change", "deviation"), [(0.03, 0.015), (0.05, 0.03), (0.10, 0.056)])
def test_the_rounds_named_for_a_change_find_it_in_nearly_all_blocks(change: float, deviation: float) -> None:
    rounds = power.rounds_for(change, deviation, 0.02)
    assert rounds is not None
    pairs = np.exp(deviation / np.sqrt(2.0) * np.random.default_rng(1).normal(size=(1000, rounds, 2)))
    pairs[:, :, 1] *= 1.0 + change
    assert sum(one.verdict == "slower" for one in verdicts.judge_many(list(pairs))) >= 930


def test_looks_of_another_budget_are_asked_too() -> None:
    assert power.rounds_for(0.04, 0.03, 0.02, looks=(4, 48)) == 48
    assert power.rounds_for(0.5, 0.03, 0.02, looks=(4,)) == 4


@pytest.mark.parametrize(
    ("location", "deviation", "rounds"),
    [(0.05, 0.015, 8), (-0.05, 0.056, None), (0.0, 0.02, 8), (0.0, 0.03, 16), (0.0198, 0.01, None), (0.01, 0.1, None)],
)
def test_what_was_seen_so_far_says_when_a_verdict_is_due(location: float, deviation: float, rounds: int | None) -> None:
    assert power.rounds_to_decide(location, deviation, 0.02) == rounds
