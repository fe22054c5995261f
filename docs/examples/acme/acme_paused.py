# acme_paused.py
import time

import numpy as np

from worker.runner import windows
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import LaunchContext, prepare_sessions

RUNS = 100


class Outside:
    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._taken: list[int] = []
        self._waited: list[int] = []

    def open(self) -> None:
        self._sessions = prepare_sessions(self._context, sessions=1)

    def step(self) -> bool:
        call, order = self._sessions.calls[0], self._context.order
        if not self._taken:
            self._warm = windows.warm_up(call, order.budget)
        asked = time.perf_counter_ns()
        time.sleep(order.scenario["ms"] / 1000.0)
        began = time.perf_counter_ns()
        call()
        self._waited.append(began - asked)
        self._taken.append(time.perf_counter_ns() - began)
        return len(self._taken) < RUNS

    def close(self) -> dict[str, object]:
        durations = np.array(self._taken, dtype=np.uint64)
        first, last = np.median(durations[:50]) * 1e-6, np.median(durations[50:]) * 1e-6
        halves = {"first half": first, "second half": last}
        figures = {
            "paused_worst_ms": float(durations.max()) * 1e-6,
            "acme_wait_ms": float(np.median(self._waited)) * 1e-6,  # an entry of its own, below
        }
        sample = {
            **summaries.summarise([durations]),
            "warmup_runs": self._warm.runs,
            "warmup_ms": self._warm.wall_ns / 1e6,
            "is_stable": self._warm.agreed,
            "throughput": 1e9 / float(durations.mean()),
            "phases": [{"name": name, "metrics": {"p50_ms": float(p50_ms)}} for name, p50_ms in halves.items()],
            **summaries.make_other_metrics(summaries.read_memory_peaks(), figures),
        }
        return {"sample": sample, **self._sessions.provider_report}
