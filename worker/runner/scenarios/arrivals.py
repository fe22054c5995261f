"""An open loop: requests arrive at their own times, whether or not earlier ones are done.

Arrivals are drawn beforehand by a seed, so that both arms of a comparison get the same. The stream that is free first
takes the next request and waits for its arrival. Latency counts from the arrival, so a stall is in the latency of every
request that arrives meanwhile; a closed loop would not show that. There is no dispatcher, which could itself be late:
the streams take the requests in the order of their arrival.
"""

import itertools
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from worker.runner import parallel_calls

Call = Callable[[], object]
Durations = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
# a sleep may end this late, so the rest of a wait is spent reading the clock
SPIN_NS = 250_000
# the time before the first arrival, in which threads start
START_DELAY_NS = 5_000_000
# if free streams begin later than this after an arrival, at the median, the latencies show the generator's own delay
MAX_LATE_NS = 300_000


class Clock(Protocol):
    """A clock in ns."""

    def now(self) -> int: ...

    def wait_until(self, moment_ns: int) -> None: ...


class RealClock:
    """The machine's own clock. `is_shared`: a waiting stream yields the interpreter to other threads."""

    def __init__(self, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared

    def now(self) -> int:
        return time.perf_counter_ns()

    def wait_until(self, moment_ns: int) -> None:
        """Wait until `moment_ns`, by sleeping and then reading the clock. Return at once if it is past."""
        remaining_ns = moment_ns - time.perf_counter_ns()
        if remaining_ns > SPIN_NS:
            time.sleep((remaining_ns - SPIN_NS) / 1e9)
        while time.perf_counter_ns() < moment_ns:
            if self._is_shared:
                time.sleep(0)


@dataclass(frozen=True)
class Served:
    """Times of requests in ns, by number: when each was due, began and ended.

    `late` has the delays from due to begin, only of requests for which a free stream waited. `latencies` are from due
    to end, `services` from begin to end, and `wall_ns` is from the first due to the last end.
    """

    due: Durations
    began: Durations
    ended: Durations
    late: Durations

    @property
    def latencies(self) -> Durations:
        return self.ended - self.due

    @property
    def services(self) -> Durations:
        return self.ended - self.began

    @property
    def wall_ns(self) -> int:
        return int(self.ended.max() - self.due.min())

    @property
    def late_ns(self) -> float:
        """The median of `late`: how late the generator of requests is; 0 where no stream waited for a request."""
        return float(np.median(self.late)) if self.late.size else 0.0


def draw_unit_gaps(count: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Draw the gaps of a Poisson process of rate 1. Divided by a rate per second they are seconds between arrivals."""
    return np.random.default_rng(np.random.SeedSequence([seed % 2**32, 0x10AD])).exponential(1.0, count)


def serve(
    streams: Sequence[Sequence[Call]], gaps_s: np.ndarray[tuple[int, ...], np.dtype[np.float64]], *, clock: Clock
) -> Served:
    """Serve requests that arrive after these gaps, by all streams at once, and return the times of all requests.

    A stream is a list with a call for every set of inputs, and requests take the sets in turn. No request is dropped,
    however late it is. Raises what the first failed call raised.
    """
    moments = np.cumsum(gaps_s) * 1e9
    due = array("Q", (moments + (clock.now() + START_DELAY_NS)).astype(np.uint64).tolist())
    began, ended = (array("Q", bytes(8 * len(due))) for _ in range(2))
    waited = array("B", bytes(len(due)))
    # the interpreter hands out a number in one step, so no lock is needed
    numbers = itertools.count()

    def work(calls: Sequence[Call]) -> None:
        for number in numbers:
            if number >= len(due):
                return
            if clock.now() < due[number]:
                waited[number] = 1
                clock.wait_until(due[number])
            began[number] = clock.now()
            calls[number % len(calls)]()
            ended[number] = clock.now()

    _run_at_once(streams, work)
    dues, begins, ends = (np.array(moments, dtype=np.uint64) for moments in (due, began, ended))
    return Served(dues, begins, ends, (begins - dues)[np.array(waited, dtype=bool)])


def _run_at_once(streams: Sequence[Sequence[Call]], work: Callable[[Sequence[Call]], None]) -> None:
    """Run a single stream in this thread, and several in one thread each. Raises what the first failed one raised."""
    if len(streams) == 1:
        work(streams[0])
        return
    turn = iter(streams)
    lock = threading.Lock()

    def run(_: Call, __: parallel_calls.Gate) -> None:
        with lock:
            calls = next(turn)
        work(calls)

    parallel_calls.run_in_parallel([calls[0] for calls in streams], run)
