"""MLPerf LoadGen's scenario Server around a callable, as another judge of a load than ours.

`mlcommons-loadgen` is in no requirement of ours: whoever makes the figure brings it (tests/bench/load.py says how).
"""

import queue
import re
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.runner.scenarios.arrivals import Call

VERSION = "6.0.17"
SUMMARY = "mlperf_log_summary.txt"
_VERDICT = re.compile(r"^Result is : (VALID|INVALID)$", re.MULTILINE)
_P99 = re.compile(r"^99\.00 percentile latency \(ns\)\s*: (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Judged:
    """What LoadGen says of a rate: whether the bound is kept, the p99, and the calls as they were timed beside it."""

    is_valid: bool
    p99_ms: float
    service_ms: float
    cpu_share: float


def judge(calls: Sequence[Call], *, rate: float, bound_ms: float, arrivals: int, seed: int) -> Judged:
    """One test of the scenario Server: requests take the calls in turn, one after the other, in a thread beside it."""
    import mlperf_loadgen as loadgen

    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    services: list[int] = []

    def answer() -> None:
        turn = 0
        while (one := waiting.get()) is not None:
            began = time.perf_counter_ns()
            calls[turn % len(calls)]()
            services.append(time.perf_counter_ns() - began)
            turn += 1
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(one.id, 0, 0)])

    def take(asked: list[Any]) -> None:
        for one in asked:
            waiting.put(one)

    thread = threading.Thread(target=answer)
    thread.start()
    under_test = loadgen.ConstructSUT(take, lambda: None)
    library = loadgen.ConstructQSL(len(calls), len(calls), lambda _: None, lambda _: None)
    began, cpu_began = time.perf_counter(), time.process_time()
    try:
        summary = _run(loadgen, under_test, library, _settings(loadgen, rate, bound_ms, arrivals, seed))
    finally:
        waiting.put(None)
        thread.join()
        loadgen.DestroyQSL(library)
        loadgen.DestroySUT(under_test)
    share = (time.process_time() - cpu_began) / (time.perf_counter() - began)
    verdict, p99 = _VERDICT.search(summary), _P99.search(summary)
    if verdict is None or p99 is None:
        raise SystemExit(f"LoadGen's summary has no verdict or no p99:\n{summary}")
    middle = sorted(services)[len(services) // 2]
    return Judged(verdict[1] == "VALID", int(p99[1]) / 1e6, middle / 1e6, share)


def _settings(loadgen: Any, rate: float, bound_ms: float, arrivals: int, seed: int) -> Any:
    settings = loadgen.TestSettings()
    settings.scenario = loadgen.TestScenario.Server
    settings.mode = loadgen.TestMode.PerformanceOnly
    settings.server_target_qps = rate
    settings.server_target_latency_ns = round(bound_ms * 1e6)
    settings.server_target_latency_percentile = 0.99
    settings.min_query_count = settings.max_query_count = arrivals
    settings.min_duration_ms = 0
    settings.qsl_rng_seed = settings.sample_index_rng_seed = settings.schedule_rng_seed = seed
    return settings


def _run(loadgen: Any, under_test: Any, library: Any, settings: Any) -> str:
    """The summary that the test wrote."""
    with tempfile.TemporaryDirectory() as folder:
        output = loadgen.LogOutputSettings()
        output.outdir = folder
        output.copy_summary_to_stdout = False
        logs = loadgen.LogSettings()
        logs.log_output = output
        logs.enable_trace = False
        loadgen.StartTestWithLogSettings(under_test, library, settings, logs)
        return (Path(folder) / SUMMARY).read_text()
