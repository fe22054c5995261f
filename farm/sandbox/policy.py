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
    """Limits of one child. Sizes in bytes, times in seconds; None lifts a limit.

    `read_only` and `read_write` are files or directories, on top of the system's libraries; of `listed` directories
    only the names can be seen. `memory_bytes` is watched as resident memory; `address_space_bytes` is the kernel's own
    limit, to be left None for GPU runtimes, which reserve far more than they use. `processes` lets the child start
    others (they die with it); `devices` opens the GPU device files. `counts` names a counter of its main thread in user
    mode, which the child is handed open where this machine allows it; it may open none itself. `level` None takes the
    strongest that works here, and "none" only where the process has accepted that (farm/sandbox/unconfined.py).
    """

    read_only: tuple[Path, ...] = ()
    read_write: tuple[Path, ...] = ()
    listed: tuple[Path, ...] = ()
    memory_bytes: int | None = None
    address_space_bytes: int | None = None
    file_bytes: int | None = 8 << 30
    cpu_s: float | None = None
    processes: bool = False
    devices: bool = False
    counts: Counts | None = None
    level: Level | None = None
