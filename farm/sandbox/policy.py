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
    # folders of which only the names can be seen
    listed: tuple[Path, ...] = ()
    # resident memory, enforced by the watch
    memory_bytes: int | None = None
    # the kernel's own limit; None for GPU runtimes, which reserve far more than they use
    address_space_bytes: int | None = None
    file_bytes: int | None = 8 << 30
    cpu_s: float | None = None
    # whether the child may start processes, which are killed with it
    processes: bool = False
    # whether it may open the GPU's device files
    devices: bool = False
    # what a counter of its main thread in user mode counts; the child inherits it open where the machine allows it
    counts: Counts | None = None
    # None: the strongest that works here; "none" only where the process has accepted that (farm/sandbox/unconfined.py)
    level: Level | None = None
