"""The content-addressed store: files below STORE_DIR, in a folder for each team, named by their sha256.

A file is written to `incoming/` and hashed at the same time, forced to disk, then renamed to `<team>/<aa>/<sha256>`. So
a file under its digest is always whole, and a crash leaves only drafts, which the sweep removes. `work_dir` and
`blob_path` return a path whether or not it exists.
"""

import errno
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Self, cast

from django.conf import settings

from farm.base.refusals import Away, NoSpace, TooLarge
from farm.registry import bucket
from farm.sandbox import plain_files

# drafts and files without a row are removed after this time
DRAFT_LIFE_S = 24 * 3600.0
COPY_BYTES = 1 << 20
# a draft checks the free space of the disk again after this many bytes
SPACE_CHECK_BYTES = 32 * 1024**2
# stands for the team of files that belong to no team; the ids of teams begin with 1
OF_THE_FARM = 0
NO_SPACE = "The farm's disk is full, so the upload was not kept."
NO_SPACE_HINT = "Free some space where the farm keeps its files, or ask its administrator, then upload again."


class Draft:
    """A file that is being written: `write` chunks, `seal` it once, then `keep` it in the store or `discard` it.

    `sha256` (hexadecimal) is empty until the draft is sealed; `bytes` is its size so far. `write` raises TooLarge
    beyond `limit_bytes` (None: the largest upload). `write`, `seal` and `keep` raise NoSpace where the disk is full.
    The draft is removed before either error.
    """

    def __init__(self, name: str, *, limit_bytes: int | None = None) -> None:
        handle, path = tempfile.mkstemp(dir=incoming_dir())
        self.name = name
        self.path = Path(path)
        self.bytes = 0
        self.sha256 = ""
        self.is_kept = False
        self.file: BinaryIO = os.fdopen(handle, "w+b", buffering=0)
        self._hash = hashlib.sha256()
        self._limit_bytes = settings.MAX_UPLOAD_BYTES if limit_bytes is None else limit_bytes

    @classmethod
    def link(cls, path: Path, *, name: str) -> Self:
        """Make a sealed draft by a hard link to a whole file on the store's file system; the file itself stays.

        Nothing is copied, but the whole file is read for its digest. Raises OSError where it cannot be linked.
        """
        draft = cls(name, limit_bytes=path.stat().st_size)
        draft.file.close()
        try:
            draft.path.unlink()
            os.link(path, draft.path)
            draft.file = cast(BinaryIO, draft.path.open("r+b", buffering=0))
            while chunk := draft.file.read(COPY_BYTES):
                draft._hash.update(chunk)
                draft.bytes += len(chunk)
        except OSError as problem:
            draft._fail(problem)
        draft.seal()
        return draft

    def write(self, chunk: bytes) -> None:
        """Append a chunk and hash it. Raises TooLarge over the limit and NoSpace; both errors remove the draft."""
        if self.bytes + len(chunk) > self._limit_bytes:
            self.discard()
            raise TooLarge(f"{self.name} is larger than the limit of {self._limit_bytes:,} bytes.", code="too_large")
        if self.bytes // SPACE_CHECK_BYTES != (self.bytes + len(chunk)) // SPACE_CHECK_BYTES:
            self._check_space()
        self._hash.update(chunk)
        try:
            view = memoryview(chunk)
            while view:
                view = view[self.file.write(view) :]
        except OSError as problem:
            self._fail(problem)
        self.bytes += len(chunk)

    def _check_space(self) -> None:
        """Remove the draft and raise NoSpace where the disk is full; other uploads fill it at the same time."""
        try:
            check_free_space()
        except NoSpace:
            self.discard()
            raise

    def seal(self) -> None:
        """Force the bytes to the disk and set `sha256`; the file can then be read from its beginning.

        Raises NoSpace, with the draft removed, where the disk is full.
        """
        try:
            os.fsync(self.file.fileno())
        except OSError as problem:
            self._fail(problem)
        self.sha256 = self._hash.hexdigest()
        self.file.seek(0)

    def keep(self, *, team_id: int) -> Path:
        """Move the sealed draft to its place in the store, upload it to the bucket if there is one, return its path.

        No row is written. Raises ValueError for a draft that is not sealed, NoSpace where the disk is full, and Away
        where the bucket does not answer; the draft is removed in the last two cases.
        """
        if not self.sha256:
            raise ValueError(f"{self.name} is kept before it is sealed")
        target = blob_path(team_id=team_id, sha256=self.sha256)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.path, target)
            _sync_folder(target.parent)
        except OSError as problem:
            self._fail(problem)
        try:
            bucket.upload_file(target, team_id=team_id, sha256=self.sha256)
        except Away:
            self.discard()
            raise
        self.is_kept = True
        return target

    def discard(self) -> None:
        """Close the file and remove it unless it was kept; it may be called again."""
        self.file.close()
        if not self.is_kept:
            self.path.unlink(missing_ok=True)

    def _fail(self, problem: OSError) -> None:
        self.discard()
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(NO_SPACE, hint=NO_SPACE_HINT) from problem
        raise problem


