"""How near the generator of `load` comes to theory on a real clock.

Work outside the interpreter is asked for 5,000 times by a Poisson process; the mean wait is held
against Lindley's recursion, fed with the measured service times of the same requests. Wants a quiet machine:

    python -m tests.bench.load
"""

import hashlib
import os
import platform
import sys

import numpy as np

from worker.runner.scenarios.arrivals import MOST_LATE_NS, RealClock, Served, serve, unit_gaps

ARRIVALS = 5_000
# a key derivation leaves the interpreter to others, as an inference does; about 1 ms
TURNS = 1_500
LOADS = ((0.6, 0.20), (0.8, 0.10))


def work() -> None:
    """About a millisecond."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", TURNS)


def waits_of(found: Served) -> tuple[float, float]:
    """Mean wait in ms as it was, and by the recursion W' = max(0, W + S - A)."""
    wait, total = 0, 0
    for gap, service in zip(np.diff(found.due).tolist(), found.services.tolist(), strict=False):
        wait = max(0, wait + service - gap)
        total += wait
    measured = (found.began.astype(np.int64) - found.due.astype(np.int64)).mean()
    return float(measured) / 1e6, total / found.due.size / 1e6


def main() -> int:
    """Prints a line a load; 1 where one is further from theory than it may be, 3 on a busy machine."""
    alone = serve([[work]], np.full(200, 0.002), clock=RealClock())
    mean_s = float(np.median(alone.services)) / 1e9
    print(f"{platform.processor() or platform.machine()}, load {os.getloadavg()[0]:.1f}, service {mean_s * 1e3:.3f} ms")
    is_far = is_late = False
    for load, most in LOADS:
        found = serve([[work]], unit_gaps(ARRIVALS, 11) * mean_s / load, clock=RealClock())
        measured, expected = waits_of(found)
        off = measured / expected - 1.0
        is_far |= abs(off) > most
        is_late |= found.late_ns > MOST_LATE_NS
        said = f"mean wait {measured:.3f} ms, by Lindley {expected:.3f} ms ({off:+.1%})"
        print(f"load {load}: {said}; late {found.late_ns / 1e3:.1f} us at the median")
    if is_late:
        print("generator late: other programs kept it from its arrivals, and nothing is proven; measure again")
        return 3
    return int(is_far)


if __name__ == "__main__":
    sys.exit(main())
