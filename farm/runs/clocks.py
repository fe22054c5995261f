"""Reads the monotonic clock, which no administrator or NTP moves, together with the boot from which it counts."""

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple


class MonotonicTime(NamedTuple):
    """Seconds of the monotonic clock, and the boot of the machine from which they count."""

    seconds: float
    boot: str

    def since(self, seconds: float, boot: str) -> float | None:
        """Return the seconds since an earlier moment; None if its `boot` is another one or empty."""
        return self.seconds - seconds if boot == self.boot and boot else None


def now() -> MonotonicTime:
    return MonotonicTime(time.monotonic(), _boot())


@cache
def _boot() -> str:
    """Return the id of this machine's current boot; empty if the system gives none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
