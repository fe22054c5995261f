"""Zips of a bundle: listed first and judged by the list, then decompressed with a byte counter into drafts."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from farm.base.refusals import Invalid, TooLarge
from farm.registry import zip_records
from farm.registry.bundles import MAX_FILES, is_flat, shown
from farm.registry.storage import Draft, check_room

CHUNK_BYTES: Final = 256 * 1024
# zipfile reads the whole directory into memory, so its size is looked at first
MAX_DIRECTORY_BYTES: Final = 1 << 20
METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# nothing, deflated
EMPTY_BYTES: Final = 2
FLAT_HINT: Final = "Zip the files themselves, without their folder: zip -j model.zip folder/*"


def unpack(archive: Draft, *, limit_bytes: int) -> list[Draft]:
    """The archive's files as sealed drafts, under their names; the caller keeps or discards them.

    Raises Invalid for a damaged archive or an entry that may not be there, TooLarge when the sizes it declares sum up
    to more than `limit_bytes`, NoSpace when the disk has no room for them.
    """
    directory = _directory_of(archive)
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
            zip_records.check_entries(archive.file, zipped.infolist(), directory=directory)
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
    files = [entry for entry in entries if not _is_folder(entry)]
    for entry in files:
        _judge_one(entry)
    return files


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    """By the whole name (`filename` ends before a NUL), and only where nothing is in it."""
    return entry.orig_filename.endswith("/") and not entry.file_size and entry.compress_size <= EMPTY_BYTES


def _judge_one(entry: zipfile.ZipInfo) -> None:
    name = shown(entry.orig_filename)
    if not is_flat(entry.orig_filename):
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
        if draft.bytes != entry.file_size:
            raise zipfile.BadZipFile(f"an entry holds {draft.bytes} bytes and its list says {entry.file_size}")
        draft.seal()
    except BaseException:
        draft.discard()
        raise
    return draft


def _directory_of(archive: Draft) -> zip_records.Directory:
    """Where the list is. Raises Invalid when the end is missing or the list is too large to be an honest one."""
    try:
        directory = zip_records.directory_of(archive.file, size=archive.bytes)
    except zip_records.RecordError as problem:
        text = f"{shown(archive.name)} is not a readable zip: {problem}."
        raise Invalid(text, code="bad_zip", hint="Upload it again.") from problem
    if directory.bytes > MAX_DIRECTORY_BYTES:
        raise Invalid(
            f"The directory of {shown(archive.name)} has {directory.bytes:,} bytes; {MAX_FILES} entries need far less.",
            code="bad_zip",
        )
    return directory
