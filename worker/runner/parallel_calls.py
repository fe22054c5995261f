"""Runs sessions side by side, each in a thread, all started at once."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Call = Callable[[], object]
# lets the threads pass when all of them wait at it
Gate = threading.Barrier
Result = TypeVar("Result")


def run_in_parallel(calls: Sequence[Call], work: Callable[[Call, Gate], Result]) -> list[Result]:
    """Run `work` for each call in its own thread, and return the results in the order in which they ended.

    `work` gets the call and a gate, at which it may wait for all others again. Where threads fail, the first exception
    is raised once all have ended.
    """
    gate = Gate(len(calls))
    results: list[Result] = []
    failures: list[BaseException] = []

    def run(call: Call) -> None:
        try:
            gate.wait()
            results.append(work(call, gate))
        except BaseException as error:
            # the others must not wait for a thread that failed
            failures.append(error)
            gate.abort()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise next(
            (failure for failure in failures if not isinstance(failure, threading.BrokenBarrierError)), failures[0]
        )
    return results
