"""What may be published of timings."""

import numpy as np
import pytest

from farm.rules.comparing import percentiles
from farm.rules.comparing.percentile_counts import MIN_TIMINGS


@pytest.mark.parametrize(
    ("count", "published"),
    [
        (1, {"p50"}),
        (63, {"p50"}),
        (64, {"p50", "p90"}),
        (661, {"p50", "p90"}),
        (662, {"p50", "p90", "p95", "p99"}),
        (6635, {"p50", "p90", "p95", "p99"}),
        (6636, {"p50", "p90", "p95", "p99", "p99.9"}),
    ],
)
def test_a_percentile_is_published_from_its_count_on(count: int, published: set[str]) -> None:
    summary = percentiles.summarise_timings(list(range(1, count + 1)))
    assert {name for name in MIN_TIMINGS if summary[name] is not None} == published


def test_mean_spread_and_range_are_always_published() -> None:
    summary = percentiles.summarise_timings([1.0, 2.0, 6.0])
    assert (summary["mean"], summary["min"], summary["max"], summary["p50"]) == (3.0, 1.0, 6.0, 2.0)
    assert summary["std"] == pytest.approx(np.sqrt(7.0))


def test_one_timing_has_no_spread() -> None:
    assert percentiles.summarise_timings([1.0])["std"] is None


@pytest.mark.parametrize("timings", [[], [1.0, float("nan")], [float("inf")]])
def test_what_cannot_be_summed_up_is_refused(timings: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot be summed up"):
        percentiles.summarise_timings(timings)


def launches(count: int, *, slow: int, factor: float, spread: float = 0.01) -> list[float]:
    samples = np.exp(spread * np.random.default_rng(1).normal(size=count))
    samples[:slow] *= factor
    return [float(sample) for sample in samples]


@pytest.mark.parametrize(
    ("count", "slow", "factor", "bimodal"),
    [
        (24, 5, 1.7, True),
        (8, 2, 1.7, True),
        (8, 4, 1.7, True),
        (24, 1, 1.7, False),
        (24, 12, 1.03, False),
        (24, 0, 1.0, False),
        (7, 3, 1.7, False),
        (200, 20, 1.7, True),
    ],
)
def test_two_groups_apart_are_seen_and_a_single_outlier_is_none(count: int, slow: int, factor: float, bimodal: bool):
    assert percentiles.is_bimodal(launches(count, slow=slow, factor=factor)) is bimodal


def test_equal_launches_are_one_group() -> None:
    assert not percentiles.is_bimodal([1.0] * 10)


@pytest.mark.parametrize("count", [8, 24])
def test_evenly_spread_launches_are_rarely_taken_for_two_groups(count: int) -> None:
    rng = np.random.default_rng(2)
    taken = sum(percentiles.is_bimodal(rng.uniform(1.0, 1.5, size=count).tolist()) for _ in range(1000))
    assert taken <= 25
