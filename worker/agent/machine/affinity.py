"""Which core a block's one-thread processes keep to.

The cores of one machine differ from moment to moment (neighbours on the host, heat, other programs) and, on some, for
good. Arms that are compared run on the same one: on a shared two-core machine that halved the spread of pairs.
"""

import os
from pathlib import Path

import psutil

LOOK_S = 0.1
_CPUS = Path("/sys/devices/system/cpu")


def choose_core(*, look_s: float = LOOK_S, cpus: Path = _CPUS) -> int | None:
    """Return that of this process's fastest cores which is least busy for `look_s` seconds; None without a choice."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return None
    busy = psutil.cpu_percent(interval=look_s, percpu=True)
    best = max(_read_speed(cpus, core) for core in allowed)
    fastest = [core for core in allowed if _read_speed(cpus, core) == best]
    return min(fastest, key=lambda core: busy[core] if core < len(busy) else 0.0)


def _read_speed(cpus: Path, core: int) -> int:
    """Return the core's capacity or highest clock as the kernel tells; 0 where it does not, as in virtual machines."""
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        try:
            return int((cpus / f"cpu{core}" / name).read_text())
        except (OSError, ValueError):
            continue
    return 0
