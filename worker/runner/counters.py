"""A processor's counter of this process, opened by the launcher before it confined the process: instructions retired.

Its descriptor, which says what was counted and for how long, stands in the environment: a confined process may open no
counter itself. It counts the main thread in user mode. Elsewhere there is none, and nothing is said of instructions.
"""

import os
import struct

VARIABLE = "ONNXFARM_COUNTER_FD"
# read_format of linux/perf_event.h: value, time enabled, time running
_READ = struct.Struct("=QQQ")


class Counter:
    """What is counted since the process began."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> int | None:
        """The count; None where other counters had the hardware for a part of the time, so that it would be a guess."""
        try:
            value, enabled, running = _READ.unpack(os.read(self._descriptor, _READ.size))
        except (OSError, struct.error):
            return None
        return value if enabled == running else None


def open_inherited_counter() -> Counter | None:
    text = os.environ.get(VARIABLE, "")
    return Counter(int(text)) if text.isdecimal() else None
