"""`load` in a closed loop: sessions at work at once; each stream begins its next inference when one ends."""

import dataclasses
import time

from worker.runner import parallel_calls, windows
from worker.runner.order import BudgetOrder
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import Call, Ready, Room, make_ready
from worker.runner.scenarios.single import time_with_copies


class ClosedLoop:
    """A session and a thread for each stream, over one common window."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ready: Ready
        self._found: list[tuple[windows.Warmup, windows.Timings, int, int]] = []

    def open(self) -> None:
        self._ready = make_ready(self._room, sessions=self._room.order.concurrency)

    def step(self) -> bool:
        with self._room.timer.phase("window"):
            self._found = _measure_together(self._ready.calls, self._room.order.budget)
        return False

    def close(self) -> dict[str, object]:
        # first start to last end
        wall_ns = max(ended for *_, ended in self._found) - min(began for _, _, began, _ in self._found)
        peaks, ready = summaries.read_memory_peaks(), self._ready
        sample = {
            **summaries.summarise_timings(
                [part for _, part, *_ in self._found], [part for part, *_ in self._found], wall_ns=wall_ns
            ),
            "with_copies_p50_ms": time_with_copies(
                ready.kind, ready.engines[0], ready.inputs, budget=self._room.order.budget
            ),
            **summaries.make_other_metrics(peaks, {}),
        }
        return {"sample": sample, **ready.asked_and_got}


def _measure_together(calls: list[Call], budget: BudgetOrder) -> list[tuple[windows.Warmup, windows.Timings, int, int]]:
    """Of each stream its warm-up, its timings, and from when to when it measured.

    One window, because sessions that settle early would leave the others more of the machine.
    """
    one_window = dataclasses.replace(
        budget, windows_agreeing=1, window_s=max(budget.window_s, budget.at_least_s), at_least_s=0.0
    )

    def measure_stream(call: Call, gate: parallel_calls.Gate) -> tuple[windows.Warmup, windows.Timings, int, int]:
        warm = windows.warm_up(call, budget)
        gate.wait()
        began = time.perf_counter_ns()
        return warm, windows.measure(call, one_window), began, time.perf_counter_ns()

    return parallel_calls.run_in_parallel(calls, measure_stream)
