"""This process's memory, in bytes: what is and was resident, and the addresses that are and were taken."""

import ctypes
import re
import resource
import sys


def peak_bytes() -> int:
    """VmHWM on Linux; elsewhere getrusage's maximum.

    getrusage comes second because on Linux it keeps the peak of the process that forked us across exec.
    """
    peak = _from_status("VmHWM")
    if peak is not None:
        return peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def peak_address_space_bytes() -> int | None:
    """VmPeak: what a limit on memory (RLIMIT_AS, a 32-bit system) counts, touched or not. None away from Linux."""
    return _from_status("VmPeak")


def address_space_bytes() -> int | None:
    return _from_status("VmSize")


def resident_bytes() -> int | None:
    return _from_status("VmRSS")


def release_freed_memory() -> None:
    """Gives the system what this process has freed: loading leaves some MiB, which would take up a small leak unseen.

    glibc alone can do so.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _from_status(name: str) -> int | None:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            found = re.search(rf"^{name}:\s+(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) * 1024 if found else None
