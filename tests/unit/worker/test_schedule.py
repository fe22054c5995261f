"""A block keeps the time that was promised for it, on a clock that the tests turn."""

import pytest

from onnxfarm.testing import Clock
from worker.agent.measurement.schedule import BlockSchedule

# of the sample: four cells of each of two releases, and a twin
ARMS = 9


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def rounds_within(pace: BlockSchedule, clock: Clock, *, round_s: float, most: int = 8) -> int:
    for done in range(1, most + 1):
        with pace.time_round():
            clock.now += round_s
        if not pace.has_time_for_round:
            return done
    return most


def begun(clock: Clock, promised_s: float | None, *, traces_s: float = 1.0) -> BlockSchedule:
    pace = BlockSchedule(promised_s, clock=clock)
    clock.now += 500.0  # installing runtimes is in no plan
    pace.begin()
    with pace.time_traces(ARMS):
        clock.now += traces_s
    return pace


def test_a_machine_as_quick_as_planned_measures_all_rounds(clock: Clock) -> None:
    assert rounds_within(begun(clock, 40.0), clock, round_s=2.0) == 8


def test_a_machine_that_is_far_slower_ends_within_the_promise_with_what_it_has(clock: Clock) -> None:
    pace, began = begun(clock, 40.0), clock.now
    assert rounds_within(pace, clock, round_s=9.0) == 4
    assert clock.now - began < 40.0
    assert pace.has_time_for_traces(ARMS)


def test_rounds_beyond_the_first_look_leave_time_to_trace_what_changed(clock: Clock) -> None:
    assert rounds_within(begun(clock, 40.0), clock, round_s=2.0, most=24) == 14
    assert clock.now + 10.0 <= 600.0 + 40.0


def test_a_model_so_slow_that_one_round_takes_all_has_the_repeat_that_memory_is_judged_by(clock: Clock) -> None:
    assert rounds_within(begun(clock, 10.0), clock, round_s=60.0) == 2


@pytest.mark.parametrize(("limit_s", "rounds"), [(900.0, 8), (300.0, 4)])
def test_a_busy_machine_measures_the_rounds_that_a_verdict_takes_until_the_limit_of_the_block(
    clock: Clock, limit_s: float, rounds: int
) -> None:
    """Two rounds in four minutes decided nothing, and a larger budget gave no more of them."""
    pace = BlockSchedule(40.0, limit_s=limit_s, min_rounds=8, clock=clock)
    pace.begin()
    assert rounds_within(pace, clock, round_s=60.0, most=24) == rounds


def test_no_repeat_is_begun_that_may_take_the_block_over_its_limit(clock: Clock) -> None:
    for limit_s, rounds in [(190.0, 2), (170.0, 1)]:
        pace = BlockSchedule(10.0, limit_s=limit_s, clock=clock)
        pace.begin()
        assert rounds_within(pace, clock, round_s=60.0) == rounds


def test_without_a_promise_nothing_ends(clock: Clock) -> None:
    pace = begun(clock, None, traces_s=1e6)
    assert rounds_within(pace, clock, round_s=1e6) == 8
    assert pace.may_repeat
    assert pace.has_time_for_traces(ARMS)
    assert pace.count_traceable_arms(ARMS, rounds=4) == ARMS


def test_disturbed_samples_are_measured_again_out_of_a_tenth_of_the_time_at_most(clock: Clock) -> None:
    pace = begun(clock, 100.0)
    repeats = 0
    while pace.may_repeat:
        with pace.time_repeats():
            clock.now += 3.0
        repeats += 1
    assert repeats == 4


def test_what_was_measured_again_does_not_make_rounds_look_longer(clock: Clock) -> None:
    pace = begun(clock, 40.0, traces_s=0.1)
    with pace.time_round():
        clock.now += 2.0
        with pace.time_repeats():
            clock.now += 30.0
    assert pace.has_time_for_round


def test_a_busy_machine_traces_one_comparison_often_enough_instead_of_all_too_seldom(clock: Clock) -> None:
    pace = begun(clock, 132.0, traces_s=27.0)
    assert rounds_within(pace, clock, round_s=9.5) == 8
    began = clock.now
    arms = pace.count_traceable_arms(8, rounds=4)
    assert arms == 2
    for _ in range(4):
        assert pace.has_time_for_traces(arms)
        clock.now += 3.0 * arms
    assert clock.now - began < 29.0


def test_a_machine_with_time_left_traces_every_comparison(clock: Clock) -> None:
    pace = begun(clock, 132.0, traces_s=9.0)
    assert rounds_within(pace, clock, round_s=5.0) == 8
    assert pace.count_traceable_arms(8, rounds=4) == 8
    clock.now += 62.0
    assert pace.count_traceable_arms(8, rounds=4) == 5


def test_a_block_that_is_over_its_time_and_has_nothing_to_explain_traces_nothing(clock: Clock) -> None:
    pace = begun(clock, 10.0)
    assert rounds_within(pace, clock, round_s=60.0) == 2
    # what the farm answers where no verdict needs traces
    assert pace.count_traceable_arms(0, rounds=0) == 0
    assert pace.count_traceable_arms(ARMS, rounds=4) == 2


def test_a_model_that_has_no_first_trace_has_no_pace_of_traces(clock: Clock) -> None:
    pace = BlockSchedule(10.0, clock=clock)
    with pace.time_traces(0):
        pass
    assert pace.count_traceable_arms(0, rounds=4) == 0
