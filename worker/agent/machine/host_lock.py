"""Lets one program of any user measure on this machine at a time, by a lock on one file of the host.

A program that waits has a ticket, a file next to the lock, named by its time of arrival. The earliest gets the
machine. Tickets only order those who wait, and only the lock excludes. So a program without a ticket does no harm, and
the ticket of a dead one counts only for FRESH_S after it was last touched. The kernel says which process holds the
lock; a node also writes its name and activity into a file next to the tickets.
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
POLL_S = 0.1
# how often a waiting program reports who holds the machine
REPORT_EVERY_S = 60.0
# a ticket that was not touched for this long is ignored; an agent that gave a block back is offered another in seconds
FRESH_S = 8.0
# everybody may write in the folder of the lock, so links there are not followed
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
TURNS = "Measurements take turns by arrival: this one begins when its turn comes."
_NAME = re.compile(r"^[0-9]{20}-[0-9]+-[0-9]+$")
_numbers = itertools.count()

Activity = Literal["measuring", "testing itself", "trying what it can run"]
MAX_ANNOUNCED, MAX_NAME = 200, 64
# a file may seem older than the process that made it by this much, because the kernel rounds
CLOCK_SLACK_S = 1.0


class _ThisProcess:
    """The name of this process for others that wait for the machine; if it is empty, they see its program's name."""

    name = ""


def set_process_name(name: str) -> None:
    """Set the name by which other programs know this node while they wait for the machine that it holds."""
    _ThisProcess.name = name


class Ticket:
    """A place in the order of arrival, which the first `touch` takes and `withdraw` gives up.

    Its holder keeps the place by touching the ticket at least every FRESH_S seconds.
    """

    def __init__(self) -> None:
        self._folder = _find_tickets_folder()
        self._file_name, self._touched_s = "", 0.0

    def is_next(self) -> bool:
        """Say whether no fresh ticket is older than this one, as far as tickets can be read.

        A ticket that was not touched yet has no place, and comes after all fresh ones.
        """
        try:
            tickets = [path for path in self._folder.iterdir() if _NAME.match(path.name)]
        except OSError:
            return True
        return not any(_is_fresh(path) for path in tickets if not self._file_name or path.name < self._file_name)

    def touch(self) -> None:
        """Keep the place. A ticket that was not touched for FRESH_S seconds gets a new place, as the last one."""
        now_s = time.monotonic()
        if not self._file_name or now_s - self._touched_s >= FRESH_S:
            self.withdraw()
            # all processes of a machine share the monotonic clock
            self._file_name = f"{time.monotonic_ns():020}-{os.getpid()}-{next(_numbers)}"
        self._touched_s = now_s
        with contextlib.suppress(OSError):
            self._show()

    def withdraw(self) -> None:
        if self._file_name:
            with contextlib.suppress(OSError):
                (self._folder / self._file_name).unlink(missing_ok=True)
            self._file_name = ""

    def _show(self) -> None:
        with _open_tickets() as folder:
            os.close(os.open(self._file_name, FLAGS | os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder))
            os.utime(self._file_name, dir_fd=folder, follow_symlinks=False)


def _find_tickets_folder() -> Path:
    return find_lock_path().with_name(f"{find_lock_path().name}.tickets")


