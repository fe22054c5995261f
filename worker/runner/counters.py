"""Reads a counter of the processor for this process, such as retired instructions, in user mode on the main thread.

A confined process cannot open a counter, so the launcher opens it and passes its descriptor in the environment.
"""

import os
import struct

VARIABLE = "ONNXFARM_COUNTER_FD"
# read_format of linux/perf_event.h: value, time enabled, time running
_READ = struct.Struct("=QQQ")


class Counter:
    """A counter that was started with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> int | None:
        """Read the count; None where it cannot be read, or where other counters used the hardware meanwhile."""
        try:
            value, enabled, running = _READ.unpack(os.read(self._descriptor, _READ.size))
        except (OSError, struct.error):
            return None
        return value if enabled == running else None


def open_inherited_counter() -> Counter | None:
    text = os.environ.get(VARIABLE, "")
    return Counter(int(text)) if text.isdecimal() else None
