"""The sample pass: one process launch, one p50. Never with the profiler on."""

import base64
import dataclasses
import gc
import time
import zlib
from collections.abc import Callable

import numpy as np

from worker.runner import counters, faults, memory, opening, together, windows
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.opening import Engine, Feed, Kind
from worker.runner.order import BudgetOrder, Order, PhaseTimer, WrapCall
from worker.runner.turns import Turns, stay_on

# raw timings kept of one sample; beyond it every k-th is kept, so that a block's report stays under 1 MB
MAX_TIMINGS = 10_000


def run_sample(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None = None) -> dict[str, object]:
    """Warm up, time the windows, summarise; in the shape of the contract's Sample, under `sample`.

    Where it is asked for, a few inferences are traced then: executed nodes, under `traced`.
    """
    turns = Turns(order.turns) if order.turns else None
    answer = _measured(order, timer=timer, wrap_call=wrap_call, turns=turns)
    if not order.is_traced:
        return answer
    # the first session is gone: threads of two would disturb each other
    gc.unfreeze()
    gc.enable()
    gc.collect()
    # profiles are ONNX Runtime's, which not every environment has
    from worker.runner import round_trace

    return {**answer, "traced": round_trace.trace_few(order, timer=timer, turns=turns)}


def _measured(order: Order, *, timer: PhaseTimer, wrap_call: WrapCall | None, turns: Turns | None) -> dict[str, object]:
    given = load_arrays(order.inputs)
    kind = opening.kind_of(order)
    engines = [kind.open_engine(order, timer=timer) for _ in range(order.concurrency)]
    inputs = kind.choose_inputs(engines[0], given)
    with faults.translated("run"):
        with timer.phase("first"):
            feeds = [_first_run(kind, engine, inputs) for engine in engines]
        for feed in feeds:
            feed.settle()
        calls = [feed.timed_call() for feed in feeds]
        if wrap_call:
            calls = [wrap_call(call) for call in calls]
        # a collection inside the timed loop would be counted as the model's time
        gc.collect()
        gc.freeze()
        gc.disable()
        if turns is not None:
            with timer.phase("others"):
                turns.wait_to_warm_up()
        # not before: processes that take turns load their models side by side
        stay_on(order.core)
        # elsewhere other threads, or a device, do the work
        counter = counters.given() if order.gate_cpu_share is not None else None
        taken, warm, wall_ns = _measure(calls, order.budget, timer=timer, turns=turns, counter=counter)
        if turns is not None:
            turns.rest() if order.is_traced else turns.finish()
        peak, addresses = memory.peak_bytes(), memory.peak_address_space_bytes()
        with_copies = _with_copies(kind, engines[0], inputs, budget=order.budget)
    cpu_share = taken[0].cpu_ns / taken[0].wall_ns if len(taken) == 1 else None
    # elsewhere other threads, or a device, do the work
    cpu_p50_ns = taken[0].cpu_p50_ns if order.gate_cpu_share is not None and len(taken) == 1 else None
    return {
        "sample": {
            **summarise([np.array(part.durations) for part in taken]),
            "warmup_runs": sum(part.runs for part in warm),
            "warmup_ms": max(part.wall_ns for part in warm) / 1e6,
            "is_stable": all(part.agreed for part in warm) and all(part.is_stable for part in taken),
            "cpu_share": cpu_share,
            "cpu_p50_ms": None if cpu_p50_ns is None else cpu_p50_ns / 1e6,
            "is_disturbed": _is_disturbed(cpu_share, gate=order.gate_cpu_share),
            "throughput": sum(len(part.durations) for part in taken) / (wall_ns / 1e9),
            "with_copies_p50_ms": with_copies,
            "peak_memory_bytes": peak,
            "turns": turns.count if turns else 0,
            "metrics": _told({"instructions": taken[0].instructions, "peak_address_space_bytes": addresses}),
        },
        "requested_providers": engines[0].requested,
        "active_providers": engines[0].active,
    }


