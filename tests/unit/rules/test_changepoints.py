"""Level shifts, and what only looks like them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.comparing import changepoints, jumps, steps
from farm.rules.comparing.quantities import judge_series_value
from farm.rules.wording import numbers
from tests.bench.series import labelled_series


def level(*, length: int = 100, noise: float = 0.01, seed: int = 1) -> np.ndarray:
    return np.exp(noise * np.random.default_rng(seed).normal(size=length))


def indices(values: np.ndarray) -> list[int]:
    return [point.index for point in changepoints.find_changepoints(values.tolist())]


def test_a_shift_is_found_where_it_begins_with_its_size() -> None:
    values = level()
    values[60:] *= 1.08
    (point,) = changepoints.find_changepoints(values.tolist())
    assert abs(point.index - 60) <= 1
    assert point.magnitude == pytest.approx(0.08, abs=0.01)
    assert point.p <= 1e-5


def test_a_shift_and_its_repair_are_two() -> None:
    values = level()
    values[40:55] *= 1.1
    up, down = changepoints.find_changepoints(values.tolist())
    assert (abs(up.index - 40) <= 1, abs(down.index - 55) <= 1) == (True, True)
    assert up.magnitude is not None
    assert down.magnitude is not None
    assert up.magnitude > 0.0 > down.magnitude


@pytest.mark.parametrize("after", [3, 5, 10])
def test_a_large_shift_is_found_as_soon_as_it_has_lasted_three_rows(after: int) -> None:
    values = level(length=40 + after)
    values[40:] *= 1.15
    assert indices(values) == [40]


@pytest.mark.parametrize("after", [1, 2])
def test_one_or_two_rows_are_a_spike_until_a_third_confirms_them(after: int) -> None:
    values = level(length=40 + after)
    values[40:] *= 1.15
    assert indices(values) == []


def test_spikes_are_no_shifts_and_hide_none() -> None:
    values = level()
    values[[10, 11, 35, 70, 90]] *= 1.6
    assert indices(values) == []
    values[50:] *= 1.06
    assert len(indices(values)) == 1


@pytest.mark.parametrize("size", [0.05, -0.1, 0.2])
def test_a_steady_drift_is_no_shift(size: float) -> None:
    assert indices(level() * np.exp(np.linspace(0.0, size, 100))) == []


def test_a_shift_within_a_drift_is_found() -> None:
    values = level(noise=0.005) * np.exp(np.linspace(0.0, 0.05, 100))
    values[50:] *= 1.1
    (index,) = indices(values)
    assert abs(index - 50) <= 1


def test_noise_that_remembers_is_no_shift() -> None:
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        noise = rng.normal(size=120)
        for place in range(1, 120):
            noise[place] += 0.4 * noise[place - 1]
        found += len(indices(np.exp(0.01 * noise)))
    assert found <= 1


def test_a_shift_under_the_smallest_magnitude_is_left_out() -> None:
    values = level(noise=0.001)
    values[50:] *= 1.015
    assert changepoints.find_changepoints(values.tolist()) == []
    assert len(changepoints.find_changepoints(values.tolist(), min_magnitude=0.01)) == 1


def test_series_without_noise_are_certain() -> None:
    (point,) = changepoints.find_changepoints([1.0] * 10 + [2.0] * 10)
    assert (point.index, point.magnitude) == (10, pytest.approx(1.0))
    assert changepoints.find_changepoints([3.0] * 30) == []
    assert changepoints.find_changepoints([1.0] * 10 + [5.0] + [1.0] * 10) == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0, 1.0, 2.0, 2.0]])
def test_under_six_values_there_is_nothing_to_find(values: list[float]) -> None:
    assert changepoints.find_changepoints(values) == []


def test_values_at_or_below_zero_are_taken_as_they_are() -> None:
    noise = 0.01 * np.random.default_rng(3).normal(size=40)
    (below,) = changepoints.find_changepoints((np.where(np.arange(40) < 20, -1.0, -2.0) + noise).tolist())
    assert (below.index, below.magnitude) == (20, pytest.approx(1.0, abs=0.05))
    (from_zero,) = changepoints.find_changepoints([0.0] * 10 + [5.0] * 10)
    assert (from_zero.index, from_zero.magnitude) == (10, None)
    assert changepoints.find_changepoints([0.0] * 20) == []


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        changepoints.find_changepoints([1.0] * 6 + [wrong])


@given(st.lists(st.floats(0.1, 10.0), min_size=6, max_size=60), st.sampled_from([1e-3, 7.0, 1e5]))
def test_the_answer_is_the_same_in_any_unit_and_every_time(values: list[float], unit: float) -> None:
    found = changepoints.find_changepoints(values)
    assert found == changepoints.find_changepoints(values)
    scaled = changepoints.find_changepoints([unit * value for value in values])
    assert [point.index for point in scaled] == [point.index for point in found]
    bounds = [0, *(point.index for point in found), len(values)]
    assert min(np.diff(bounds)) >= 3
    assert all(point.p <= 1e-5 for point in found)


def test_labelled_series_are_scored_well() -> None:
    series = labelled_series(100, seed=99)
    hits = reported = labelled = 0
    for one in series:
        found = indices(one.values)
        hits += sum(any(abs(index - shift) <= 3 for index in found) for shift in one.shifts)
        reported += len(found)
        labelled += len(one.shifts)
    assert 2 * hits / (reported + labelled) > 0.88


def test_a_series_without_noise_or_long_segments_shows_no_memory() -> None:
    assert jumps.estimate_autocorrelation(np.ones(50), []) == 0.0
    assert jumps.estimate_autocorrelation(np.arange(12.0), [4, 8]) == 0.0


def test_memory_is_measured_about_right() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=2000)
    for place in range(1, 2000):
        noise[place] += 0.4 * noise[place - 1]
    assert jumps.estimate_autocorrelation(noise, list(range(50, 2000, 50))) == pytest.approx(0.4, abs=0.06)


def held(moves: list[float], *, rows: int = 10) -> np.ndarray:
    """A level that stays for so many rows and then moves."""
    return np.exp(np.repeat(np.cumsum([0.0, *moves]), rows))


def test_a_drift_in_coarse_units_is_no_staircase_of_shifts() -> None:
    assert indices(np.round(np.linspace(10.0, 14.0, 200) / 0.4) * 0.4) == []


def test_held_values_that_creep_up_and_are_reset_have_no_shift() -> None:
    month = [*[-0.02] * 9, 0.18]
    assert indices(held(month * 6, rows=3)) == []


def test_a_jump_that_no_other_move_of_a_creeping_level_comes_near_is_found() -> None:
    moves = [0.002] * 20
    moves[10] = 0.4
    assert indices(held(moves, rows=6)) == [66]


def test_a_few_moves_of_a_level_without_noise_are_shifts_each() -> None:
    assert indices(held([0.2, 0.1, 0.3, 0.1])) == [10, 20, 30, 40]
    assert indices(held([0.9, -0.9])) == [10, 20]


def test_noise_in_coarse_units_hides_no_shift() -> None:
    values = level(noise=0.01)
    values[60:] *= 1.12
    (index,) = indices(np.round(values / 0.02) * 0.02)
    assert abs(index - 60) <= 1


def test_the_noise_of_held_values_is_the_size_of_their_moves_and_how_often_they_come() -> None:
    noise = np.random.default_rng(5).normal(size=4000)
    assert steps.estimate_noise(noise) == pytest.approx(1.0, abs=0.05)
    assert steps.estimate_noise(np.zeros(50)) == 0.0
    assert steps.estimate_noise(np.round(noise)) == pytest.approx(1.0, abs=0.25)
    assert steps.estimate_noise(np.arange(50) // 25 * 1.0) == pytest.approx(steps.SIGMA_OF_STEPS / 7.0)


def test_noise_that_comes_back_does_not_wander_however_often_it_repeats() -> None:
    noise = np.round(np.random.default_rng(6).normal(size=200))
    assert steps.Wandering(noise).p_of_jump(0.01, steps.Cut(0, 100, 200)) == 0.0


@pytest.mark.parametrize(
    ("ratio", "low", "high", "is_open", "word"),
    [
        (1.19, 1.16, 1.22, False, "slower"),
        (1.19, 1.16, 1.22, True, "undecided"),
        (0.9, 0.88, 0.92, False, "faster"),
        # as in a run: no change below the margin, whatever the interval
        (1.01, 1.004, 1.016, False, "equal"),
        (1.018, 1.004, 1.032, False, "undecided"),
        (1.0, 0.995, 1.005, False, "equal"),
        (1.0, 0.9, 1.1, False, "undecided"),
        (1.0, None, None, False, "undecided"),
        (1.0, -0.5, 2.0, False, "undecided"),
    ],
)
def test_a_value_of_a_long_series_is_judged_by_its_interval_once_its_round_is_decided(
    ratio: float, low: float | None, high: float | None, is_open: bool, word: str
) -> None:
    assert judge_series_value(ratio, low, high, is_undecided=is_open, words=numbers.TIMES) == word