def copy_to_draft(path: Path, *, name: str | None = None) -> Draft:
    """Copy a file that a sandboxed child has made into a sealed draft.

    Raises NoSpace, also for a sparse file that is longer than the disk has room, and NotPlainFileError for a link or a
    pipe.
    """
    with plain_files.open_plain_file(path) as source:
        size = os.fstat(source.fileno()).st_size
        check_free_space(bytes_wanted=size)
        draft = Draft(name or path.name, limit_bytes=size)
        try:
            while chunk := source.read(COPY_BYTES):
                draft.write(chunk)
            draft.seal()
        except BaseException:
            draft.discard()
            raise
    return draft


def incoming_dir() -> Path:
    """Return the folder of drafts, which is created if it is missing; it is on the file system of the store."""
    folder = Path(settings.STORE_DIR) / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def work_dir() -> Path:
    return Path(settings.STORE_DIR) / "bench"


def blob_path(*, team_id: int, sha256: str) -> Path:
    return Path(settings.STORE_DIR) / str(team_id) / sha256[:2] / sha256


def fetch_blob(*, team_id: int, sha256: str) -> Path:
    """Return the path of a blob; a file that only the bucket has is downloaded first.

    The path has no file where neither the store nor the bucket has one. Raises Away where the bucket does not answer
    or its file is damaged.
    """
    path = blob_path(team_id=team_id, sha256=sha256)
    if not path.is_file():
        bucket.download_file(path, team_id=team_id, sha256=sha256, drafts=incoming_dir())
    return path


def check_free_space(*, bytes_wanted: int = 0) -> None:
    """Raise NoSpace where writing this many bytes would leave the store's disk with less than its reserve.

    With 0 bytes, raise it where the reserve is used up already.
    """
    folder = Path(settings.STORE_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free - bytes_wanted < settings.DISK_RESERVE_BYTES:
        raise NoSpace(
            f"The upload needs {bytes_wanted:,} bytes and the farm's disk has {free:,} free, of which "
            f"{settings.DISK_RESERVE_BYTES:,} are kept in reserve.",
            hint=NO_SPACE_HINT,
        )


def clear_leftovers(*, older_than_s: float = DRAFT_LIFE_S) -> int:
    """Remove drafts and work folders that a crash left behind; return how many.

    They count as left behind where nothing was changed in them for `older_than_s` seconds.
    """
    limit = time.time() - older_than_s
    folders = [folder for folder in (incoming_dir(), work_dir()) if folder.is_dir()]
    old = [path for folder in folders for path in folder.iterdir() if path.lstat().st_mtime < limit]
    for path in old:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(old)


def _sync_folder(folder: Path) -> None:
    """Force a folder to disk, so that a rename in it survives a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