@contextlib.contextmanager
def _open_tickets() -> Iterator[int]:
    with contextlib.suppress(FileExistsError):
        _find_tickets_folder().mkdir(parents=True)
        # everybody may write there, and remove their own files
        _find_tickets_folder().chmod(0o1777)
    # a link in place of the folder is not followed
    folder = os.open(_find_tickets_folder(), FLAGS | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _announce(doing: Activity) -> Iterator[None]:
    """Write a file with this process's name and activity, and remove it after the `with`."""
    if not _ThisProcess.name:
        yield
        return
    name = f"{os.getpid()}.holder"
    with contextlib.suppress(OSError), _open_tickets() as folder:
        with contextlib.suppress(FileNotFoundError):
            # remove a file of an earlier process with this id, or one that somebody else made
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
    """Read the name and activity that a process wrote; None where it wrote none, or where another user did."""
    try:
        with _open_tickets() as folder:
            # O_NONBLOCK: opening a pipe that somebody put there must not block
            file = os.open(f"{holder.pid}.holder", os.O_RDONLY | os.O_NONBLOCK | FLAGS, dir_fd=folder)
        with os.fdopen(file, "rb") as stream:
            status = os.fstat(file)
            is_holders = status.st_uid == holder.uids().effective
            is_recent = status.st_mtime >= holder.create_time() - CLOCK_SLACK_S
            text = stream.read(MAX_ANNOUNCED) if is_holders and is_recent and stat.S_ISREG(status.st_mode) else b""
    except (OSError, psutil.Error):
        return None
    doing, _, name = text.decode(errors="replace").partition("\n")
    is_name = name.strip() and name.isprintable() and len(name) <= MAX_NAME
    return (name, doing) if is_name and doing in get_args(Activity) else None


def _is_fresh(path: Path) -> bool:
    """Say whether the ticket was touched within FRESH_S. A time in the future, after the clock was set back, is not."""
    try:
        return 0 <= time.time() - path.lstat().st_mtime + POLL_S < FRESH_S
    except OSError:
        return False


def describe_holder(descriptor: int, *, locks: Path = LOCKS) -> str:
    """Say in one or two sentences who holds the lock of this open file, since when, and what happens next.

    For this process itself, the sentence is that it is testing what else the machine can run.
    """
    holder = _find_holder(descriptor, locks=locks)
    if holder is None:
        return f"Another program is measuring on this machine. {TURNS}"
    if holder.pid == os.getpid():
        return "This node is testing what else its machine can run, which takes a minute at most."
    since = datetime.fromtimestamp(_find_start_time(descriptor, holder)).astimezone()
    name, doing = _read_announcement(holder) or (_name_program(holder), "measuring")
    return f"{name} (process {holder.pid}) has been {doing} on this machine since {since:%H:%M:%S}. {TURNS}"


def _find_holder(descriptor: int, *, locks: Path) -> psutil.Process | None:
    """Find the process that holds the lock; None where the kernel does not tell, as with other containers."""
    # compare the inode alone, because layered file systems have several device numbers
    inode = str(os.fstat(descriptor).st_ino)
    try:
        for line in locks.read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF; the line of a waiting process has "->" after its number
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return psutil.Process(int(words[4]))
    except (OSError, ValueError, psutil.Error):
        return None
    return None


def _find_start_time(descriptor: int, holder: psutil.Process) -> float:
    """Return when the holder took the lock, by the file's time; where it could not set that, when its process began."""
    touched, started = os.fstat(descriptor).st_mtime, holder.create_time()
    return touched if started <= touched <= time.time() else started


def _name_program(holder: psutil.Process) -> str:
    """Name the program of a process, without its arguments, which may be private."""
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
    """Another program measures on this machine."""


def find_lock_path() -> Path:
    """Return the path of the host's lock file: that of $ONNXFARM_HOST_LOCK, or one in the temporary folder."""
    return Path(os.environ.get(ENVIRONMENT_NAME) or Path(tempfile.gettempdir()) / "onnxfarm-measuring.lock")


def compute_host_id() -> str:
    """Compute an id of 16 hexadecimal digits, the same for all programs that share the host's lock.

    It changes with each boot. It is empty where the lock file or the id of the boot cannot be read. A missing lock file
    is created.
    """
    try:
        os.close(_open_lock_file(find_lock_path()))
        # each kernel has its own boot id, and the inode is the same in all containers that mount the file
        boot_and_inode = f"{BOOT.read_text().strip()} {find_lock_path().stat().st_ino}"
    except OSError:
        return ""
    return hashlib.sha256(f"onnxfarm host {boot_and_inode}".encode()).hexdigest()[:16]


@contextlib.contextmanager
def hold_machine(
    *,
    patience_s: float,
    is_cancelled: Callable[[], bool] = lambda: False,
    on_wait: Callable[[str], None] = lambda sentence: None,
    ticket: Ticket | None = None,
    doing: Activity = "measuring",
) -> Iterator[None]:
    """Wait for the machine, and hold it inside the `with`. A process that dies releases it.

    `on_wait` is called with a sentence about the holder, at once and every minute of the wait. `ticket`: the place of a
    caller that tries again soon after a BusyError. Raises BusyError when the machine is still held after `patience_s`
    seconds, or once `is_cancelled` is true; a machine that is free and that nobody waits for is taken even then. Raises
    OSError where the lock file cannot be opened.
    """
    descriptor = _open_lock_file(find_lock_path())
    place = ticket or Ticket()
    try:
        try:
            _wait_for_machine(descriptor, place, patience_s=patience_s, is_cancelled=is_cancelled, on_wait=on_wait)
        finally:
            # a caller's own ticket is kept for its next try
            if ticket is None:
                place.withdraw()
        place.withdraw()
        with contextlib.suppress(OSError):  # it is another user's file, and its time stays
            os.utime(descriptor)
        with _announce(doing):
            yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def try_to_hold_machine(
    *, patience_s: float, is_cancelled: Callable[[], bool] = lambda: False, doing: Activity = "trying what it can run"
) -> Iterator[bool]:
    """Hold the machine if it is free within `patience_s` seconds, else go on without it. Yield whether it is held.

    A wait that is cancelled goes on without it, too. Raises OSError where the lock file cannot be opened.
    """
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
        time.sleep(POLL_S)


def _open_lock_file(path: Path) -> int:
    # a lock needs no more than reading, so the file may be another user's
    try:
        return os.open(path, os.O_RDONLY | FLAGS)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | FLAGS, 0o644)
        # all users of this machine have to read it, whatever this process's umask is
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o644)
        return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
