"""One measurement per machine at a time, whoever owns the agents: a lock on one file of the whole host.

Who waits holds a ticket, a file beside the lock that is named by its arrival: a free machine is left to the earliest.
Tickets only order those who wait. What excludes is the lock, so that a program without a ticket does no harm, nor one
that died with its own: a ticket counts for FRESH_S after it was last touched. Who holds the lock is said as the kernel
tells it, in a sentence, and by what a node says of itself in a file beside the tickets: it counts while the process
that made it holds the lock.
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

import psutil

LOCKS = Path("/proc/locks")
BOOT = Path("/proc/sys/kernel/random/boot_id")
ENVIRONMENT_NAME = "ONNXFARM_HOST_LOCK"
TURN_S = 0.1
# whoever waits is told again after so long
REPORT_EVERY_S = 60.0
# a ticket that its holder has not touched for so long is nobody's: an agent that gave a block back is offered the next
# one within seconds
FRESH_S = 8.0
# the file lies where everybody may write: a link planted there is not followed
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
TURNS = "Measurements take turns by arrival: this one begins when its turn comes."
_NAME = re.compile(r"^[0-9]{20}-[0-9]+-[0-9]+$")
_numbers = itertools.count()

Activity = Literal["measuring", "testing itself", "trying what it can run"]
MAX_ANNOUNCED, MAX_NAME = 200, 64
# how far a file's time may lie before the start of the process that made it, which the kernel rounds
CLOCKS_S = 1.0


class _ThisProcess:
    """What this process is called where it has the machine; empty where its command line says enough."""

    name = ""


def set_process_name(name: str) -> None:
    """Say what this process, a node, is called, for whoever waits for it."""
    _ThisProcess.name = name


class Ticket:
    """A place in the order of arrival at the machine. It is kept while its holder comes back for it soon."""

    def __init__(self) -> None:
        self._folder = _find_tickets_folder()
        self._name_program, self._touched_s = "", 0.0

    def is_next(self) -> bool:
        """Say whether nobody who still waits came earlier, as far as tickets can be read."""
        try:
            names = [path for path in self._folder.iterdir() if _NAME.match(path.name)]
        except OSError:
            return True
        return not any(_is_fresh(path) for path in names if not self._name_program or path.name < self._name_program)

    def touch(self) -> None:
        """Say that the holder still waits. It keeps its place, unless it has not said so for FRESH_S seconds."""
        now_s = time.monotonic()
        if not self._name_program or now_s - self._touched_s >= FRESH_S:
            self.leave()
            # of one clock for all processes of a machine, which no change of the time of day moves
            self._name_program = f"{time.monotonic_ns():020}-{os.getpid()}-{next(_numbers)}"
        self._touched_s = now_s
        with contextlib.suppress(OSError):
            self._show()

    def leave(self) -> None:
        if self._name_program:
            with contextlib.suppress(OSError):
                (self._folder / self._name_program).unlink(missing_ok=True)
            self._name_program = ""

    def _show(self) -> None:
        with _open_tickets() as folder:
            os.close(os.open(self._name_program, FLAGS | os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder))
            os.utime(self._name_program, dir_fd=folder, follow_symlinks=False)


def _find_tickets_folder() -> Path:
    return find_lock_path().with_name(f"{find_lock_path().name}.tickets")


@contextlib.contextmanager
def _open_tickets() -> Iterator[int]:
    with contextlib.suppress(FileExistsError):
        _find_tickets_folder().mkdir(parents=True)
        # everybody who measures here waits in it, and removes what is their own
        _find_tickets_folder().chmod(0o1777)
    # a link that was planted as the folder is not followed
    folder = os.open(_find_tickets_folder(), FLAGS | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _announce(doing: Activity) -> Iterator[None]:
    """Write a file that says who has the machine, and for what, and remove it after the `with`."""
    if not _ThisProcess.name:
        yield
        return
    name = f"{os.getpid()}.holder"
    with contextlib.suppress(OSError), _open_tickets() as folder:
        with contextlib.suppress(FileNotFoundError):
            # what another process of this number left, or somebody planted
            os.unlink(name, dir_fd=folder)
        file = os.open(name, FLAGS | os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(f"{doing}\n{_ThisProcess.name}")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            (_find_tickets_folder() / name).unlink()


def _read_announcement(holder: psutil.Process) -> tuple[str, str] | None:
    """Read the name and activity that a process wrote itself; None where it wrote none, or somebody else did."""
    try:
        with _open_tickets() as folder:
            # a pipe that was planted keeps nobody waiting
            file = os.open(f"{holder.pid}.holder", os.O_RDONLY | os.O_NONBLOCK | FLAGS, dir_fd=folder)
        with os.fdopen(file, "rb") as stream:
            status = os.fstat(file)
            is_own = status.st_uid == holder.uids().effective and status.st_mtime >= holder.create_time() - CLOCKS_S
            text = stream.read(MAX_ANNOUNCED) if is_own and stat.S_ISREG(status.st_mode) else b""
    except (OSError, psutil.Error):
        return None
    doing, _, name = text.decode(errors="replace").partition("\n")
    is_name = name.strip() and name.isprintable() and len(name) <= MAX_NAME
    return (name, doing) if is_name and doing in get_args(Activity) else None


def _is_fresh(path: Path) -> bool:
    """Say whether its holder has touched it just now; the clock may have gone back since."""
    try:
        return 0 <= time.time() - path.lstat().st_mtime + TURN_S < FRESH_S
    except OSError:
        return False


def describe_holder(descriptor: int, *, locks: Path = LOCKS) -> str:
    """Say in two sentences who holds the lock of this open file, since when, and what happens next."""
    holder = _find_holder(descriptor, locks=locks)
    if holder is None:
        return f"Another program is measuring on this machine. {TURNS}"
    if holder.pid == os.getpid():
        return "This node is testing what else its machine can run, which takes a minute at most."
    since = datetime.fromtimestamp(_find_since(descriptor, holder)).astimezone()
    name, doing = _read_announcement(holder) or (_name_program(holder), "measuring")
    return f"{name} (process {holder.pid}) has been {doing} on this machine since {since:%H:%M:%S}. {TURNS}"


def _find_holder(descriptor: int, *, locks: Path) -> psutil.Process | None:
    """Find the process that holds the lock; None where the kernel does not tell, as for another container's."""
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


