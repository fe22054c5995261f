"""Zips of a bundle: listed first and judged by the list, then decompressed with a byte counter into drafts."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from farm.accounts.refusals import Invalid, TooLarge
from farm.registry.bundles import MAX_FILES, is_flat, shown
from farm.registry.storage import Draft, check_room

CHUNK_BYTES: Final = 256 * 1024
# zipfile reads the whole directory into memory, so its size is looked at first
MAX_DIRECTORY_BYTES: Final = 1 << 20
METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# end of central directory: signature, 4 × u16 counts, u32 size, u32 offset, u16 comment; PKWARE APPNOTE 4.3.16, 4.3.14
END: Final = struct.Struct("<4s4H2LH")
END_MARK: Final = b"PK\x05\x06"
END64_MARK: Final = b"PK\x06\x06"
END64_BYTES: Final = 56
MAX_COMMENT: Final = 65535
FLAT_HINT: Final = "Zip the files themselves, without their folder: zip -j model.zip folder/*"


def unpack(archive: Draft, *, limit_bytes: int) -> list[Draft]:
    """The archive's files as sealed drafts, under their names; the caller keeps or discards them.

    Raises Invalid for a damaged archive or an entry that may not be there, TooLarge when the sizes it declares sum up
    to more than `limit_bytes`, NoSpace when the disk has no room for them.
    """
    _check_directory(archive)
    drafts: list[Draft] = []
    try:
        with _opened(archive) as zipped:
            entries = _judge(zipped.infolist(), archive=archive.name)
            total = sum(entry.file_size for entry in entries)
            if total > limit_bytes:
                raise TooLarge(
                    f"{shown(archive.name)} holds {total:,} bytes unpacked; there is room for {limit_bytes:,}.",
                    code="quota",
                )
            check_room(bytes_wanted=total)
            for entry in entries:
                drafts.append(_extract(zipped, entry))
    except BaseException:
        for draft in drafts:
            draft.discard()
        raise
    return drafts


@contextmanager
def _opened(archive: Draft) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive.file) as zipped:
            yield zipped
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, ValueError) as problem:
        raise Invalid(
            f"{shown(archive.name)} is not a readable zip: {str(problem).rstrip('.') or 'it is damaged'}.",
            code="bad_zip",
            hint="Make it again with `zip -j model.zip FILES`.",
        ) from problem


def _judge(entries: list[zipfile.ZipInfo], *, archive: str) -> list[zipfile.ZipInfo]:
    """The entries that are files; raises Invalid for the first one that may not be there."""
    if len(entries) > MAX_FILES:
        raise Invalid(f"{shown(archive)} has {len(entries)} entries; the limit is {MAX_FILES}.", code="too_many_files")
    files = [entry for entry in entries if not entry.is_dir()]
    for entry in files:
        _judge_one(entry)
    return files


def _judge_one(entry: zipfile.ZipInfo) -> None:
    name = shown(entry.filename)
    if not is_flat(entry.filename):
        raise Invalid(f"The zip's entry “{name}” is not a plain file name.", code="bad_name", hint=FLAT_HINT)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Invalid(f"The zip's entry “{name}” is a link or a special file; only files are taken.", code="link")
    if entry.flag_bits & 0x1:
        raise Invalid(f"The zip's entry “{name}” is encrypted; zip it without a password.", code="encrypted")
    if entry.compress_type not in METHODS:
        raise Invalid(f"The zip's entry “{name}” is compressed in a way other than deflate.", code="bad_zip")


def _extract(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Draft:
    """Decompress one entry; the draft ends it when more bytes come out than the list declared."""
    draft = Draft(entry.filename, limit_bytes=entry.file_size)
    try:
        with zipped.open(entry) as source:
            while chunk := source.read(CHUNK_BYTES):
                draft.write(chunk)
        draft.seal()
    except BaseException:
        draft.discard()
        raise
    return draft


def _check_directory(archive: Draft) -> None:
    """Raise Invalid when the archive's end record is missing or its directory is too large to be an honest one."""
    size = _directory_bytes(archive)
    if size is None:
        raise Invalid(
            f"{shown(archive.name)} is not a zip, or its end is missing.", code="bad_zip", hint="Upload it again."
        )
    if size > MAX_DIRECTORY_BYTES:
        raise Invalid(
            f"The directory of {shown(archive.name)} has {size:,} bytes; {MAX_FILES} entries need far less.",
            code="bad_zip",
        )


def _directory_bytes(archive: Draft) -> int | None:
    """The directory's size as the end record says, the larger of both where there are two; None without one."""
    start = max(0, archive.bytes - END.size - MAX_COMMENT - END64_BYTES - 20)
    archive.file.seek(start)
    tail = archive.file.read(archive.bytes - start) or b""
    archive.file.seek(0)
    at = tail.rfind(END_MARK)
    if at < 0 or len(tail) - at < END.size:
        return None
    size = int(END.unpack_from(tail, at)[5])
    at64 = tail.rfind(END64_MARK, 0, at)
    if size == 0xFFFFFFFF or at64 >= 0:
        # u64 size of the directory, 40 bytes into the zip64 end record
        if at64 < 0 or len(tail) - at64 < END64_BYTES:
            return None
        size64 = int(struct.unpack_from("<Q", tail, at64 + 40)[0])
        return size64 if size == 0xFFFFFFFF else max(size, size64)
    return size
