"""A fixed piece of work, by which a test bounds a time: machines are shared, and a second is not the same on each."""

import time
from collections.abc import Callable


def yard_s() -> float:
    """Processor time of some 10,000 additions and products: about half a millisecond of an idle core."""
    return least_s(lambda: sum(number * number for number in range(10_000)))


def least_s(work: Callable[[], object], *, times: int = 50) -> float:
    """The shortest processor time that the work took."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
