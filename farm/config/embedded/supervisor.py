"""Starts the processes of a farm on one machine, and ends every one of them even when it is killed itself.

Each process has its own session and process group, so that Ctrl-C reaches the supervisor alone, which ends the others
in the reverse order of their start. A guardian does the same when the supervisor is killed.
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
# how long a process may take to end by itself, in seconds
GRACE_S = 10.0
TURN_OF_EACH_S = 1.5
TURN_S = 0.02
MAX_LOG_BYTES = 10 * 1024**2
WORDS_LINES = 3
# the end of the sentence about a process in the foreground, which has no log
NO_LOG = "; what it said stands above."


class ProcessEndedError(RuntimeError):
    """A process of the farm ended although it should run on, failed, or took too long; the message says which."""


@dataclass
class Started:
    """A process that was started: its name in words, its handle and the file that holds its output."""

    name: str
    handle: subprocess.Popen[bytes]
    log: Path
    # whether the process is meant to end by itself, with status 0
    ends_by_itself: bool = False

    @property
    def is_running(self) -> bool:
        return self.handle.poll() is None

    def read_last_log_lines(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-WORDS_LINES:])[-600:]


class Supervisor:
    """Starts, watches and ends processes whose logs lie in one folder; each gets `environment`."""

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
        """Start a process whose output goes to NAME.log; the log of the start before is moved to NAME.log.1.

        The process gets `environment` beside the supervisor's. With `ends_by_itself` it may end with status 0.
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
        """Raise ProcessEndedError, with the last lines of its log, where a process but `except_for` has ended.

        A process with `ends_by_itself` may have ended with status 0. Logs that grew too long are emptied here, after a
        copy to NAME.log.1.
        """
        for started in self._started:
            _rotate_long_log(started.log)
            ended_well = started.ends_by_itself and started.handle.poll() == 0
            if started is not except_for and not started.is_running and not ended_well:
                output = NO_LOG
                if started.log.exists():
                    output = f": {started.read_last_log_lines() or 'it said nothing'} (all of it: {started.log})"
                text = f"The {started.name} process ended with status {started.handle.returncode}{output}"
                raise ProcessEndedError(text)

    def start_in_foreground(self, argv: Sequence[str], *, environment: Mapping[str, str]) -> Started:
        """Start a process whose output goes to this terminal; Ctrl-C still reaches the supervisor alone."""
        handle = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, env=self._environment | dict(environment), process_group=0
        )
        self._note_group(f"+{handle.pid}\n")
        started = Started("front", handle, self._logs / "none")
        self._started.append(started)
        return started

    def wait_until_done(self, started: Started, *, timeout_s: float) -> None:
        """Wait for a process that is meant to end, and watch it no longer.

        Raises ProcessEndedError where it ended with a status other than 0, or still runs after `timeout_s` seconds.
        """
        try:
            status = started.handle.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ProcessEndedError(f"The {started.name} process did not end within {timeout_s:.0f} s.") from None
        if status != 0:
            self.raise_if_ended()
        self._forget(started)

    def wait_in_foreground(self, started: Started) -> int:
        """Wait, without a limit, for a process that was started in the foreground; return its exit status."""
        status = started.handle.wait()
        self._forget(started)
        return status

    def stop(self, *, grace_s: float = GRACE_S) -> None:
        """End every process, the last started first; kill those that do not end within `grace_s` seconds."""
        # a second Ctrl-C does not leave half of them behind
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for started in reversed(self._started):
                _signal_group(started.handle.pid, signal.SIGTERM)
                # in turn, so that the node can still say goodbye to the gateway
                _wait(started.handle, TURN_OF_EACH_S)
            deadline = time.monotonic() + grace_s
            for started in reversed(self._started):
                _wait(started.handle, max(0.0, deadline - time.monotonic()))
            for started in list(self._started):
                # the group, since a killed process may leave children of its own
                _signal_group(started.handle.pid, signal.SIGKILL)
                started.handle.wait()
                self._forget(started)
            with contextlib.suppress(BrokenPipeError):
                _pipe(self._guardian.stdin).close()
            self._guardian.wait()
        finally:
            signal.signal(signal.SIGINT, interrupt)

    def _forget(self, started: Started) -> None:
        self._started.remove(started)
        self._note_group(f"-{started.handle.pid}\n")

    def _note_group(self, line: str) -> None:
        pipe = _pipe(self._guardian.stdin)
        with contextlib.suppress(BrokenPipeError):  # somebody killed the guardian; `stop` does without it
            pipe.write(line)
            pipe.flush()


def _rotate_long_log(log: Path) -> None:
    """Copy a long log to NAME.log.1 and empty it; its process goes on writing at its end (O_APPEND)."""
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
