"""The cache of artifacts on this node: files by digest, within a size limit.

A file is checked against its digest when it is fetched, and when a process first uses it.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from farm.contract.blocks import BlockOrder
from farm.contract.cells import Bundle, FileRef
from farm.contract.reasons import Reason, ReasonCode

# _IOW(0x94, 9, int): lets a file share the blocks of another, if the file system can
FICLONE = 0x40049409
CHUNK_BYTES = 1 << 20
DEFAULT_LIMIT_BYTES = 20 << 30

# writes the file with this digest to this path; raises OSError or FetchError
Fetch = Callable[[str, Path], None]


class FetchError(Exception):
    """The file could not be fetched. The message says why."""


class ArtifactUnavailableError(Exception):
    """A file of an artifact is not available. `reason` is the reason that its cells get."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.reason = Reason(code=ReasonCode.ARTIFACT_UNAVAILABLE, text=text[:2000])


class ArtifactCache:
    """Files by sha256 in a folder. Beyond `limit_bytes`, the least recently used ones are deleted."""

    def __init__(self, folder: Path, *, fetch: Fetch, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.limit_bytes = limit_bytes
        self._fetch = fetch
        self._checked: dict[str, tuple[int, int, int]] = {}

    def provide_file(self, ref: FileRef, *, keep: Iterable[str] = ()) -> Path:
        """Return the path of the cached file, which is fetched if it is missing or damaged.

        `keep`: the digests of files that must not be deleted to make room. Raises ArtifactUnavailableError, and OSError
        where the cache's folder cannot be written.
        """
        path = self.folder / ref.sha256[:2] / ref.sha256
        if not self._is_good(path, ref):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room(ref.bytes, keep={ref.sha256, *keep})
            self._fetch_into_cache(path, ref)
        # reading a file does not always change its times
        os.utime(path)
        return path

    def copy_file_to(self, ref: FileRef, into: Path, *, name: str | None = None, keep: Iterable[str] = ()) -> Path:
        """Copy the file into a folder, under its own name or `name`, and return the path of the copy.

        It is not a link, because sandboxes and libraries refuse links. Raises ArtifactUnavailableError, and OSError
        where the copy cannot be written.
        """
        target = into / (name or ref.name)
        copy_file(self.provide_file(ref, keep=keep), target)
        return target

    def copy_bundle_to(self, bundle: Bundle, into: Path, *, keep: Iterable[str] = ()) -> Path:
        """Copy a bundle's files under their own names into a folder, and return the path of its main file.

        The folder is made. Raises ArtifactUnavailableError, and OSError where a copy cannot be written.
        """
        into.mkdir(parents=True, exist_ok=True)
        for ref in bundle.files:
            self.copy_file_to(ref, into, keep=keep)
        return into / bundle.main

    def _fetch_into_cache(self, path: Path, ref: FileRef) -> None:
        descriptor, partial = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
        os.close(descriptor)
        try:
            self._fetch(ref.sha256, Path(partial))
            found_bytes = os.stat(partial).st_size
            if found_bytes != ref.bytes or hash_file(Path(partial)) != ref.sha256:
                raise ArtifactUnavailableError(
                    f"{ref.name} came with {found_bytes:,} bytes that are not the {ref.bytes:,} bytes of digest "
                    f"{ref.sha256[:12]}; if this happens again, upload the file again"
                )
            os.replace(partial, path)
        except (OSError, FetchError) as error:
            raise ArtifactUnavailableError(f"{ref.name} ({ref.sha256[:12]}) could not be fetched: {error}") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
        self._checked[ref.sha256] = _stamp(path)

    def _is_good(self, path: Path, ref: FileRef) -> bool:
        """Say whether the file exists with the right content, which is read once in a process. Delete a damaged one."""
        try:
            stamp = _stamp(path)
        except FileNotFoundError:
            return False
        if self._checked.get(ref.sha256) == stamp:
            return True
        if stamp[1] == ref.bytes and hash_file(path) == ref.sha256:
            self._checked[ref.sha256] = stamp
            return True
        path.unlink(missing_ok=True)
        return False

    def _make_room(self, needed_bytes: int, *, keep: set[str]) -> None:
        present = sorted((path for path in self.folder.glob("??/*") if path.is_file()), key=lambda p: p.stat().st_mtime)
        total = needed_bytes + sum(path.stat().st_size for path in present)
        for path in present:
            if total <= self.limit_bytes:
                return
            if path.name not in keep:
                total -= path.stat().st_size
                path.unlink(missing_ok=True)


def list_digests(order: BlockOrder) -> set[str]:
    """Return the digests of all cached files that a block's arms need: models, inputs, references, data and prompts."""
    refs = [arm.inputs.sha256 for arm in order.arms] + [a.reference.sha256 for a in order.arms if a.reference]
    refs += [arm.evaluation.data.sha256 for arm in order.arms if arm.evaluation]
    refs += [arm.prompts.sha256 for arm in order.arms if arm.prompts]
    return {*refs, *(file.sha256 for arm in order.arms for b in (arm.bundle, arm.source) for file in b.files)}


def copy_file(source: Path, target: Path) -> None:
    """Copy a file. The copy shares its blocks if the file system can do that. Raises OSError."""
    with open(source, "rb") as old, open(target, "wb") as new:
        try:
            fcntl.ioctl(new.fileno(), FICLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new, CHUNK_BYTES)


def hash_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    # the modification time changes with every use (os.utime), and a rewritten file has another inode or size
    return stat.st_ino, stat.st_size, stat.st_dev
