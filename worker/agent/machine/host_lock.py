"""One measurement per machine at a time, whoever owns the agents: a lock on one file of the whole host."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from worker.agent.machine import holders

ENVIRONMENT_NAME = "ONNXFARM_HOST_LOCK"
TURN_S = 0.1
# whoever waits is told again after so long
SAY_EVERY_S = 5.0
# the file lies where everybody may write: a link planted there is not followed
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


class BusyError(RuntimeError):
    """Another agent or a `bench` measures on this machine."""


def lock_path() -> Path:
    """$ONNXFARM_HOST_LOCK, else a file that every user of this host shares."""
    return Path(os.environ.get(ENVIRONMENT_NAME) or Path(tempfile.gettempdir()) / "onnxfarm-measuring.lock")


@contextlib.contextmanager
def measuring(
    *,
    patience_s: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    on_wait: Callable[[str], None] = lambda sentence: None,
) -> Iterator[None]:
    """Holds the machine. The lock ends with the process, however it ends.

    `on_wait` is told who holds it, at once and every few seconds while one waits. Raises BusyError when it is still
    taken after `patience_s` seconds or once `is_cancelled`.
    """
    descriptor = _opened(lock_path())
    try:
        _wait_for(descriptor, patience_s=patience_s, is_cancelled=is_cancelled, on_wait=on_wait)
        with contextlib.suppress(OSError):  # another user's file: then nobody knows since when it is held
            os.utime(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def preferably(*, patience_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """Holds the machine if it is to be had within `patience_s`, and goes on without it otherwise; gives which."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(measuring(patience_s=patience_s, is_cancelled=is_cancelled))
        except BusyError:
            yield False
        else:
            yield True


def _wait_for(
    descriptor: int, *, patience_s: float, is_cancelled: Callable[[], bool], on_wait: Callable[[str], None]
) -> None:
    deadline, says_at = time.monotonic() + patience_s, time.monotonic()
    while not _taken(descriptor):
        now = time.monotonic()
        if is_cancelled() or now >= deadline:
            raise BusyError(f"{holders.sentence(descriptor)} ({lock_path()} is locked.)")
        if now >= says_at:
            on_wait(holders.sentence(descriptor))
            says_at = now + SAY_EVERY_S
        time.sleep(TURN_S)


def _opened(path: Path) -> int:
    # reading is enough for a lock, so that a file made by another user serves too
    try:
        return os.open(path, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | FLAGS, 0o644)
        # agents of all users of this machine take turns by it, whatever an agent's own files are readable to
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o644)
        return descriptor


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
