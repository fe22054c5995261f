"""A processor's counter of this process, such as instructions retired, opened by the launcher before confinement.

A confined process may open no counter itself, so its descriptor stands in the environment. It counts the main thread in
user mode. Where there is none, the runner says nothing of instructions.
"""

import os
import struct

VARIABLE = "ONNXFARM_COUNTER_FD"
# read_format of linux/perf_event.h: value, time enabled, time running
_READ = struct.Struct("=QQQ")


class Counter:
    """A counter that began with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> int | None:
        """Read the count; None where it cannot be read, or other counters had the hardware for part of the time."""
        try:
            value, enabled, running = _READ.unpack(os.read(self._descriptor, _READ.size))
        except (OSError, struct.error):
            return None
        return value if enabled == running else None


def open_inherited_counter() -> Counter | None:
    text = os.environ.get(VARIABLE, "")
    return Counter(int(text)) if text.isdecimal() else None
