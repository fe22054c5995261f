"""Files that arrive in pieces, on the disk: `partial/<key>` holds the bytes, `partial/<key>.writer` who writes.

A connection that was cut may still be read by a thread of the farm that does not know it yet. So each request that
writes first puts a word of its own into the writer's file, and every chunk is written under that file's lock, only
while the word is still there: whoever comes last goes on, and whoever came before can do no harm any more.
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

WORD_BYTES: Final = 16
CLOSED: Final = b"-" * WORD_BYTES


def partial_dir() -> Path:
    return Path(settings.STORE_DIR) / "partial"


def partial_path(key: str) -> Path:
    return partial_dir() / key


def create_partial(key: str) -> None:
    """An empty file for a new upload."""
    partial_dir().mkdir(parents=True, exist_ok=True)
    with _refusing_full_disk():
        partial_path(key).touch(mode=0o600)
        _writer_of(key).touch(mode=0o600)


def remove_partial(key: str) -> None:
    partial_path(key).unlink(missing_ok=True)
    _writer_of(key).unlink(missing_ok=True)


def close_to_writers(key: str) -> None:
    with _locked(key) as writer:
        os.pwrite(writer, CLOSED, 0)


def reopen_to_writers(key: str) -> None:
    with contextlib.suppress(Missing), _locked(key) as writer:
        os.pwrite(writer, secrets.token_bytes(WORD_BYTES), 0)


class Piece:
    """One request's turn at writing: takes over from whoever wrote before, at `offset`.

    Every method raises Missing when the files are gone, Conflict when the upload was closed or another request took
    over, and NoSpace when the disk is full.
    """

    def __init__(self, key: str, *, offset: int) -> None:
        self.key = key
        self.start = offset
        self.bytes = 0
        self._word = secrets.token_bytes(WORD_BYTES)
        with _locked(key) as writer:
            if os.pread(writer, WORD_BYTES, 0) == CLOSED:
                raise Conflict("This upload is being completed; nothing can be added to it.", code="closed")
            os.pwrite(writer, self._word, 0)
            os.truncate(partial_path(key), offset)

    def write(self, chunks: Iterable[bytes]) -> None:
        """Append chunks; what was written stays when the chunks end early or raise."""
        with _opened(partial_path(self.key)) as file:
            for chunk in chunks:
                with self._turn(), _refusing_full_disk():
                    _write_all(file, chunk, at=self.start + self.bytes)
                self.bytes += len(chunk)

    def keep(self) -> int:
        """Force the piece to the disk; answers the new offset."""
        with self._turn(), _opened(partial_path(self.key)) as file, _refusing_full_disk():
            os.fsync(file)
        return self.start + self.bytes

    def drop(self) -> None:
        with contextlib.suppress(Conflict, Missing), self._turn():
            os.truncate(partial_path(self.key), self.start)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        with _locked(self.key) as writer:
            if os.pread(writer, WORD_BYTES, 0) != self._word:
                raise Conflict(
                    "Another request has taken this upload over; ask for its offset and go on from there.",
                    code="taken_over",
                )
            yield


def _writer_of(key: str) -> Path:
    return partial_dir() / f"{key}.writer"


@contextlib.contextmanager
def _locked(key: str) -> Iterator[int]:
    """The writer's file, held for as long as one chunk takes."""
    with _opened(_writer_of(key)) as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        yield writer


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        raise Missing("The bytes of this upload are gone; start it again.") from None
    try:
        yield handle
    finally:
        os.close(handle)


def _write_all(file: int, chunk: bytes, *, at: int) -> None:
    view = memoryview(chunk)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


@contextlib.contextmanager
def _refusing_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(NO_SPACE, hint=NO_SPACE_HINT) from problem
        raise
