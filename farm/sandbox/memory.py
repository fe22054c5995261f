"""Resident memory of a process and of those below it, read from /proc."""

from collections.abc import Iterator
from pathlib import Path


def peak_bytes(pid: int) -> int:
    """The highest resident size the process has had since its last exec; 0 where it cannot be read."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:  # it is gone, or this is no Linux
        return 0
    return 0


def family_bytes(pid: int) -> int:
    """The highest resident sizes of the process and its living descendants, summed: never less than they use now."""
    return sum(peak_bytes(member) for member in _family(pid))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = children.read_text().split()
        except OSError:  # the thread is gone
            continue
        for child in below:
            yield from _family(int(child))
