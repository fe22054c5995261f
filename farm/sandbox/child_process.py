"""A child that was started, as the watch needs it: whoever its parent is."""

import os
import subprocess
from dataclasses import dataclass
from typing import IO, Protocol


@dataclass(frozen=True, slots=True)
class End:
    """What the kernel says of a child that is over: its exit code (−signal), processor time, largest resident size."""

    exit_code: int
    cpu_s: float
    peak_bytes: int


class Child(Protocol):
    """`has_exited` leaves the zombie: its number must not go to another process before the group was ended."""

    @property
    def pid(self) -> int:
        """Its number, which is its group's too."""

    @property
    def parent(self) -> int:
        """The process it was forked from: its peak memory is where the child's begins."""

    @property
    def stdout(self) -> IO[bytes]: ...

    @property
    def stderr(self) -> IO[bytes]: ...

    def has_exited(self) -> bool: ...

    def reap(self) -> End:
        """Waits for its end and gives its number back."""


class Spawned:
    """A child of this very process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.pid, self.parent = process.pid, os.getpid()
        self.stdout, self.stderr = process.stdout, process.stderr

    def has_exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> End:
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return End(self._process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
