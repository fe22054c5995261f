"""Child processes of this process or of a fork server, with what `farm.sandbox.watch` needs of both."""

import os
import subprocess
from dataclasses import dataclass
from typing import IO, Protocol


@dataclass(frozen=True, slots=True)
class ChildExit:
    """What the kernel reports about an ended child; `exit_code` is −signal where a signal ended it."""

    exit_code: int
    cpu_s: float
    peak_bytes: int


class Child(Protocol):
    """A child process. `has_exited` does not reap it: its id must stay in use until its whole group was ended."""

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group."""

    @property
    def parent_pid(self) -> int:
        """The id of the process it was forked from, whose peak memory the child inherits."""

    @property
    def stdout(self) -> IO[bytes]: ...

    @property
    def stderr(self) -> IO[bytes]: ...

    def has_exited(self) -> bool: ...

    def reap(self) -> ChildExit:
        """Wait for the end of the child, free its process id, and return its exit code, seconds and peak memory."""


class SpawnedChild:
    """A child that this process started itself."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.pid, self.parent_pid = process.pid, os.getpid()
        self.stdout, self.stderr = process.stdout, process.stderr

    def has_exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> ChildExit:
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return ChildExit(self._process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
