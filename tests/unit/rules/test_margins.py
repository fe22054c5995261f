"""What a node's A/A history says."""

import numpy as np
import pytest

from farm.rules.comparing import margins


def test_the_margin_is_two_per_cent_until_a_hundred_comparisons_exist() -> None:
    assert margins.margin_from_null([0.04] * 99) == 0.02


@pytest.mark.parametrize(
    ("estimate", "margin"), [(0.001, 0.02), (0.03, np.expm1(0.03)), (-0.03, np.expm1(0.03)), (0.4, 0.05)]
)
def test_the_margin_follows_the_history_between_two_and_five_per_cent(estimate: float, margin: float) -> None:
    assert margins.margin_from_null([estimate] * 100) == pytest.approx(margin)


def test_the_margin_leaves_out_one_estimate_in_a_hundred() -> None:
    assert margins.margin_from_null([0.03] * 299 + [0.9] * 2) == pytest.approx(np.expm1(0.03))


def test_each_further_metric_has_the_margin_of_its_own_history_without_a_cap() -> None:
    found = margins.metric_margins(
        {"session_ms": [0.3] * 100, "first_ms": [0.3] * 99, "calm": [0.0] * 100, "x": [9.0] * 100}
    )
    assert found == {"session_ms": pytest.approx(np.expm1(0.3)), "calm": 0.02, "x": margins.MAX_METRIC_MARGIN}


def test_the_noise_floor_is_pooled_over_comparisons_each_about_its_own_mean() -> None:
    rng = np.random.default_rng(1)
    rounds = [offset + 0.015 * rng.normal(size=8) for offset in rng.normal(0.0, 1.0, size=300)]
    floor = margins.estimate_noise_floor([one.tolist() for one in rounds])
    assert floor.deviation == pytest.approx(0.015, rel=0.05)
    assert (floor.comparisons, floor.margin) == (300, 0.02)
    assert sorted(floor.smallest_detectable) == [8, 12, 16, 24]


@pytest.mark.parametrize("nothing", [[], [[0.1]], [[]]])
def test_without_two_rounds_of_anything_there_is_no_noise_floor(nothing: list[list[float]]) -> None:
    assert margins.estimate_noise_floor(nothing) is None


def test_false_alarms_are_counted_with_their_interval() -> None:
    alarms = margins.count_false_alarms(["equal"] * 97 + ["slower", "faster", "undecided"])
    assert (alarms.alarms, alarms.comparisons, alarms.rate) == (2, 100, 0.02)
    assert (alarms.low, alarms.high) == (pytest.approx(0.0024, abs=1e-4), pytest.approx(0.0704, abs=1e-4))


def test_a_node_without_comparisons_has_no_rate() -> None:
    assert margins.count_false_alarms([]) is None
