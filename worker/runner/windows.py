"""Timing loops: warm-up, windows, and when to stop. The timed call and the clock are parameters.

MEASURING.md, "Inside one process", 3 and 5. All durations are integer nanoseconds.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from worker.runner.counters import Counter
from worker.runner.interleaving import TURN_NS, Turns
from worker.runner.order import BudgetOrder, Call

Readings = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
# in nanoseconds
Durations = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
Clock = Callable[[], int]

# figures agree if the largest exceeds the smallest by at most this share
AGREEMENT = 0.05
WARMUP_BLOCK_NS = 50_000_000
WARMUP_RUNS = 3
# a window whose first run is slower than this has `window_runs_slow` runs
SLOW_NS = 100_000_000
# the time for which another call is timed after each part of a window
SIDE_CALL_NS = TURN_NS // 4


@dataclass
class Warmup:
    """The result of a warm-up: how many runs it took, and for how long."""

    runs: int = 0
    wall_ns: int = 0
    # whether the medians of its last two blocks agreed
    agreed: bool = False
    # the median of its last block
    p50_ns: float = 0.0


@dataclass
class Timings:
    """Durations of every inference in ns, in order, and the windows in which they were measured.

    `cpu_p50_ns` is the median of `cpu_per_call_ns`; None without parts, or where the CPU clock stood still.
    """

    durations: "array[int]" = field(default_factory=lambda: array("Q"))
    # index of each window's first duration
    starts: list[int] = field(default_factory=list)
    # wall-clock and thread CPU time of the measuring itself, without the pauses
    wall_ns: int = 0
    cpu_ns: int = 0
    # the pauses, in which the side call and other processes ran
    paused_ns: int = 0
    paused_cpu_ns: int = 0
    side_call: "SideCall | None" = None
    is_stable: bool = False
    # thread CPU time of one inference, the mean of each part of 20 ms
    cpu_per_call_ns: list[float] = field(default_factory=list)
    # instructions of one inference, the mean of each part; empty without a counter
    instructions_per_call: list[float] = field(default_factory=list)
    counter: Counter | None = None
    cpu_clock: Clock = time.thread_time_ns
    # of the current part: the index of its first duration, and the CPU clock and the counter at its beginning
    _part_first: int = 0
    _part_cpu_ns: int = 0
    _part_count: int | None = None

    @property
    def cpu_p50_ns(self) -> float | None:
        return compute_positive_median(self.cpu_per_call_ns)

    @property
    def instructions(self) -> float | None:
        """Instructions of one inference, the median of the parts; None without a counter, or one that did not move."""
        return compute_positive_median(self.instructions_per_call)

    def begin_part(self) -> None:
        self._part_first, self._part_count = len(self.durations), self._read_counter()
        self._part_cpu_ns = self.cpu_clock()

    def end_part(self) -> None:
        """Add the mean CPU time and instruction count of an inference since `begin_part`."""
        spent, runs = self.cpu_clock() - self._part_cpu_ns, len(self.durations) - self._part_first
        count = self._read_counter()
        if runs:
            self.cpu_per_call_ns.append(spent / runs)
        if runs and count is not None and self._part_count is not None:
            self.instructions_per_call.append((count - self._part_count) / runs)

    def _read_counter(self) -> int | None:
        return None if self.counter is None else self.counter.read()

    def list_windows(self) -> list[Durations]:
        """Copy the durations window by window (a view would forbid the array to grow)."""
        ends = [*self.starts[1:], len(self.durations)]
        return [
            np.array(self.durations[start:end], dtype=np.uint64) for start, end in zip(self.starts, ends, strict=True)
        ]


@dataclass
class SideCall:
    """A second call, which is timed after each part of a window of the main call."""

    name: str
    call: Call
    timings: Timings = field(default_factory=Timings)

    def time_part(self, clock: Clock) -> None:
        """Time inferences for SIDE_CALL_NS, at least one, after one that fills the caches and does not count."""
        timings, call, began = self.timings, self.call, clock()
        call()
        timings.begin_part()
        after = clock()
        ends_at = after + SIDE_CALL_NS
        while after < ends_at:
            before = clock()
            call()
            after = clock()
            timings.durations.append(after - before)
        timings.end_part()
        timings.wall_ns += clock() - began


def warm_up(call: Call, budget: BudgetOrder, *, clock: Clock = time.perf_counter_ns) -> Warmup:
    """Run the call until its times have settled, or until `warmup_cap_s` has passed.

    They have settled when `warmup_s` and WARMUP_RUNS runs have passed, and the medians of the last two blocks of 50 ms
    agree within 5 %. A run that is longer than a block makes a block alone. At the cap, `agreed` is False. The cap is
    checked after each block, so at least one runs.
    """
    done = Warmup()
    began = clock()
    medians: list[float] = []
    while not done.agreed:
        block = _run_block(call, clock=clock, at_least_ns=WARMUP_BLOCK_NS)
        medians.append(float(np.median(block)))
        done.runs += len(block)
        done.wall_ns = clock() - began
        if done.wall_ns >= budget.warmup_cap_s * 1e9:
            break
        is_long_enough = done.wall_ns >= budget.warmup_s * 1e9 and done.runs >= WARMUP_RUNS
        done.agreed = is_long_enough and len(medians) >= 2 and agree_within_tolerance(medians[-2:])
    done.p50_ns = medians[-1]
    return done


def measure(
    call: Call,
    budget: BudgetOrder,
    *,
    clock: Clock = time.perf_counter_ns,
    turns: Turns | None = None,
    counter: Counter | None = None,
    cpu_clock: Clock = time.thread_time_ns,
    side_call: "SideCall | None" = None,
) -> Timings:
    """Measure as many windows as the budget asks for, and more until the last ones agree or the time limit is over.

    A window has parts of 20 ms. Between the parts other processes have their turns, where `turns` is set, and
    `side_call` is timed. Neither counts as time of this call. With a budget of one window, more are measured only until
    `at_least_s` is over, whether they agree or not. `is_stable` of the result says whether they agreed at the end.
    """
    timings = Timings(counter=counter, cpu_clock=cpu_clock, side_call=side_call)
    if turns is not None:
        turns.wait_for_turn()
        call()
    began = clock()
    cpu_began = cpu_clock()
    while True:
        timings.starts.append(len(timings.durations))
        _time_window(call, budget, into=timings, clock=clock, turns=turns)
        timings.wall_ns = clock() - began - timings.paused_ns
        timings.is_stable = has_settled(timings, budget)
        is_enough = len(timings.starts) >= budget.windows_agreeing and timings.wall_ns >= budget.at_least_s * 1e9
        if is_enough and (timings.is_stable or budget.windows_agreeing == 1):
            break
        if timings.wall_ns >= budget.at_most_s * 1e9:
            break
    timings.cpu_ns = cpu_clock() - cpu_began - timings.paused_cpu_ns
    return timings


def has_settled(timings: Timings, budget: BudgetOrder) -> bool:
    """Say whether the last `windows_agreeing` windows agree within 5 % on p50 and mean; False for fewer windows.

    With a budget of one window, the p50 of the last window's two halves have to agree; a window of one run has settled.
    Raises IndexError before the first window then.
    """
    if budget.windows_agreeing == 1:
        last = timings.list_windows()[-1]
        middle = len(last) // 2
        return middle == 0 or agree_within_tolerance([float(np.median(last[:middle])), float(np.median(last[middle:]))])
    if len(timings.starts) < budget.windows_agreeing:
        return False
    last_windows = timings.list_windows()[-budget.windows_agreeing :]
    medians = [float(np.median(window)) for window in last_windows]
    means = [float(np.mean(window)) for window in last_windows]
    return agree_within_tolerance(medians) and agree_within_tolerance(means)


def compute_positive_median(readings: Sequence[float] | Readings, *, scale: float = 1.0) -> float | None:
    """Compute the median of readings times `scale`; None without readings, or for a median of 0 (a coarse clock)."""
    median = float(np.median(readings)) * scale if len(readings) else 0.0
    return median if median > 0 else None


def agree_within_tolerance(values: Sequence[float]) -> bool:
    """Say whether the largest value exceeds the smallest by at most 5 % (AGREEMENT). Raises ValueError for none."""
    return max(values) <= min(values) * (1 + AGREEMENT)


def _run_block(call: Call, *, clock: Clock, at_least_ns: int) -> list[int]:
    block: list[int] = []
    began = clock()
    while True:
        before = clock()
        call()
        after = clock()
        block.append(after - before)
        if after - began >= at_least_ns:
            return block


def _time_window(call: Call, budget: BudgetOrder, *, into: Timings, clock: Clock, turns: Turns | None) -> None:
    """Append durations until the window's time and runs are reached. This is the timed loop: keep it lean."""
    append = into.durations.append
    runs = budget.window_runs
    into.begin_part()
    before = clock()
    call()
    after = clock()
    append(after - before)
    if after - before > SLOW_NS:
        runs = budget.window_runs_slow
    ends_at = before + int(budget.window_s * 1e9)
    part_ends_at = before + TURN_NS
    remaining_runs = runs - 1
    while remaining_runs > 0 or after < ends_at:
        if after >= part_ends_at:
            into.end_part()
            if turns is not None or into.side_call is not None:
                ends_at += _let_others_run(call, turns, timings=into, clock=clock, is_slow=after - before > TURN_NS)
            into.begin_part()
            part_ends_at = clock() + TURN_NS
        before = clock()
        call()
        after = clock()
        append(after - before)
        remaining_runs -= 1
    into.end_part()


def _let_others_run(call: Call, turns: Turns | None, *, timings: Timings, clock: Clock, is_slow: bool) -> int:
    """Let the side call and the other processes measure, and return how many nanoseconds that took.

    They fill the caches with other data. So one inference follows that does not count, unless inferences are slow.
    """
    began, cpu_before = clock(), timings.cpu_clock()
    if timings.side_call is not None:
        timings.side_call.time_part(clock)
    if turns is not None:
        turns.wait_for_turn()
    if not is_slow:
        call()
    paused_ns = clock() - began
    timings.paused_ns += paused_ns
    timings.paused_cpu_ns += timings.cpu_clock() - cpu_before
    return paused_ns
