"""Traces a launch in a round: a few inferences under the profiler, in a separate session after the windows.

The profiler can only be switched on when a session is made. Processes that take turns take them here too, so that all
arms are traced over the same time.
"""

import os
import time

from worker.runner import faults, profile
from worker.runner.arrays import load_arrays
from worker.runner.engines.onnxruntime import Feed, choose_inputs, open_engine
from worker.runner.interleaving import TURN_NS, Turns
from worker.runner.order import Order, PhaseTimer
from worker.runner.trace import WARMUP_RUNS, read_profile

MIN_RUNS = 5


def trace_after_windows(order: Order, *, timer: PhaseTimer, turns: Turns | None) -> list[dict[str, object]]:
    """Trace a few inferences, and return the executed nodes as `profile.make_rows` does; empty where tracing failed.

    A failed trace does not discard the sample, which is measured already. This calls `turns.finish`, unless tracing
    failed: then the process ends during its turn.
    """
    try:
        with timer.phase("trace"):
            path, cold_runs = _profile_runs(order, turns=turns)
        if turns is not None:
            turns.finish()
        events = read_profile(path)
        os.remove(path)
    except (faults.Refusal, OSError):
        return []
    return profile.make_rows(profile.summarise(events, skip_runs=WARMUP_RUNS, cold_runs=cold_runs))


def _profile_runs(order: Order, *, turns: Turns | None) -> tuple[str, set[int]]:
    """Run under the profiler. Return the profile's path, and the numbers of the runs that only filled the caches."""
    # a separate timer, because the sample does not report the creation of this session
    apart = PhaseTimer()
    prefix = os.path.join(order.work_dir, "round")
    engine = open_engine(order, timer=apart, tune={"enable_profiling": True, "profile_file_prefix": prefix})
    with faults.translate_errors("run"):
        feed = Feed(engine, choose_inputs(engine, load_arrays(order.inputs)))
        feed.run_first()
        # the profile contains all runs, also the first one
        begun = 1 + feed.settle()
        while begun < WARMUP_RUNS:
            feed.run()
            begun += 1
        cold_runs = _run_in_turns(feed, order, begun=begun, turns=turns)
        return engine.session.end_profiling(), cold_runs


def _run_in_turns(feed: Feed, order: Order, *, begun: int, turns: Turns | None, turn_ns: int = TURN_NS) -> set[int]:
    """Run at least MIN_RUNS times, more while there is time. Return the runs that came first after others' turns.

    Runs are numbered as in the profile, which already has `begun` runs.
    """
    cold_runs: set[int] = set()
    counted, spent_ns = 0, 0
    while True:
        began = before = time.perf_counter_ns()
        while before - began < turn_ns:
            feed.run()
            after = time.perf_counter_ns()
            spent_ns, before = spent_ns + after - before, after
            counted += 1
            if counted >= MIN_RUNS and (counted >= order.trace_runs or spent_ns >= order.trace_s * 1e9):
                return cold_runs
        if turns is not None:
            turns.wait_for_turn()
            cold_runs.add(begun + counted + len(cold_runs))
            feed.run()
