"""A clock that no administrator, no NTP and no daylight saving moves."""

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Moment(NamedTuple):
    """Seconds of a monotonic clock, and whose: two moments of different boots cannot be subtracted."""

    seconds: float
    boot: str

    def since(self, seconds: float, boot: str) -> float | None:
        return self.seconds - seconds if boot == self.boot and boot else None


def now() -> Moment:
    return Moment(time.monotonic(), _boot())


@cache
def _boot() -> str:
    """Names this machine and its current boot; empty where it cannot be told."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
