"""`load` in a closed loop: several sessions work at once, and each begins its next inference when one ends."""

import dataclasses
import time

from worker.runner import parallel_calls, windows
from worker.runner.order import BudgetOrder, Call
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import LaunchContext, PreparedSessions, prepare_sessions
from worker.runner.scenarios.single import time_with_copies


class ClosedLoop:
    """Measures a session and a thread for each stream, over one common window."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._sessions: PreparedSessions
        self._found: list[tuple[windows.Warmup, windows.Timings, int, int]] = []

    def open(self) -> None:
        self._sessions = prepare_sessions(self._context, sessions=self._context.order.concurrency)

    def step(self) -> bool:
        """Warm up and measure all streams at once. Return False, as no other step follows."""
        with self._context.timer.phase("window"):
            self._found = _measure_together(self._sessions.calls, self._context.order.budget)
        return False

    def close(self) -> dict[str, object]:
        # from the first start to the last end
        wall_ns = max(ended for *_, ended in self._found) - min(began for _, _, began, _ in self._found)
        peaks, sessions = summaries.read_memory_peaks(), self._sessions
        sample = {
            **summaries.summarise_timings(
                [part for _, part, *_ in self._found], [part for part, *_ in self._found], wall_ns=wall_ns
            ),
            "with_copies_p50_ms": time_with_copies(
                sessions.kind, sessions.engines[0], sessions.inputs, budget=self._context.order.budget
            ),
            **summaries.make_other_metrics(peaks, {}),
        }
        return {"sample": sample, **sessions.provider_report}


def _measure_together(calls: list[Call], budget: BudgetOrder) -> list[tuple[windows.Warmup, windows.Timings, int, int]]:
    """Measure all streams at once; return each one's warm-up, timings, and the ns when its window began and ended.

    There is one window, because sessions that settle early would leave the others more of the machine.
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
