"""`load` in a closed loop: several sessions work at once, and each begins its next inference when one ends."""

import time
from dataclasses import dataclass, replace

from worker.runner import parallel_calls, windows
from worker.runner.order import BudgetOrder, Call
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import LaunchContext, PreparedSessions, prepare_sessions
from worker.runner.scenarios.single import time_with_copies


@dataclass(frozen=True)
class _Stream:
    """The measurement of one session: its warm-up, its timings, and when its window began and ended."""

    warmup: windows.Warmup
    timings: windows.Timings
    began_ns: int
    ended_ns: int


class ClosedLoop:
    """Measures a session and a thread for each stream, over one common window."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._sessions: PreparedSessions
        self._streams: list[_Stream] = []

    def open(self) -> None:
        self._sessions = prepare_sessions(self._context, sessions=self._context.order.concurrency)

    def step(self) -> bool:
        """Warm up and measure all streams at once. Return False, because no other step follows."""
        with self._context.timer.phase("window"):
            self._streams = _measure_together(self._sessions.calls, self._context.order.budget)
        return False

    def close(self) -> dict[str, object]:
        """Return the sample of all streams together, and the providers.

        On a device with its own memory, first measure one session also with copies.
        """
        streams, peaks, sessions = self._streams, summaries.read_memory_peaks(), self._sessions
        wall_ns = max(stream.ended_ns for stream in streams) - min(stream.began_ns for stream in streams)
        sample = {
            **summaries.summarise_timings(
                [stream.timings for stream in streams], [stream.warmup for stream in streams], wall_ns=wall_ns
            ),
            "with_copies_p50_ms": time_with_copies(
                sessions.kind, sessions.engines[0], sessions.inputs, budget=self._context.order.budget
            ),
            **summaries.make_other_metrics(peaks, {}),
        }
        return {"sample": sample, **sessions.provider_report}


def _measure_together(calls: list[Call], budget: BudgetOrder) -> list[_Stream]:
    """Measure all streams at once, over one window: sessions that settle early would leave the others more cores."""
    window_s = max(budget.window_s, budget.at_least_s)
    one_window = replace(budget, windows_agreeing=1, window_s=window_s, at_least_s=0.0)

    def measure_stream(call: Call, gate: parallel_calls.Gate) -> _Stream:
        warmup = windows.warm_up(call, budget)
        gate.wait()
        began_ns = time.perf_counter_ns()
        return _Stream(warmup, windows.measure(call, one_window), began_ns, time.perf_counter_ns())

    return parallel_calls.run_in_parallel(calls, measure_stream)
