"""`sustained`: one process runs for minutes, and its latency is summarised point by point.

Short samples see a cool processor; this shows how it changes when the work goes on.
"""

import functools
import time
from array import array
from collections.abc import Callable

import numpy as np

from worker.runner import parallel_calls, windows
from worker.runner.scenarios.protocol import LaunchContext, PreparedSessions, prepare_sessions

# the maximum of durations for a point and thread; beyond it every second one is dropped, so that hours fit in memory
MAX_DURATIONS = 100_000
# the length of a chunk of inferences; between two chunks the clock is read once more
CHUNK_NS = 50_000_000

Clock = Callable[[], int]


class Sustained:
    """Runs for `order.sustained_s` seconds, and returns a summary of every `order.point_s` seconds under `points`.

    The points' `began_ns` and `ended_ns` are of CLOCK_MONOTONIC, which the agent uses for its energy readings. There is
    at least one point. If a thread has fewer points than others, the last ones of these are left out.
    """

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        self._sessions: PreparedSessions
        self._is_warm = False
        self._recorded: list[list[Point]] = []

    def open(self) -> None:
        self._sessions = prepare_sessions(self._context, sessions=self._context.order.concurrency)

    def step(self) -> bool:
        """Warm up at the first call, and record at the second. Return whether another step follows."""
        order, calls = self._context.order, self._sessions.calls
        if not self._is_warm:
            for call in calls:
                windows.warm_up(call, order.budget)
            self._is_warm = True
            return True
        self._recorded = _record_together(calls, total_s=order.sustained_s, point_s=order.point_s)
        return False

    def close(self) -> dict[str, object]:
        points = [summarise_point(parts) for parts in zip(*self._recorded, strict=True)]
        return {"points": points, **self._sessions.provider_report}


class Point:
    """One point of the curve on one thread: the number of inferences, and the duration in ns of every k-th of them."""

    def __init__(self, *, max_durations: int = MAX_DURATIONS) -> None:
        self._max_durations = max_durations
        self.durations: array[int] = array("Q")
        self.runs = 0
        self.began_ns = 0
        self.ended_ns = 0
        self._step = 1

    def add_durations(self, durations: "array[int]") -> None:
        """Add durations in ns, of which every k-th is kept; k doubles where they become more than `max_durations`."""
        # continue at the next k-th duration, counted from the first one of the point
        self.durations.extend(durations[-self.runs % self._step :: self._step])
        self.runs += len(durations)
        while len(self.durations) > self._max_durations:
            self.durations = self.durations[::2]
            self._step *= 2


def record_points(
    call: Callable[[], object], *, points: int, point_s: float, clock: Clock = time.monotonic_ns
) -> list[Point]:
    """Call without a break, and record `points` points of `point_s` seconds each.

    A point ends with the first inference that ends past its time. Points that begin and end within one long inference
    are left out.
    """
    recorded: list[Point] = []
    began = clock()
    now = began
    for number in range(1, points + 1):
        ends = began + round(number * point_s * 1e9)
        if now >= ends:
            continue
        point = Point()
        point.began_ns = now
        while now < ends:
            chunk: array[int] = array("Q")
            # read the clock again, so that the time for storing the last chunk is not counted as an inference
            now = clock()
            until = min(ends, now + CHUNK_NS)
            while not chunk or now < until:
                before = now
                call()
                now = clock()
                chunk.append(now - before)
            point.add_durations(chunk)
        point.ended_ns = now
        recorded.append(point)
    return recorded


def summarise_point(parts: "tuple[Point, ...]") -> dict[str, object]:
    """Summarise one point of all threads: p50 and p90 in ms, the number of inferences, and its begin and end.

    The percentiles are of the durations that were kept, and the number is of all inferences.
    """
    durations = np.concatenate([np.array(part.durations) for part in parts])
    return {
        "began_ns": min(part.began_ns for part in parts),
        "ended_ns": max(part.ended_ns for part in parts),
        "n": sum(part.runs for part in parts),
        "p50_ms": float(np.median(durations)) * 1e-6,
        "p90_ms": float(np.percentile(durations, 90)) * 1e-6,
    }


def _record_together(calls: list[Callable[[], object]], *, total_s: float, point_s: float) -> list[list[Point]]:
    """Record points of each session in its own thread, and return the same number of points for each."""
    points = max(1, round(total_s / point_s))
    take = functools.partial(record_points, points=points, point_s=point_s)
    if len(calls) == 1:
        return [take(calls[0])]
    recorded = parallel_calls.run_in_parallel(calls, lambda call, _: take(call))
    shortest = min(len(part) for part in recorded)
    return [part[:shortest] for part in recorded]
