"""Warm-up and windows, with a clock and a call of our own."""

import time
from collections.abc import Callable, Iterable

from worker.runner import windows
from worker.runner.order import BudgetOrder

MS = 1_000_000


class Machine:
    """A clock that only the call moves: each inference takes the next duration."""

    def __init__(self, durations_ms: Iterable[float]) -> None:
        self._durations = iter(durations_ms)
        self.now = 0
        self.calls = 0

    def clock(self) -> int:
        return self.now

    def call(self) -> None:
        self.calls += 1
        self.now += round(next(self._durations) * MS)


def steady(ms: float) -> Iterable[float]:
    while True:
        yield ms


def warm(machine: Machine, **budget: float) -> windows.Warmup:
    return windows.warm_up(machine.call, BudgetOrder(**budget), clock=machine.clock)


def measure(
    machine: Machine, *, cpu_clock: Callable[[], int] = time.thread_time_ns, **budget: float
) -> windows.Timings:
    return windows.measure(machine.call, BudgetOrder(**budget), clock=machine.clock, cpu_clock=cpu_clock)


def test_warming_up_a_steady_model_takes_the_least_time() -> None:
    done = warm(Machine(steady(1)))
    assert done.agreed
    assert done.wall_ns == 200 * MS


def test_warming_up_goes_on_while_blocks_disagree() -> None:
    falling = [10 / (1 + i / 20) for i in range(200)]
    done = warm(Machine([*falling, *[1.0] * 5000]))
    assert done.agreed
    assert done.wall_ns > 400 * MS


def test_warming_up_ends_at_its_cap_and_says_that_blocks_disagreed() -> None:
    def jumping() -> Iterable[float]:
        while True:
            yield from [50.0, 60.0]

    done = warm(Machine(jumping()))
    assert not done.agreed
    assert 5000 * MS <= done.wall_ns <= 5100 * MS


def test_a_slow_model_warms_up_with_three_runs_and_a_very_slow_one_with_what_the_cap_allows() -> None:
    assert warm(Machine(steady(400))).runs == 3
    assert warm(Machine(steady(6000))).runs == 1


def test_a_quick_window_ends_with_the_run_that_reaches_its_time() -> None:
    taken = measure(Machine(steady(3)))
    assert taken.wall_ns == 501 * MS
    assert len(taken.durations) == 167
    assert taken.is_stable


def test_a_slow_model_gets_its_least_number_of_runs() -> None:
    assert len(measure(Machine(steady(900))).durations) == 3
    assert len(measure(Machine(steady(90)), window_runs=20, window_runs_slow=5).durations) == 20
    assert len(measure(Machine(steady(150)), window_runs=20, window_runs_slow=5).durations) == 5


def test_windows_go_on_until_the_last_three_agree() -> None:
    restless = [2.0] * 250 + [1.0] * 5000
    taken = measure(Machine(restless), windows_agreeing=3)
    assert taken.is_stable
    assert len(taken.starts) == 4


def test_windows_that_never_agree_are_unstable_when_time_is_up() -> None:
    def drifting() -> Iterable[float]:
        spent = 1.0
        while True:
            spent *= 1.0005
            yield spent

    taken = measure(Machine(drifting()), windows_agreeing=3, at_most_s=10)
    assert not taken.is_stable
    assert 10_000 * MS <= taken.wall_ns <= 11_000 * MS


def test_a_single_window_whose_halves_differ_is_unstable() -> None:
    assert not measure(Machine([1.0] * 250 + [1.2] * 300)).is_stable


def test_every_duration_is_kept_in_order_and_none_removed() -> None:
    assert measure(Machine([1.0, 400.0, *[1.0] * 200])).durations[1] == 400 * MS


def test_the_timed_call_can_be_wrapped() -> None:
    machine = Machine(steady(1))
    wrapped: Callable[[], None] = lambda: (machine.call(), machine.call())[0]  # noqa: E731
    assert windows.measure(wrapped, BudgetOrder(), clock=machine.clock).durations[0] == 2 * MS


class Neighbours:
    """Stands for interleaving.Turns: each hand-over lets the others have 60 ms, and empties the caches."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.count = 0

    def wait_for_turn(self) -> None:
        self.count += 1
        self.machine.now += 60 * MS


def test_turns_of_others_count_neither_as_time_nor_as_inferences() -> None:
    machine = Machine(steady(1))
    others = Neighbours(machine)
    budget = BudgetOrder(window_s=0.5, windows_agreeing=1)
    taken = windows.measure(machine.call, budget, clock=machine.clock, turns=others)
    assert len(taken.durations) == 500
    assert set(taken.durations) == {MS}
    assert taken.wall_ns == 500 * MS
    assert others.count == 25
    # the first inference after each hand-over is not counted: it fills the caches again
    assert machine.calls == 500 + 25
    assert taken.paused_ns == 24 * 61 * MS


def test_an_inference_longer_than_a_turn_is_a_turn_of_its_own() -> None:
    machine = Machine(steady(50))
    others = Neighbours(machine)
    budget = BudgetOrder(window_s=0.5, windows_agreeing=1)
    taken = windows.measure(machine.call, budget, clock=machine.clock, turns=others)
    assert len(taken.durations) == others.count == 10
    assert taken.wall_ns == 500 * MS
    assert machine.calls == 11


def test_processor_time_of_an_inference_is_the_median_of_its_parts() -> None:
    machine = Machine(steady(2))
    # 1 ms of processor time a call; while others have the core the clock of the wall runs on and this one does not
    taken = measure(machine, window_s=0.3, cpu_clock=lambda: machine.calls * MS)
    assert taken.cpu_p50_ns == MS
    assert len(taken.cpu_per_call_ns) == 15
    preempted = Machine([2.0] * 40 + [80.0] + [2.0] * 400)
    assert measure(preempted, window_s=0.3, cpu_clock=lambda: preempted.calls * MS).cpu_p50_ns == MS


def test_a_clock_of_processor_time_that_stands_still_gives_none() -> None:
    assert measure(Machine(steady(2)), window_s=0.1, cpu_clock=lambda: 5).cpu_p50_ns is None


def test_another_call_is_timed_behind_each_part_and_counts_neither_as_time_nor_as_inferences() -> None:
    machine = Machine(steady(1))
    side_call = windows.SideCall("run", lambda: setattr(machine, "now", machine.now + MS // 2))
    budget = BudgetOrder(window_s=0.5, windows_agreeing=1)
    taken = windows.measure(machine.call, budget, clock=machine.clock, turns=Neighbours(machine), side_call=side_call)
    assert (len(taken.durations), set(taken.durations), taken.wall_ns) == (500, {MS}, 500 * MS)
    # 5 ms of it behind one that does not count, after each part but the last
    assert (len(side_call.timings.durations), set(side_call.timings.durations)) == (24 * 10, {MS // 2})
    assert side_call.timings.wall_ns == 24 * 11 * MS // 2
    assert taken.paused_ns == 24 * 61 * MS + side_call.timings.wall_ns


def test_another_call_is_timed_where_nobody_takes_turns_and_not_at_all_in_a_window_of_one_part() -> None:
    for window_s, parts in ((0.1, 4), (0.02, 0)):
        machine = Machine(steady(1))
        side_call = windows.SideCall("run", machine.call)
        windows.measure(machine.call, BudgetOrder(window_s=window_s), clock=machine.clock, side_call=side_call)
        assert len(side_call.timings.durations) == 5 * parts