def _told(metrics: dict[str, float | None]) -> dict[str, float]:
    """Those that this machine can tell."""
    return {name: value for name, value in metrics.items() if value is not None}


def summarise(parts: list[windows.Durations]) -> dict[str, object]:
    """p50, mean, standard deviation, extremes (ms) and the raw timings of durations in ns. No outlier is removed."""
    durations = np.concatenate(parts)
    scale = 1e-6
    return {
        "p50_ms": float(np.median(durations)) * scale,
        "mean_ms": float(np.mean(durations)) * scale,
        "std_ms": float(np.std(durations, ddof=1)) * scale if durations.size > 1 else 0.0,
        "min_ms": float(durations.min()) * scale,
        "max_ms": float(durations.max()) * scale,
        "n": int(durations.size),
        "timings": pack_timings(durations),
    }


def pack_timings(durations: windows.Durations) -> str:
    """`u4:` or `u8:`, then base64 of zlib of little-endian nanoseconds; at most MAX_TIMINGS, evenly spaced."""
    step = -(-durations.size // MAX_TIMINGS)
    kept = durations[::step]
    dtype = "u4" if int(kept.max()) < 1 << 32 else "u8"
    return f"{dtype}:{base64.b64encode(zlib.compress(kept.astype(f'<{dtype}').tobytes(), 6)).decode()}"


def _first_run(kind: Kind, engine: Engine, inputs: Arrays) -> Feed:
    feed = kind.feed(engine, inputs)
    feed.run_first()
    return feed


def _measure(
    calls: list[Callable[[], object]],
    budget: BudgetOrder,
    *,
    timer: PhaseTimer,
    turns: Turns | None,
    counter: counters.Counter | None,
) -> tuple[list[windows.Timings], list[windows.Warmup], int]:
    if len(calls) > 1:
        with timer.phase("window"):
            return _measure_together(calls, budget)
    with timer.phase("warmup"):
        warm = windows.warm_up(calls[0], budget)
    with timer.phase("window"):
        taken = windows.measure(calls[0], budget, turns=turns, counter=counter)
    if turns is not None:
        timer.phases_ms["others"] += timer.phases_ms["window"] - taken.wall_ns / 1e6
        timer.phases_ms["window"] = taken.wall_ns / 1e6
    return [taken], [warm], taken.wall_ns


def _measure_together(
    calls: list[Callable[[], object]], budget: BudgetOrder
) -> tuple[list[windows.Timings], list[windows.Warmup], int]:
    """k sessions at once, one thread each, over one common window; the wall-clock is first start to last end.

    One window, because sessions that settle early would leave the others more of the machine.
    """
    one_window = dataclasses.replace(
        budget, windows_agreeing=1, window_s=max(budget.window_s, budget.at_least_s), at_least_s=0.0
    )

    def measure_one(call: together.Call, gate: together.Gate) -> tuple[windows.Warmup, windows.Timings, int, int]:
        warm = windows.warm_up(call, budget)
        gate.wait()
        began = time.perf_counter_ns()
        return warm, windows.measure(call, one_window), began, time.perf_counter_ns()

    found = together.each(calls, measure_one)
    wall_ns = max(ended for *_, ended in found) - min(began for _, _, began, _ in found)
    return [taken for _, taken, _, _ in found], [warm for warm, *_ in found], wall_ns


def _with_copies(kind: Kind, engine: Engine, inputs: Arrays, *, budget: BudgetOrder) -> float | None:
    """p50 in ms with inputs and outputs in host memory, on a device that has memory of its own."""
    if engine.device == "cpu":
        return None
    feed = kind.feed(engine, inputs, device="cpu")
    feed.run_first()
    feed.settle()
    return float(np.median(np.array(windows.measure(feed.timed_call(), budget).durations))) * 1e-6


def _is_disturbed(cpu_share: float | None, *, gate: float | None) -> bool:
    return gate is not None and cpu_share is not None and cpu_share < gate
