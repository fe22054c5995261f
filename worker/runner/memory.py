"""Reads this process's memory in bytes: resident memory and address space, now and at their peaks.

A function that may return None does so on other systems than Linux. RLIMIT_AS limits the address space.
"""

import ctypes
import re
import resource
import sys


def read_peak_bytes() -> int:
    """Read the peak of resident memory: VmHWM on Linux, elsewhere getrusage's maximum.

    On Linux getrusage would keep, across exec, the peak of the process that forked this one.
    """
    peak = _read_status("VmHWM")
    if peak is not None:
        return peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def read_peak_address_space_bytes() -> int | None:
    return _read_status("VmPeak")


def read_address_space_bytes() -> int | None:
    return _read_status("VmSize")


def read_resident_bytes() -> int | None:
    return _read_status("VmRSS")


def release_freed_memory() -> None:
    """Return freed memory to the system, where the C library is glibc.

    Loading leaves some MiB of it, which would hide a small leak.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _read_status(name: str) -> int | None:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            match = re.search(rf"^{name}:\s+(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) * 1024 if match else None
