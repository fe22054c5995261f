"""Memory of a process and of its process group, read from /proc."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

# what the kernel holds for a thread: a stack of 16 KiB and other structures
_THREAD_BYTES = 32 << 10
_LINES = ("VmHWM:", "VmRSS:", "VmSwap:", "VmPTE:", "Threads:")


@dataclass(frozen=True)
class Memory:
    """Memory of processes, in bytes."""

    # the highest resident size since the last exec
    resident: int = 0
    # what the kernel holds for them now, and memory that was swapped out: otherwise a child could hide memory there
    kernel: int = 0

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.resident + other.resident, self.kernel + other.kernel)


def read_process_memory(pid: int) -> Memory:
    """Read one process's memory: its highest resident size since its exec, and what the kernel holds for it now.

    Both are zero where it cannot be read, because the process is gone or this is no Linux.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            values = dict(line.split(":", 1) for line in status if line.startswith(_LINES))
    except OSError:
        return Memory()
    peak, resident, swapped, page_tables, threads = (int(values.get(line[:-1], "0").split()[0]) for line in _LINES)
    hidden = max(0, resident + swapped - peak)
    return Memory(peak << 10, (page_tables + hidden << 10) + threads * _THREAD_BYTES)


def read_group_memory(group: int) -> Memory:
    # by group, because a process can leave its parent, and the filter keeps it from leaving its group
    return sum(map(read_process_memory, _list_members(group)), Memory())


def _list_members(group: int) -> Iterator[int]:
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):  # it is gone
                if os.getpgid(int(name)) == group:
                    yield int(name)
