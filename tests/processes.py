"""Real processes in tests: started in their own group, ended with it, their words kept."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

# how many times as long as on a quiet machine something may take on one that others use
PATIENCE = 4.0


class Process:
    """A child process with its output in a file; leaving the block ends its whole group."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                command, env=dict(env), cwd=cwd, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill(signal.SIGTERM)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            self.child.wait(60)
        self.kill()


def wait_for(is_true: Callable[[], bool], *, what: str, seconds: float) -> None:
    """Wait until something holds; an AssertionError names what did not come. `seconds`: on a quiet machine."""
    limit = time.monotonic() + PATIENCE * seconds
    while not is_true():
        assert time.monotonic() < limit, f"{what} did not come within {PATIENCE * seconds} s"
        time.sleep(0.05)
