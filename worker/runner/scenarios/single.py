"""`single`: one session, one inference after another, in windows until they agree."""

import numpy as np

from worker.runner import counters, windows
from worker.runner.arrays import Arrays
from worker.runner.engines.protocol import Engine, Kind
from worker.runner.order import BudgetOrder
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import LaunchContext, PreparedSessions, prepare_sessions

# below this time, the overhead of the call matters, so the other kind of call is timed too
SHORT_NS = 1e6


class Single:
    """Warms up, then times windows."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._sessions: PreparedSessions
        self._warm: windows.Warmup | None = None
        self._timings: windows.Timings
        self._side_call: windows.SideCall | None = None

    def open(self) -> None:
        self._sessions = prepare_sessions(self._context, sessions=1)

    def step(self) -> bool:
        """Warm up at the first call, and measure at the second. Return whether another step follows."""
        order, timer, (call, *_) = self._context.order, self._context.timer, self._sessions.calls
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(call, order.budget)
                if self._warm.p50_ns < SHORT_NS:
                    self._side_call = self._make_side_call()
            return True
        # with more threads or a device, this thread does not do the work
        counter = counters.open_inherited_counter() if order.gate_cpu_share is not None else None
        with timer.phase("window"):
            side_call, turns = self._side_call, self._context.turns
            self._timings = windows.measure(call, order.budget, turns=turns, counter=counter, side_call=side_call)
        if turns is not None:
            own_ms = (self._timings.wall_ns + (0 if side_call is None else side_call.timings.wall_ns)) / 1e6
            timer.phases_ms["others"] += timer.phases_ms["window"] - own_ms
            timer.phases_ms["window"] = own_ms
        return False

    def _make_side_call(self) -> windows.SideCall | None:
        """Make the side call, which is the kind of call that the cell does not ask for; None where there is none."""
        find_other_call = self._sessions.kind.other_call
        named_call = find_other_call(self._sessions.feeds[0]) if find_other_call is not None else None
        if named_call is None:
            return None
        name, call = named_call
        return windows.SideCall(name, self._context.timer.wrap_call(call))

    def close(self) -> dict[str, object]:
        """Return the sample and the providers. On a device with its own memory, first measure also with copies."""
        gate, timings = self._context.order.gate_cpu_share, self._timings
        assert self._warm is not None
        peaks = summaries.read_memory_peaks()
        copied = time_with_copies(
            self._sessions.kind, self._sessions.engines[0], self._sessions.inputs, budget=self._context.order.budget
        )
        cpu_share = timings.cpu_ns / timings.wall_ns
        cpu_p50_ns = timings.cpu_p50_ns if gate is not None else None
        sample = {
            **summaries.summarise_timings([timings], [self._warm], wall_ns=timings.wall_ns),
            "cpu_share": cpu_share,
            "cpu_p50_ms": None if cpu_p50_ns is None else cpu_p50_ns / 1e6,
            "is_disturbed": gate is not None and cpu_share < gate,
            "with_copies_p50_ms": copied,
            **summaries.make_other_metrics(peaks, {"instructions": timings.instructions, **self._list_other_metrics()}),
        }
        return {"sample": sample, **self._sessions.provider_report}

    def _list_other_metrics(self) -> dict[str, float | None]:
        """List the side call's figures by metric; none where it was never timed."""
        side_call, gate = self._side_call, self._context.order.gate_cpu_share
        if side_call is None or not side_call.timings.durations:
            return {}
        spent = side_call.timings.cpu_p50_ns
        return {
            f"{side_call.name}_p50_ms": float(np.median(np.array(side_call.timings.durations))) / 1e6,
            f"{side_call.name}_cpu_p50_ms": None if gate is None or spent is None else spent / 1e6,
        }


def time_with_copies(kind: Kind, engine: Engine, inputs: Arrays, *, budget: BudgetOrder) -> float | None:
    """Measure p50 in ms with inputs and outputs in host memory; None where the device uses host memory anyway."""
    if engine.device == "cpu":
        return None
    feed = kind.feed(engine, inputs, device="cpu")
    feed.run_first()
    feed.settle()
    return float(np.median(np.array(windows.measure(feed.timed_call(), budget).durations))) * 1e-6
