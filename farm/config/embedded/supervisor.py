"""Starts the processes of a farm on one machine, and ends all of them, even if it is killed itself.

Each process has its own session and process group, so Ctrl-C reaches only the supervisor, which then ends the others in
the reverse order of their start. A guardian process ends them if the supervisor is killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

GUARDIAN = Path(__file__).with_name("guardian.py")
# how many seconds all processes together may take to end, and how many each has before the next one gets SIGTERM
GRACE_S, GRACE_OF_EACH_S = 10.0, 1.5
MAX_LOG_BYTES = 10 * 1024**2
QUOTED_LINES = 3
# the end of the sentence about a process in the foreground, which has no log
NO_LOG = "; what it said stands above."


class ProcessEndedError(RuntimeError):
    """A process of the farm ended too early, failed, or took too long. The message says which."""


@dataclass
class Started:
    """A process that the supervisor started: its name in words, its handle, and the file with its output.

    `read_last_log_lines` joins the last QUOTED_LINES lines that are not empty, 600 characters at most; it raises
    OSError for a process in the foreground, which has no log.
    """

    name: str
    handle: subprocess.Popen[bytes]
    log: Path
    # the process may end by itself, with status 0
    ends_by_itself: bool = False

    @property
    def is_running(self) -> bool:
        return self.handle.poll() is None

    def read_last_log_lines(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-QUOTED_LINES:])[-600:]


class Supervisor:
    """Starts, watches and ends processes. Their logs are in the folder `logs`, and each gets `environment`."""

    def __init__(self, logs: Path, *, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = dict(environment)
        self._started: list[Started] = []
        logs.mkdir(parents=True, exist_ok=True)
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN)], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        ends_by_itself: bool = False,
    ) -> Started:
        """Start a process whose output goes to NAME.log. An earlier log is moved to NAME.log.1.

        `environment`: variables beside the supervisor's. `ends_by_itself`: the process may end with status 0.
        """
        log = self._logs / f"{name}.log"
        if log.exists():
            log.replace(log.with_name(f"{name}.log.1"))
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600), "wb") as output:
            handle = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment | dict(environment or {}),
                start_new_session=True,
            )
        started = Started(name, handle, log, ends_by_itself)
        self._note_group(f"+{handle.pid}\n")
        self._started.append(started)
        return started

    def raise_if_ended(self, *, except_for: Started | None = None) -> None:
        """Raise ProcessEndedError, with the last lines of the log, if a process other than `except_for` has ended.

        A process that `ends_by_itself` may have ended with status 0. This also empties logs of more than MAX_LOG_BYTES,
        after copying them to NAME.log.1.
        """
        for started in self._started:
            _rotate_long_log(started.log)
            has_succeeded = started.ends_by_itself and started.handle.poll() == 0
            if started is except_for or started.is_running or has_succeeded:
                continue
            output = NO_LOG
            if started.log.exists():
                output = f": {started.read_last_log_lines() or 'it said nothing'} (all of it: {started.log})"
            raise ProcessEndedError(f"The {started.name} process ended with status {started.handle.returncode}{output}")

    def start_in_foreground(self, argv: Sequence[str], *, environment: Mapping[str, str]) -> Started:
        """Start a process whose output goes to this terminal. Ctrl-C reaches only the supervisor."""
        handle = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, env=self._environment | dict(environment), process_group=0
        )
        self._note_group(f"+{handle.pid}\n")
        started = Started("front", handle, self._logs / "none")
        self._started.append(started)
        return started

    def wait_until_done(self, started: Started, *, timeout_s: float) -> None:
        """Wait until a process has ended, and stop watching it.

        Raises ProcessEndedError if it ends with another status than 0, or still runs after `timeout_s` seconds.
        """
        try:
            status = started.handle.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessEndedError(f"The {started.name} process did not end within {timeout_s:.0f} s.") from None
        if status != 0:
            self.raise_if_ended()
        self._forget(started)

    def wait_in_foreground(self, started: Started) -> int:
        """Wait, without a limit, until a process in the foreground has ended. Return its exit status."""
        status = started.handle.wait()
        self._forget(started)
        return status

    def stop(self, *, grace_s: float = GRACE_S) -> None:
        """End all processes, the last started first, and kill those that still run after `grace_s` seconds."""
        # so that a second Ctrl-C does not leave some of them running
        interrupt_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for started in reversed(self._started):
                _signal_group(started.handle.pid, signal.SIGTERM)
                # one after another, so that the node can still sign off at the gateway
                _wait(started.handle, GRACE_OF_EACH_S)
            deadline = time.monotonic() + grace_s
            for started in reversed(self._started):
                _wait(started.handle, max(0.0, deadline - time.monotonic()))
            for started in list(self._started):
                # the whole group, because the process may have left children
                _signal_group(started.handle.pid, signal.SIGKILL)
                started.handle.wait()
                self._forget(started)
            with contextlib.suppress(BrokenPipeError):
                _pipe(self._guardian.stdin).close()
            self._guardian.wait()
        finally:
            signal.signal(signal.SIGINT, interrupt_handler)

    def _forget(self, started: Started) -> None:
        self._started.remove(started)
        self._note_group(f"-{started.handle.pid}\n")

    def _note_group(self, line: str) -> None:
        pipe = _pipe(self._guardian.stdin)
        # if somebody has killed the guardian, it is not needed for `stop`
        with contextlib.suppress(BrokenPipeError):
            pipe.write(line)
            pipe.flush()


def _rotate_long_log(log: Path) -> None:
    """Copy a long log to NAME.log.1, and empty it. Its process goes on writing there (O_APPEND)."""
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _wait(handle: subprocess.Popen[bytes], timeout_s: float) -> None:
    try:
        handle.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return
