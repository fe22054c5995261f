"""`single`: one session, one inference after another, in windows until they agree."""

import numpy as np

from worker.runner import counters, windows
from worker.runner.arrays import Arrays
from worker.runner.engines.protocol import Engine, Kind
from worker.runner.order import BudgetOrder
from worker.runner.scenarios import summaries
from worker.runner.scenarios.protocol import Ready, Room, make_ready


class Single:
    """Warms up, then times windows."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ready: Ready
        self._warm: windows.Warmup | None = None
        self._taken: windows.Timings

    def open(self) -> None:
        self._ready = make_ready(self._room, sessions=1)

    def step(self) -> bool:
        order, timer, (call, *_) = self._room.order, self._room.timer, self._ready.calls
        if self._warm is None:
            with timer.phase("warmup"):
                self._warm = windows.warm_up(call, order.budget)
            return True
        # elsewhere other threads, or a device, do the work
        counter = counters.given() if order.gate_cpu_share is not None else None
        with timer.phase("window"):
            self._taken = windows.measure(call, order.budget, turns=self._room.turns, counter=counter)
        if self._room.turns is not None:
            timer.phases_ms["others"] += timer.phases_ms["window"] - self._taken.wall_ns / 1e6
            timer.phases_ms["window"] = self._taken.wall_ns / 1e6
        return False

    def close(self) -> dict[str, object]:
        gate, taken = self._room.order.gate_cpu_share, self._taken
        assert self._warm is not None
        peaks = summaries.peaks()
        copied = with_copies(
            self._ready.kind, self._ready.engines[0], self._ready.inputs, budget=self._room.order.budget
        )
        cpu_share = taken.cpu_ns / taken.wall_ns
        cpu_p50_ns = taken.cpu_p50_ns if gate is not None else None
        sample = {
            **summaries.of_parts([taken], [self._warm], wall_ns=taken.wall_ns),
            "cpu_share": cpu_share,
            "cpu_p50_ms": None if cpu_p50_ns is None else cpu_p50_ns / 1e6,
            "is_disturbed": gate is not None and cpu_share < gate,
            "with_copies_p50_ms": copied,
            **summaries.beside(peaks, {"instructions": taken.instructions}),
        }
        return {"sample": sample, **self._ready.asked_and_got}


def with_copies(kind: Kind, engine: Engine, inputs: Arrays, *, budget: BudgetOrder) -> float | None:
    """p50 in ms with inputs and outputs in host memory, on a device that has memory of its own."""
    if engine.device == "cpu":
        return None
    feed = kind.feed(engine, inputs, device="cpu")
    feed.run_first()
    feed.settle()
    return float(np.median(np.array(windows.measure(feed.timed_call(), budget).durations))) * 1e-6
