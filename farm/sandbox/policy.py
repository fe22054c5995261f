"""What a confined child may touch and how much it may use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["bubblewrap", "landlock", "none"]
# what the processor counts; the clock is software's, and counts on every machine
Counts = Literal["instructions", "task-clock"]


class SandboxError(Exception):
    """The child could not be started or confined as its policy asks; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Limits of one child; None lifts a limit."""

    # files and folders beside the system's libraries
    read_only: tuple[Path, ...] = ()
    read_write: tuple[Path, ...] = ()
    # folders of which only the names can be seen
    listed: tuple[Path, ...] = ()
    # watched as resident memory
    memory_bytes: int | None = None
    # the kernel's own limit; None for GPU runtimes, which reserve far more than they use
    address_space_bytes: int | None = None
    file_bytes: int | None = 8 << 30
    cpu_s: float | None = None
    # whether the child may start others, which die with it
    processes: bool = False
    # whether it may open the GPU's device files
    devices: bool = False
    # a counter of its main thread in user mode, which is handed to the child open where this machine allows it
    counts: Counts | None = None
    # None: the strongest that works here; "none" only where the process has accepted that (farm/sandbox/unconfined.py)
    level: Level | None = None
