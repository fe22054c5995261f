"""`sustained`: one process runs for minutes, and its latency is summed up point by point.

Short samples see a cool processor. This shows what is left of it when the work goes on.
"""

import functools
import time
from array import array
from collections.abc import Callable

import numpy as np

from worker.runner import parallel_calls, windows
from worker.runner.scenarios.protocol import Ready, Room, make_ready

# durations kept of one point and thread; beyond it every second one is let go, so that hours fit
MAX_DURATIONS = 100_000
# inferences are timed in stretches of about this long; a clock is looked at once between two of them
STRETCH_NS = 50_000_000

Clock = Callable[[], int]


class Sustained:
    """Runs for `order.sustained_s` seconds; under `points`, what each `order.point_s` of them came to.

    `began_ns` and `ended_ns` are of CLOCK_MONOTONIC, which the agent reads energy and heat by.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ready: Ready
        self._is_warm = False
        self._recorded: list[list[Point]] = []

    def open(self) -> None:
        self._ready = make_ready(self._room, sessions=self._room.order.concurrency)

    def step(self) -> bool:
        order, calls = self._room.order, self._ready.calls
        if not self._is_warm:
            for call in calls:
                windows.warm_up(call, order.budget)
            self._is_warm = True
            return True
        self._recorded = _record_together(calls, total_s=order.sustained_s, point_s=order.point_s)
        return False

    def close(self) -> dict[str, object]:
        points = [summarise_point(parts) for parts in zip(*self._recorded, strict=True)]
        return {"points": points, **self._ready.asked_and_got}


class Point:
    """One stretch of the curve on one thread: how many inferences, and every k-th of their durations in ns."""

    def __init__(self, *, max_durations: int = MAX_DURATIONS) -> None:
        self._max_durations = max_durations
        self.durations: array[int] = array("Q")
        self.runs = 0
        self.began_ns = 0
        self.ended_ns = 0
        self._step = 1

    def take(self, durations: "array[int]") -> None:
        """Adds durations, thinned as those before were."""
        # the next one to keep, so that thinning goes on where the last stretch ended
        self.durations.extend(durations[-self.runs % self._step :: self._step])
        self.runs += len(durations)
        while len(self.durations) > self._max_durations:
            self.durations = self.durations[::2]
            self._step *= 2


def record(call: Callable[[], object], *, points: int, point_s: float, clock: Clock = time.monotonic_ns) -> list[Point]:
    """Calls without a break; each point ends with the first inference past its time. A slow one may leave points out.

    A point without an inference of its own (one that takes longer than a point) is not in the list.
    """
    found: list[Point] = []
    began = clock()
    now = began
    for number in range(1, points + 1):
        ends = began + round(number * point_s * 1e9)
        if now >= ends:
            continue
        point = Point()
        point.began_ns = now
        while now < ends:
            stretch: array[int] = array("Q")
            # what keeping the last stretch took is no inference's time
            now = clock()
            until = min(ends, now + STRETCH_NS)
            while not stretch or now < until:
                before = now
                call()
                now = clock()
                stretch.append(now - before)
            point.take(stretch)
        point.ended_ns = now
        found.append(point)
    return found


def summarise_point(parts: "tuple[Point, ...]") -> dict[str, object]:
    """One point of all threads together: p50 and p90 in ms, inferences, and from when to when."""
    durations = np.concatenate([np.array(part.durations) for part in parts])
    return {
        "began_ns": min(part.began_ns for part in parts),
        "ended_ns": max(part.ended_ns for part in parts),
        "n": sum(part.runs for part in parts),
        "p50_ms": float(np.median(durations)) * 1e-6,
        "p90_ms": float(np.percentile(durations, 90)) * 1e-6,
    }


def _record_together(calls: list[Callable[[], object]], *, total_s: float, point_s: float) -> list[list[Point]]:
    """The points of each session, one thread each; as many of every thread."""
    points = max(1, round(total_s / point_s))
    take = functools.partial(record, points=points, point_s=point_s)
    if len(calls) == 1:
        return [take(calls[0])]
    recorded = parallel_calls.run_in_parallel(calls, lambda call, _: take(call))
    shortest = min(len(part) for part in recorded)
    return [part[:shortest] for part in recorded]
