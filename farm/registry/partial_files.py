"""Files that arrive in pieces, on the disk: `partial/<key>` holds the bytes, `partial/<key>.writer` their writer.

A thread of the farm may still read from a connection that was cut. So each request first puts a random token into the
writer's file. It writes each chunk under a lock of that file, and only while its token is still there. The newest
request can always continue, and older ones can no longer write.

`partial_path` returns a path whether or not it exists. `remove_partial` does nothing where the files are gone.
"""

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from farm.base.refusals import Conflict, Missing, NoSpace
from farm.registry.storage import NO_SPACE, NO_SPACE_HINT

TOKEN_BYTES: Final = 16
# in place of a token: no request may write
CLOSED: Final = b"-" * TOKEN_BYTES


def partial_dir() -> Path:
    return Path(settings.STORE_DIR) / "partial"


def partial_path(key: str) -> Path:
    return partial_dir() / key


def create_partial(key: str) -> None:
    """Create the two empty files of a new upload. Raises NoSpace when the disk is full."""
    partial_dir().mkdir(parents=True, exist_ok=True)
    with _refuse_full_disk():
        partial_path(key).touch(mode=0o600)
        _writer_path(key).touch(mode=0o600)


def remove_partial(key: str) -> None:
    partial_path(key).unlink(missing_ok=True)
    _writer_path(key).unlink(missing_ok=True)


def refuse_writers(key: str) -> None:
    """Refuse all writers of an upload, also those that have begun, until `accept_writers` is called.

    Raises Missing where the upload's files are gone.
    """
    with _lock(key) as writer:
        os.pwrite(writer, CLOSED, 0)


def accept_writers(key: str) -> None:
    """Let new writers begin after `refuse_writers`; writers that had begun before stay refused.

    Nothing happens where the upload's files are gone.
    """
    with contextlib.suppress(Missing), _lock(key) as writer:
        os.pwrite(writer, secrets.token_bytes(TOKEN_BYTES), 0)


class PieceWriter:
    """Writes the piece of one request at `offset`, and takes over from any request that wrote before.

    The constructor cuts off all bytes beyond `offset`. It raises Missing where the files are gone, and Conflict where
    the upload is being completed. `write` and `sync` raise Missing where the files are gone, Conflict where another
    request took over or the upload is being completed, and NoSpace where the disk is full. `bytes` counts the bytes
    written so far.
    """

    def __init__(self, key: str, *, offset: int) -> None:
        self.key = key
        self.start = offset
        self.bytes = 0
        self._token = secrets.token_bytes(TOKEN_BYTES)
        with _lock(key) as writer:
            if os.pread(writer, TOKEN_BYTES, 0) == CLOSED:
                raise Conflict("This upload is being completed; nothing can be added to it.", code="closed")
            os.pwrite(writer, self._token, 0)
            self._cut_at_start()

    def write(self, chunks: Iterable[bytes]) -> None:
        """Append chunks. If the iterator ends early or raises, the chunks before that stay written."""
        with _open_partial(partial_path(self.key)) as file:
            for chunk in chunks:
                unwritten = memoryview(chunk)
                with self._lock_own_piece(), _refuse_full_disk():
                    while unwritten:
                        count = os.pwrite(file, unwritten, self.start + self.bytes)
                        self.bytes += count
                        unwritten = unwritten[count:]

    def sync(self) -> int:
        """Force the piece to the disk; return the new offset of the upload."""
        with self._lock_own_piece(), _open_partial(partial_path(self.key)) as file, _refuse_full_disk():
            os.fsync(file)
        return self.start + self.bytes

    def undo(self) -> None:
        """Cut the piece off again. Nothing happens where the files are gone or another request took over."""
        with contextlib.suppress(Conflict, Missing), self._lock_own_piece():
            self._cut_at_start()

    def _cut_at_start(self) -> None:
        with _open_partial(partial_path(self.key)) as file:
            os.ftruncate(file, self.start)

    @contextlib.contextmanager
    def _lock_own_piece(self) -> Iterator[None]:
        """Lock the writer's file. Raises Conflict where another request wrote its token there."""
        with _lock(self.key) as writer:
            if os.pread(writer, TOKEN_BYTES, 0) != self._token:
                raise Conflict(
                    "Another request has taken this upload over; ask for its offset and go on from there.",
                    code="taken_over",
                )
            yield


def _writer_path(key: str) -> Path:
    return partial_dir() / f"{key}.writer"


@contextlib.contextmanager
def _lock(key: str) -> Iterator[int]:
    """Lock the writer's file. Raises Missing where it is gone."""
    with _open_partial(_writer_path(key)) as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        yield writer


@contextlib.contextmanager
def _open_partial(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        raise Missing("The bytes of this upload are gone; start it again.") from None
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _refuse_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(NO_SPACE, hint=NO_SPACE_HINT) from problem
        raise
