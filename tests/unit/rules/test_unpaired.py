"""Launches that were not side by side."""

import numpy as np
import pytest
from scipy import stats

from farm.rules.comparing import unpaired


def arms(old: int, new: int, *, change: float = 0.0, spread: float = 0.01, seed: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return np.exp(spread * rng.normal(size=old)), (1.0 + change) * np.exp(spread * rng.normal(size=new))


@pytest.mark.parametrize(
    ("change", "spread", "verdict"),
    [(0.1, 0.01, "slower"), (-0.1, 0.01, "faster"), (0.0, 0.002, "equal"), (0.0, 0.2, "undecided")],
)
@pytest.mark.parametrize(("olds", "news"), [(8, 8), (8, 24), (60, 80)])
def test_each_word_is_said_where_it_is_due(change: float, spread: float, verdict: str, olds: int, news: int) -> None:
    judged = unpaired.judge(*arms(olds, news, change=change, spread=spread), margin=0.02)
    assert judged.verdict == verdict
    assert judged.ci_low <= judged.ratio <= judged.ci_high
    assert judged.rounds_used == min(olds, news)


def test_too_few_launches_decide_nothing_and_say_what_their_interval_is_worth() -> None:
    assert unpaired.judge(*arms(4, 4, change=1.0), margin=0.02).verdict == "undecided"
    assert unpaired.judge(*arms(2, 2, spread=0.0), margin=0.02).verdict == "undecided"
    assert unpaired.judge(*arms(3, 3), margin=0.02).ci_level == pytest.approx(0.9)


def test_five_against_five_can_tell() -> None:
    assert unpaired.judge(*arms(5, 5, change=0.2), margin=0.02).verdict == "slower"


def test_many_launches_use_the_normal_approximation_and_name_it() -> None:
    old, new = arms(60, 80, change=0.004)
    judged = unpaired.judge(old, new, margin=0.02)
    assert judged.test == "Mann-Whitney, normal approximation"
    expected = stats.mannwhitneyu(np.round(np.log(old), 12), np.round(np.log(new), 12), method="asymptotic").pvalue
    assert judged.p == pytest.approx(expected)


def test_the_approximation_meets_the_exact_test_where_one_takes_over() -> None:
    old, new = arms(50, 50, change=0.004)
    exact = unpaired.judge(old, new, margin=0.02)
    assert exact.test == "exact Mann-Whitney"
    assert unpaired._compute_normal_p(np.log(old), np.log(new)) == pytest.approx(exact.p, rel=0.05)


def test_many_equal_launches_are_equal() -> None:
    judged = unpaired.judge(np.full(70, 2.0), np.full(70, 2.0), margin=0.02)
    assert (judged.verdict, judged.p, judged.ratio) == ("equal", 1.0, 1.0)


def test_false_alarms_stay_under_one_in_a_hundred() -> None:
    judged = [unpaired.judge(*arms(8, 8, spread=0.2, seed=seed), margin=0.0) for seed in range(1500)]
    assert sum(one.verdict in ("slower", "faster") for one in judged) < 28
