"""One measurement per machine at a time, whoever owns the agents: a lock on one file of the whole host.

Who holds it is said as the kernel tells it, in a sentence.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import psutil

LOCKS = Path("/proc/locks")
ENVIRONMENT_NAME = "ONNXFARM_HOST_LOCK"
TURN_S = 0.1
# whoever waits is told again after so long
SAY_EVERY_S = 5.0
# the file lies where everybody may write: a link planted there is not followed
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


def sentence(descriptor: int, *, locks: Path = LOCKS) -> str:
    """Who holds the lock of this open file, since when, and what one can do."""
    holder = _holder(descriptor, locks=locks)
    if holder is None:
        return (
            "Another program is measuring on this machine. Measurements take turns: this one begins when that one ends."
        )
    if holder.pid == os.getpid():
        return "This node is testing what else its machine can run, which takes a minute at most."
    since = datetime.fromtimestamp(_since(descriptor, holder)).astimezone()
    return (
        f"{_name(holder)} (process {holder.pid}) has been measuring on this machine since {since:%H:%M:%S}. "
        f"Measurements take turns: this one begins when that one ends, or when you end it with `kill {holder.pid}`."
    )


def _holder(descriptor: int, *, locks: Path) -> psutil.Process | None:
    """None where the kernel does not tell, as outside Linux and for processes of another container."""
    # by its inode alone: layered file systems have other device numbers here and there
    inode = str(os.fstat(descriptor).st_ino)
    try:
        for line in locks.read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF; a line of somebody who waits has "->" after its number
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return psutil.Process(int(words[4]))
    except (OSError, ValueError, psutil.Error):
        return None
    return None


def _since(descriptor: int, holder: psutil.Process) -> float:
    """Whoever takes the lock touches its file; of another user's file the start of the process is all that is known."""
    touched, started = os.fstat(descriptor).st_mtime, holder.create_time()
    return touched if started <= touched <= time.time() else started


def _name(holder: psutil.Process) -> str:
    """What people know it by; not its arguments, which may hold what is nobody's business."""
    try:
        words = [os.path.basename(word) for word in holder.cmdline()]
    except psutil.Error:
        words = []
    if "worker.node" in words or ("onnxfarm" in words and "node" in words):
        return "An agent of a farm"
    for command in ("bench", "gate", "sweep", "bisect", "evaluate", "diverge", "conformance"):
        if command in words:
            return f"`onnxfarm {command}`"
    return "Another program"


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
            raise BusyError(f"{sentence(descriptor)} ({lock_path()} is locked.)")
        if now >= says_at:
            on_wait(sentence(descriptor))
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
