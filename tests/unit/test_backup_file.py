"""The file of a backup: what is written is read back, and every other file is refused in a sentence."""

import io
import json
import tarfile
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from farm.backups import archive
from farm.backups.archive import ArchiveReader, ArchiveWriter
from farm.backups.problems import BackupError

CONTENT = b"weights " * 200
MEMBER = archive.name_stored_member(team_id=3, sha256=sha256(CONTENT).hexdigest())


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    path = tmp_path / "farm.backup"
    with ArchiveWriter(path) as writing:
        writing.add(archive.HEAD, json.dumps({"format": archive.FORMAT, "migrations": []}).encode())
        writing.add(archive.name_table_member("runs.run"), b"rows")
        writing.add(archive.KEY, b"key")
        writing.add(MEMBER, CONTENT)
    return path


def with_member(path: Path, name: str, kind: bytes = tarfile.REGTYPE) -> None:
    """The same file with one member more before its end."""
    with tarfile.open(path) as tar:
        known = [(info.name, tar.extractfile(info).read()) for info in tar]
    with tarfile.open(path, "w") as tar:
        for member, content in known:
            if member == archive.TAIL:
                strange = tarfile.TarInfo(name)
                strange.type, strange.linkname = kind, "/etc/passwd"
                tar.addfile(strange)
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def with_sparse_member(path: Path, name: str, *, size: int) -> None:
    """The same file with a member of one byte that says it is `size` bytes long, holes and all."""
    with tarfile.open(path) as tar:
        known = [(info.name, tar.extractfile(info).read()) for info in tar]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for member, content in known:
            info = tarfile.TarInfo(member)
            info.size = len(content)
            if member == name:
                info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(size)}
            tar.addfile(info, io.BytesIO(content))


def with_sizes(path: Path, *, size: int) -> None:
    """The same file, of whose members every one says that it has `size` bytes, with none of them behind the last."""
    with tarfile.open(path) as tar:
        names = tar.getnames()
    with path.open("wb") as file:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = size
            file.write(info.tobuf(tarfile.GNU_FORMAT))


def flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_what_was_written_is_read_back(backup: Path) -> None:
    reading = ArchiveReader(backup)
    reading.check()
    assert reading.head["format"] == archive.FORMAT
    assert reading.small_members[archive.KEY] == b"key"
    assert reading.stored_bytes == len(CONTENT)
    assert {name: source.read() for name, source in reading.iterate_members()} == {
        "tables/runs.run.jsonl.gz": b"rows",
        MEMBER: CONTENT,
    }


def test_its_owner_alone_may_read_it_and_nothing_is_written_over(backup: Path) -> None:
    assert backup.stat().st_mode & 0o077 == 0
    with pytest.raises(BackupError, match="exists already: name a file"), ArchiveWriter(backup):
        pass


def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on the way"), ArchiveWriter(tmp_path / "farm.backup"):
        raise ValueError("on the way")
    assert not list(tmp_path.iterdir())


def cut(path: Path, *, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        *((partial(cut, length=length), "was cut off: its end is missing") for length in (2500, 512 * 4)),
        (
            lambda path: flipped(path, path.read_bytes().index(CONTENT)),
            "is damaged: store/3/.* is not what its end says",
        ),
        (lambda path: path.write_bytes(b"PK" + bytes(4000)), "is not a backup of a farm"),
        (lambda path: path.write_bytes(b""), "is not a backup of a farm"),
        (lambda path: path.unlink(), "There is no file"),
        (lambda path: with_member(path, "../../etc/cron.d/x"), "names '../../etc/cron.d/x', which no backup has"),
        (lambda path: with_member(path, "/etc/passwd"), "names '/etc/passwd'"),
        (lambda path: with_member(path, "store/3/ab/../../secret_key"), "names 'store/3/ab/../../secret_key'"),
        (lambda path: with_member(path, f"store/3/00/{'1' * 64}"), "names 'store/3/00/1"),
        (lambda path: with_member(path, "node/node.json", tarfile.SYMTYPE), "names 'node/node.json'"),
        (lambda path: with_member(path, "secret_key"), "names 'secret_key', which no backup has, or none twice"),
        (
            lambda path: with_member(path, "tables/runs.block.jsonl.gz"),
            "tables/runs.block.jsonl.gz is not what its end",
        ),
    ],
)
def test_a_spoilt_backup_is_refused_in_a_sentence(backup: Path, spoil: Callable[[Path], None], sentence: str) -> None:
    spoil(backup)
    with pytest.raises(BackupError, match=sentence):
        ArchiveReader(backup).check()


@pytest.mark.parametrize("size", [1 << 60, -512])
def test_a_member_larger_than_the_file_is_not_read(backup: Path, size: int) -> None:
    with_sizes(backup, size=size)
    with pytest.raises(BackupError):
        ArchiveReader(backup).check()


@pytest.mark.parametrize("name", [archive.HEAD, MEMBER])
def test_a_small_file_that_is_read_as_terabytes_of_holes_is_refused_at_once(backup: Path, name: str) -> None:
    with_sparse_member(backup, name, size=1 << 40)
    assert backup.stat().st_size < 32_000
    with pytest.raises(BackupError, match="which no backup has"):
        ArchiveReader(backup).check()
