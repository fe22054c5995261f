"""What a confined child may touch and how much it may use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["bubblewrap", "landlock", "none"]
# perf events: `instructions` needs the processor's counters, `task-clock` works on every machine
Counts = Literal["instructions", "task-clock"]


class SandboxError(Exception):
    """A child could not be started or confined as its policy demands; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What one child may read, write and use; None means no limit."""

    # files and folders, in addition to the system's libraries
    read_only: tuple[Path, ...] = ()
    read_write: tuple[Path, ...] = ()
    # folders in which the child sees only the names of files
    listed: tuple[Path, ...] = ()
    # limit of resident memory, enforced by the watch
    memory_bytes: int | None = None
    # limit of the address space, enforced by the kernel; None for GPU runtimes, which reserve far more than they use
    address_space_bytes: int | None = None
    file_bytes: int | None = 8 << 30
    cpu_s: float | None = None
    # whether the child may start processes, which are killed with it
    processes: bool = False
    # whether it may open the GPU's device files
    devices: bool = False
    # the event that a counter of the child's main thread counts in user mode; the child inherits the open counter where
    # the machine allows one
    counts: Counts | None = None
    # None: the best level that works here, or "none" where the process accepts that (farm/sandbox/unconfined.py)
    level: Level | None = None
