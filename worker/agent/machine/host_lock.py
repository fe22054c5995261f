"""One measurement per machine at a time, whoever owns the agents: a lock on one file of the whole host."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ENVIRONMENT_NAME = "ONNXFARM_HOST_LOCK"
TURN_S = 0.1
# the file lies where everybody may write: a link planted there is not followed
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


class BusyError(RuntimeError):
    """Another agent or a `bench` measures on this machine."""


def lock_path() -> Path:
    """$ONNXFARM_HOST_LOCK, else a file that every user of this host shares."""
    return Path(os.environ.get(ENVIRONMENT_NAME) or Path(tempfile.gettempdir()) / "onnxfarm-measuring.lock")


@contextlib.contextmanager
def measuring(*, patience_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Holds the machine. The lock ends with the process, however it ends.

    Raises BusyError when it is still taken after `patience_s` seconds or once `is_cancelled`.
    """
    descriptor = _opened(lock_path())
    try:
        deadline = time.monotonic() + patience_s
        while not _taken(descriptor):
            if is_cancelled() or time.monotonic() >= deadline:
                raise BusyError(f"Something else measures on this machine ({lock_path()} is locked).")
            time.sleep(TURN_S)
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


def _opened(path: Path) -> int:
    # reading is enough for a lock, so that a file made by another user serves too
    try:
        return os.open(path, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | FLAGS, 0o644)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
