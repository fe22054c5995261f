"""Writes and reads the file of a backup: a tar of known names, read from its beginning to its end.

    backup.json                     format, release, migrations of the database, when it was taken
    tables/<app>.<model>.jsonl.gz   a line with the columns, then a line a row
    secret_key
    node/node.json                  of a farm whose own machine measures: the node's identity
    store/<team>/<aa>/<sha256>      as in the store
    left_out.json                   files that the database names and that are missing from the store, or damaged in it
    digests.json                    last: the sha256 of every member above; without it the file was cut off

Format 1: 2026-11-23.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from farm.backups.problems import BackupError

FORMAT: Final = 1
HEAD: Final = "backup.json"
TAIL: Final = "digests.json"
KEY: Final = "secret_key"
NODE: Final = "node/node.json"
LEFT_OUT: Final = "left_out.json"
COPY_BYTES: Final = 1 << 20
# members that the reader keeps in memory
SMALL: Final = (HEAD, KEY, NODE, LEFT_OUT, TAIL)
# limit of a small member; the last one names every file of the farm
MAX_SMALL_BYTES: Final = 1 << 30
_TABLE: Final = re.compile(r"tables/([a-z_]{1,60}\.[a-z_]{1,60})\.jsonl\.gz")
_STORED: Final = re.compile(r"store/(\d{1,18})/([0-9a-f]{2})/(\2[0-9a-f]{62})")


def name_table_member(label: str) -> str:
    return f"tables/{label}.jsonl.gz"


class StoredFile(NamedTuple):
    """A file of the store: the id of its team, and its digest."""

    team_id: int
    sha256: str


def name_stored_member(*, team_id: int, sha256: str) -> str:
    return f"store/{team_id}/{sha256[:2]}/{sha256}"


def parse_table_member(member: str) -> str | None:
    match = _TABLE.fullmatch(member)
    return match[1] if match else None


def parse_stored_member(member: str) -> StoredFile | None:
    match = _STORED.fullmatch(member)
    return StoredFile(int(match[1]), match[3]) if match else None


class ArchiveWriter:
    """Writes a backup: `with ArchiveWriter(path) as archive: archive.add(…)`. Only the owner may read the file.

    The file gets its name once it is whole; after an exception inside the `with` there is none. Entering raises
    BackupError where it exists already or cannot be made, and leaving where it cannot be written: any OSError inside
    becomes one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draft = path.with_name(f"{path.name}.part")
        self.digests: dict[str, str] = {}

    def __enter__(self) -> "ArchiveWriter":
        if self.path.exists():
            raise BackupError(f"{self.path} exists already: name a file that does not, as no backup is written over.")
        try:
            self._file = os.fdopen(os.open(self.draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b")
        except OSError as problem:
            raise BackupError(f"{self.path} cannot be written: {problem.strerror}.") from problem
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._seal()
        except OSError as problem:
            raise self._make_write_error(problem) from problem
        finally:
            self._file.close()
            self.draft.unlink(missing_ok=True)
        if isinstance(value, OSError):
            raise self._make_write_error(value) from value

    def add(self, member: str, content: bytes) -> None:
        self.add_stream(member, io.BytesIO(content), size=len(content))

    def add_stream(self, member: str, source: IO[bytes], *, size: int) -> str:
        """Add a member of exactly `size` bytes; return its sha256. Raises OSError where the source has fewer."""
        info = tarfile.TarInfo(member)
        info.size, info.mode = size, 0o600
        hashing = _Hashing(source)
        self._tar.addfile(info, hashing)
        self.digests[member] = hashing.sha256.hexdigest()
        return self.digests[member]

    def _seal(self) -> None:
        self.add(TAIL, json.dumps(self.digests).encode())
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self.draft, self.path)

    def _make_write_error(self, problem: OSError) -> BackupError:
        return BackupError(f"The backup could not be written to {self.path}: {problem.strerror or problem}.")


class ArchiveReader:
    """Reads a backup. Call `check` first, which reads the whole file, and then `iterate_members`, which reads it again.

    Both raise BackupError for a file that is not a backup, was cut off, or has an unknown member. `check` also raises
    it where the digest of a member is not the one that the end of the file lists. `iterate_members` yields the name and
    content of all but the small members, in the order of the file; it reads, and raises, while it is iterated. Read
    each content before you go on to the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head: dict[str, Any] = {}
        self.small_members: dict[str, bytes] = {}
        self.stored_bytes = 0

    def check(self) -> None:
        """Read the whole file and compare every digest. Sets `head`, `small_members` and `stored_bytes`."""
        digests: dict[str, str] = {}
        # the digests that the last member lists
        listed: object = None
        for member, source in self._walk_members():
            # the head comes first, and nothing follows the tail
            if bool(digests) == (member == HEAD) or listed is not None:
                raise self._make_unknown_file_error()
            is_small = member in SMALL
            digest, content = _digest_member(source, limit=MAX_SMALL_BYTES if is_small else 0)
            if is_small:
                self.small_members[member] = content
            if member == TAIL:
                listed = self._parse_object(content)
            else:
                digests[member] = digest
        self._compare_digests(digests, listed)
        self.head = self._parse_object(self.small_members[HEAD])

    def iterate_members(self) -> Iterator[tuple[str, IO[bytes]]]:
        return ((member, source) for member, source in self._walk_members() if member not in SMALL)

    def list_left_out(self) -> list[str]:
        """List the members, `store/…`, that are missing from the backup, then those damaged when it was taken.

        It is empty before `check` has read the file.
        """
        listed = self._parse_object(self.small_members.get(LEFT_OUT, b"{}"))
        return [*listed.get("missing", []), *listed.get("damaged", [])]

    def _compare_digests(self, digests: dict[str, str], listed: object) -> None:
        if not isinstance(listed, dict):
            raise self._make_cut_off_error()
        for member in sorted({*digests, *listed}):
            if member not in digests:
                raise BackupError(f"The backup {self.path} lacks {member}, which its end names; take another one.")
            if digests[member] != listed.get(member):
                raise BackupError(
                    f"The backup {self.path} is damaged: {member} is not what its end says; take another one."
                )

    def _walk_members(self) -> Iterator[tuple[str, IO[bytes]]]:
        names: set[str] = set()
        self.stored_bytes = 0
        with self._translate_errors(), tarfile.open(self.path, "r|") as tar:
            bytes_left = self.path.stat().st_size
            for info in tar:
                # ten kilobytes of a sparse member may be read as terabytes of zeros
                source = tar.extractfile(info) if info.isreg() and not info.issparse() else None
                is_known = info.name in SMALL or parse_table_member(info.name) or parse_stored_member(info.name)
                if source is None or info.name in names or not is_known:
                    raise BackupError(
                        f"{self.path} names {info.name[:200]!r}, which no backup has, or none twice: take another one."
                    )
                if not 0 <= info.size <= bytes_left:
                    raise self._make_cut_off_error()
                bytes_left -= info.size
                names.add(info.name)
                self.stored_bytes += info.size if parse_stored_member(info.name) else 0
                yield info.name, source

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BackupError(f"There is no file {self.path}.") from None
        except tarfile.ReadError as problem:
            is_cut_off = "unexpected end" in str(problem)
            raise (self._make_cut_off_error() if is_cut_off else self._make_unknown_file_error()) from problem
        except tarfile.TarError as problem:
            raise self._make_unknown_file_error() from problem

    def _parse_object(self, content: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(content)
        except ValueError:
            raise self._make_unknown_file_error() from None
        if not isinstance(parsed, dict):
            raise self._make_unknown_file_error()
        return parsed

    def _make_cut_off_error(self) -> BackupError:
        return BackupError(f"The backup {self.path} was cut off: its end is missing; take another one.")

    def _make_unknown_file_error(self) -> BackupError:
        return BackupError(f"{self.path} is not a backup of a farm: name a file that `onnxfarm farm backup` wrote.")


class _Hashing:
    """A file that computes its digest as it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self._source.read(size)
        self.sha256.update(chunk)
        return chunk


def _digest_member(source: IO[bytes], *, limit: int) -> tuple[str, bytes]:
    """Return the sha256 of a whole member, and its first `limit` bytes."""
    hashing, head = hashlib.sha256(), b""
    while chunk := source.read(COPY_BYTES):
        hashing.update(chunk)
        head += chunk[: limit - len(head)]
    return hashing.hexdigest(), head
