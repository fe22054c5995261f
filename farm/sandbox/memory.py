"""Memory of a process and of those below it, read from /proc."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# a kernel stack of 16 KiB and the thread's own structures
_THREAD_BYTES = 32 << 10


@dataclass(frozen=True)
class Memory:
    """Bytes: `resident` is the highest resident size since the last exec, `kernel` what the kernel holds for it now."""

    resident: int = 0
    kernel: int = 0

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.resident + other.resident, self.kernel + other.kernel)


def of_process(pid: int) -> Memory:
    """Nothing where it cannot be read: the process is gone, or this is no Linux."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            found = dict(line.split(":", 1) for line in status if line.startswith(("VmHWM:", "VmPTE:", "Threads:")))
    except OSError:
        return Memory()
    resident, page_tables = (int(found.get(key, "0").split()[0]) * 1024 for key in ("VmHWM", "VmPTE"))
    return Memory(resident, page_tables + int(found.get("Threads", "0")) * _THREAD_BYTES)


def of_family(pid: int) -> Memory:
    """The process and its living descendants, summed: never less than they use now."""
    return sum(map(of_process, _family(pid)), Memory())


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = children.read_text().split()
        except OSError:  # the thread is gone
            continue
        for child in below:
            yield from _family(int(child))
