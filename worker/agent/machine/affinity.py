"""Chooses the core for the one-thread processes of a block.

Some cores of a machine are always faster than others, and any of them is slowed for a while by other guests, other
programs or heat. So the arms of a comparison run on the same core: on a shared machine with two cores this halved the
spread of their paired times.
"""

import os
from pathlib import Path

import psutil

# long enough for a reading of the load, and short compared with a block
WATCH_S = 0.1
_CPUS = Path("/sys/devices/system/cpu")


def choose_core(*, watch_s: float = WATCH_S, cpus: Path = _CPUS) -> int | None:
    """Choose the least busy of the fastest cores that this process may use, after watching them for `watch_s` seconds.

    `cpus` is the folder of the cores in sysfs. Return None where the system cannot bind a process to a core, or where
    the process may use only one.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return None
    busy = psutil.cpu_percent(interval=watch_s, percpu=True)
    best = max(_read_speed(cpus, core) for core in allowed)
    fastest = [core for core in allowed if _read_speed(cpus, core) == best]
    # a core whose load is not known counts as fully busy
    return min(fastest, key=lambda core: busy[core] if core < len(busy) else 100.0)


def _read_speed(cpus: Path, core: int) -> int:
    """Read the core's capacity, or its highest clock; 0 where the kernel has neither, as in virtual machines."""
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        try:
            return int((cpus / f"cpu{core}" / name).read_text())
        except (OSError, ValueError):
            continue
    return 0
