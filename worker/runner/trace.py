"""The trace pass: runs under the profiler, and leaves the raw trace and the optimised model in `order.work_dir`."""

import json
import os
import time

from worker.runner import faults, profile
from worker.runner.arrays import load_arrays
from worker.runner.engines.onnxruntime import Engine, Feed, choose_inputs, open_engine
from worker.runner.order import Order, PhaseTimer
from worker.runner.session import Tune

WARMUP_RUNS = 3
MIN_RUNS = 10
OPTIMIZED_NAME = "optimized.onnx"
# an answer has at most this many assigned nodes; the executed nodes show the providers of the others
MAX_ASSIGNED = 20_000

_ASSIGNMENT_KEY = "session.record_ep_graph_assignment_info"
_EXTERNAL_KEYS = {
    # weights are saved in another file, because only the graph is read, and a model above 2 GB could not be saved
    "session.optimized_model_external_initializers_file_name": "optimized.weights",
    "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
}


def run_trace(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Profile 10 to `trace_runs` runs, and return executed nodes with median self times, and the names of the files.

    The providers that were requested and are active are among the fields. Warm-up runs come first and do not count.
    After 10 runs, no run begins once `trace_s` seconds have passed. Raises Refusal where the cell does not load or run.
    """
    arrays = load_arrays(order.inputs)
    engine, saved = open_profiled(order, timer=timer)
    inputs = choose_inputs(engine, arrays)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    with faults.translate_errors("run", **facts), timer.phase("runs"):
        feed = Feed(engine, inputs)
        feed.run_first()
        feed.settle()
        _run_profiled(feed, order)
        path = engine.session.end_profiling()
    with timer.phase("parse"):
        summary = profile.summarise(read_profile(path), skip_runs=WARMUP_RUNS)
    return {**facts, **summarise_profile(summary), **describe_for_mapping(engine, path, saved)}


def summarise_profile(summary: profile.Summary) -> dict[str, object]:
    """Turn a summary into the fields of an answer.

    These are `runs`, `run_us` of a run, whether the profile overflowed, and `executed`, the rows of nodes.
    """
    return {
        "runs": summary.runs,
        "run_us": summary.run_us,
        "has_overflowed": summary.has_overflowed,
        "executed": profile.make_rows(summary),
    }


def describe_for_mapping(engine: Engine, path: str, saved: str | None) -> dict[str, object]:
    """Make the fields of an answer that mapping to the model's own nodes needs.

    `assigned` lists an entry for each compiled subgraph, with its provider and its nodes as `[name, op_type]`, at most
    MAX_ASSIGNED in all; before ONNX Runtime 1.24 it is empty. `raw` and `optimized` the file names of the profile
    (`path`) and of the optimised model (`saved`, which may be None).
    """
    return {
        "assigned": _list_assignments(engine),
        "raw": os.path.basename(path),
        "optimized": os.path.basename(saved) if saved else None,
    }


def open_profiled(order: Order, *, timer: PhaseTimer) -> tuple[Engine, str | None]:
    """Open a session under the profiler; return it with the path of the optimised model, None where it saved none.

    Raises Refusal where the session cannot be opened.
    """
    saved = os.path.join(order.work_dir, OPTIMIZED_NAME)
    tune: Tune = {
        "enable_profiling": True,
        "profile_file_prefix": os.path.join(order.work_dir, "profile"),
        "config_entries": {**_EXTERNAL_KEYS, _ASSIGNMENT_KEY: "1"},
    }
    try:
        return open_engine(order, timer=timer, tune={**tune, "optimized_model_filepath": saved}), saved
    except faults.Refusal as refusal:
        # providers that compile subgraphs cannot save them; any other error occurs again without saving
        if refusal.code not in ("model_not_loaded", "provider_not_active", "inference_failed"):
            raise
    tune["config_entries"] = {_ASSIGNMENT_KEY: "1"}
    return open_engine(order, timer=timer, tune=tune), None


def _run_profiled(feed: Feed, order: Order) -> None:
    """Warm up, after the two runs that `settle` made, then run at least 10 times, more while there is time."""
    for _ in range(WARMUP_RUNS - 2):
        feed.run()
    ends_at = time.perf_counter() + order.trace_s
    for done in range(max(MIN_RUNS, order.trace_runs)):
        if done >= MIN_RUNS and time.perf_counter() >= ends_at:
            break
        feed.run()


def read_profile(path: str) -> list[profile.TraceEvent]:
    """Read the events of ONNX Runtime's profile. Raises Refusal where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as profile_file:
            events: list[profile.TraceEvent] = json.load(profile_file)
    except (OSError, ValueError) as error:
        raise faults.Refusal(
            "inference_failed", f"the profile that ONNX Runtime wrote cannot be read: {error}"
        ) from error
    return [event for event in events if isinstance(event, dict)]


def _list_assignments(engine: Engine) -> list[dict[str, object]]:
    """List the nodes that each provider took, with one entry for each compiled subgraph.

    Empty before ONNX Runtime 1.24, which does not tell.
    """
    ask = getattr(engine.session, "get_provider_graph_assignment_info", None)
    if ask is None:
        return []
    entries, remaining = [], MAX_ASSIGNED
    for group in ask():
        nodes = [[node.name, node.op_type] for node in group.get_nodes()][:remaining]
        remaining -= len(nodes)
        if nodes:
            entries.append({"provider": group.ep_name, "nodes": nodes})
    return entries