def _find_since(descriptor: int, holder: psutil.Process) -> float:
    """Whoever takes the lock touches its file; of another user's file the start of the process is all that is known."""
    touched, started = os.fstat(descriptor).st_mtime, holder.create_time()
    return touched if started <= touched <= time.time() else started


def _name_program(holder: psutil.Process) -> str:
    """Return what people know the process by, and not its arguments, which may be private."""
    try:
        words = [os.path.basename(word) for word in holder.cmdline()]
    except psutil.Error:
        words = []
    if "worker.node" in words or ("onnxfarm" in words and "node" in words):
        return "An agent of a farm"
    for command in ("bench", "gate", "compare", "find", "sweep", "bisect", "evaluate", "diverge", "conformance"):
        if command in words:
            return f"`onnxfarm {command}`"
    return "Another program"


class BusyError(RuntimeError):
    """Another agent or a `bench` measures on this machine."""


def find_lock_path() -> Path:
    return Path(os.environ.get(ENVIRONMENT_NAME) or Path(tempfile.gettempdir()) / "onnxfarm-measuring.lock")


def compute_host_id() -> str:
    """Compute the id of the host, 16 hexadecimal digits, which is the same for all who share the lock alone.

    It is empty where it cannot be told. The lock file is made where there is none.
    """
    try:
        os.close(_open_lock_file(find_lock_path()))
        # another kernel has another boot, and an inode is the same through every container's mount of it
        named = f"{BOOT.read_text().strip()} {find_lock_path().stat().st_ino}"
    except OSError:
        return ""
    return hashlib.sha256(f"onnxfarm host {named}".encode()).hexdigest()[:16]


@contextlib.contextmanager
def hold_machine(
    *,
    patience_s: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    on_wait: Callable[[str], None] = lambda sentence: None,
    ticket: Ticket | None = None,
    doing: Activity = "measuring",
) -> Iterator[None]:
    """Wait for the machine and hold it inside the `with`; a process that dies lets it go.

    `on_wait` is called with a sentence about who holds it, at once and every minute while this waits. `ticket`: the
    place of a caller that comes again soon after a BusyError. Raises BusyError when the machine is still taken after
    `patience_s` seconds, or once `is_cancelled`.
    """
    descriptor = _open_lock_file(find_lock_path())
    place = ticket or Ticket()
    try:
        try:
            _wait_for_machine(descriptor, place, patience_s=patience_s, is_cancelled=is_cancelled, on_wait=on_wait)
        finally:
            # whoever brought a ticket comes back with it unless the machine is theirs
            if ticket is None:
                place.leave()
        place.leave()
        with contextlib.suppress(OSError):  # another user's file: then nobody knows since when it is held
            os.utime(descriptor)
        with _announce(doing):
            yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def try_to_hold_machine(
    *, patience_s: float, is_cancelled: Callable[[], bool] = lambda: False, doing: Activity = "trying what it can run"
) -> Iterator[bool]:
    """Hold the machine if it is free within `patience_s` seconds, and go on without it otherwise; yield which."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold_machine(patience_s=patience_s, is_cancelled=is_cancelled, doing=doing))
        except BusyError:
            yield False
        else:
            yield True


def _wait_for_machine(
    descriptor: int,
    place: Ticket,
    *,
    patience_s: float,
    is_cancelled: Callable[[], bool],
    on_wait: Callable[[str], None],
) -> None:
    deadline, report_at = time.monotonic() + patience_s, time.monotonic()
    while not (place.is_next() and _try_lock(descriptor)):
        now = time.monotonic()
        if is_cancelled() or now >= deadline:
            raise BusyError(f"{describe_holder(descriptor)} ({find_lock_path()} is locked.)")
        place.touch()
        if now >= report_at:
            on_wait(describe_holder(descriptor))
            report_at = now + REPORT_EVERY_S
        time.sleep(TURN_S)


def _open_lock_file(path: Path) -> int:
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


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
