"""Peak resident memory of this process, in bytes."""

import re
import resource
import sys


def peak_bytes() -> int:
    """VmHWM on Linux; elsewhere getrusage's maximum.

    getrusage comes second because on Linux it keeps the peak of the process that forked us across exec.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            found = re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found.group(1)) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
