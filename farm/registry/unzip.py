"""Unpacks zips safely: the list of files is checked first, then each file is decompressed with a byte counter.

A zip repeats most facts two or three times, and readers differ in which copy they believe: the end record or its zip64
form, the directory or the headers in front of the data, the count or the size (PKWARE APPNOTE 6.3.10). Here all copies
must agree, and the records must fill the file from its first byte to its last, so that every reader sees the same
files. Files inside folders and more than MAX_FILES entries are refused.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Final

from farm.base.refusals import Invalid, TooLarge
from farm.registry.bundles import MAX_FILES, is_allowed_zip_name, make_printable
from farm.registry.storage import Draft, check_free_space

# the records of a zip, by their sections in APPNOTE
# 4.3.16: signature, disks 2 × u16, counts 2 × u16, u32 size, u32 offset, u16 comment
END: Final = struct.Struct("<4s4H2LH")
END_MARK: Final = b"PK\x05\x06"
MAX_COMMENT: Final = 65535
# 4.3.15: signature, u32 disk, u64 place of the zip64 end record, u32 disks
LOCATOR: Final = struct.Struct("<4sLQL")
LOCATOR_MARK: Final = b"PK\x06\x07"
# 4.3.14: signature, u64 size of the rest, versions 2 × u16, disks 2 × u32, u64 counts, size, offset
END64: Final = struct.Struct("<4sQ2H2L4Q")
END64_MARK: Final = b"PK\x06\x06"
# 4.3.7: signature, version, flags, method, time, date, u32 CRC, sizes, u16 lengths of name and extra field
LOCAL: Final = struct.Struct("<4s5H3L2H")
LOCAL_MARK: Final = b"PK\x03\x04"
DESCRIPTOR_MARK: Final = b"PK\x07\x08"
DESCRIBED, ENCRYPTED, UTF8 = 0x8, 0x1, 0x800
ALL16, ALL32 = 0xFFFF, 0xFFFFFFFF
# an extra field with another name for the file, which some readers take in place of the first
OTHER_NAME: Final = 0x7075
CHUNK_BYTES: Final = 256 * 1024
# zipfile reads the whole directory into memory, so its size is checked first
MAX_DIRECTORY_BYTES: Final = 1 << 20
METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# the size of an empty text after deflate
EMPTY_BYTES: Final = 2
FLAT_HINT: Final = "Zip the files themselves, without their folder: zip -j model.zip folder/*"


class RecordError(ValueError):
    """Two records of the archive contradict each other, or one is missing; the message says which."""


@dataclass(frozen=True)
class Directory:
    """The place and length in bytes of a zip's list of files, and how many it lists."""

    offset: int
    bytes: int
    count: int


def read_directory(file: IO[bytes], *, size: int) -> Directory:
    """Find the directory by the records at the end of a zip of `size` bytes.

    Raises RecordError where they are missing, contradict each other, or name one part of several.
    """
    start = max(0, size - END.size - MAX_COMMENT - LOCATOR.size - END64.size)
    file.seek(start)
    tail = file.read(size - start)
    file.seek(0)
    position = _find_end_record(tail)
    _, disk, first, count_here, count, length, offset, comment = END.unpack_from(tail, position)
    if position + END.size + comment != len(tail):
        raise RecordError("its end record is not its end")
    directory, ends_at = Directory(offset, length, count), start + position
    if position >= LOCATOR.size and tail[position - LOCATOR.size :].startswith(LOCATOR_MARK):
        ends_at -= LOCATOR.size + END64.size
        directory = _read_zip64(tail, at=position - LOCATOR.size, start=start, short=directory)
    elif count == ALL16 or ALL32 in (length, offset):
        raise RecordError("its zip64 end record is missing")
    if (disk, first) != (0, 0) or count_here != count:
        raise RecordError("it is one part of several")
    if directory.offset + directory.bytes != ends_at:
        raise RecordError("its list is not where its end record says")
    return directory


def check_entries(file: IO[bytes], entries: Sequence[zipfile.ZipInfo], *, directory: Directory) -> None:
    """Raise RecordError unless each entry's own header agrees with the directory and nothing lies between entries."""
    if len(entries) != directory.count:
        raise RecordError(f"its end record counts {directory.count} entries and its list has {len(entries)}")
    position = 0
    for entry in sorted(entries, key=lambda item: item.header_offset):
        if entry.header_offset != position:
            raise RecordError("its entries overlap, or something lies between them")
        position = _check_entry_header(file, entry, directory=directory)
    if position != directory.offset:
        # the descriptor of the last entry ends where the list begins
        raise RecordError("something lies between its entries and its list")
    file.seek(0)


def _find_end_record(tail: bytes) -> int:
    """Return the place of the end record in the way of Python's zipfile: at the very end, else at the last mark."""
    position = len(tail) - END.size
    if position < 0 or not (tail[position:].startswith(END_MARK) and tail.endswith(b"\x00\x00")):
        position = tail.rfind(END_MARK)
    if position < 0 or len(tail) - position < END.size:
        raise RecordError("its end record is missing")
    return position


def _read_zip64(tail: bytes, *, at: int, start: int, short: Directory) -> Directory:
    """Read the directory from the zip64 record before the locator at `at`; it may not contradict the short record."""
    _, disk, place, disks = LOCATOR.unpack_from(tail, at)
    record = at - END64.size
    if record < 0 or (disk, disks, place) != (0, 1, start + record):
        raise RecordError("its zip64 locator leads elsewhere")
    mark, size, _, _, *disks_named, count_here, count, length, offset = END64.unpack_from(tail, record)
    if mark != END64_MARK or size != END64.size - 12 or disks_named != [0, 0] or count_here != count:
        raise RecordError("its zip64 end record is damaged")
    for value, written, full in (
        (short.count, count, ALL16),
        (short.bytes, length, ALL32),
        (short.offset, offset, ALL32),
    ):
        if value not in (written, full):
            raise RecordError("its two end records contradict each other")
    return Directory(offset, length, count)


def _check_entry_header(file: IO[bytes], entry: zipfile.ZipInfo, *, directory: Directory) -> int:
    """Check an entry's own header against the directory; return the place after its data and descriptor."""
    file.seek(entry.header_offset)
    header = file.read(LOCAL.size)
    if len(header) < LOCAL.size or not header.startswith(LOCAL_MARK):
        raise RecordError("an entry has no header")
    _, _, flags, method, _, _, crc, packed, unpacked, name_bytes, extra_bytes = LOCAL.unpack(header)
    name, extra = file.read(name_bytes), file.read(extra_bytes)
    same = (flags & (DESCRIBED | ENCRYPTED | UTF8), method) == (
        entry.flag_bits & (DESCRIBED | ENCRYPTED | UTF8),
        entry.compress_type,
    )
    if not same or name != _encode_name(entry) or _has_second_name(extra) or _has_second_name(entry.extra):
        raise RecordError("an entry's header names another file than the list")
    end: int = entry.header_offset + LOCAL.size + name_bytes + extra_bytes + entry.compress_size
    if end > directory.offset:
        raise RecordError("an entry goes past the list")
    if flags & DESCRIBED:
        return end + _measure_descriptor(file, entry, at=end)
    sizes = ((packed, entry.compress_size), (unpacked, entry.file_size))
    if crc != entry.CRC or any(written not in (listed, ALL32) for written, listed in sizes):
        raise RecordError("an entry's header has another size than the list")
    return end


def _measure_descriptor(file: IO[bytes], entry: zipfile.ZipInfo, *, at: int) -> int:
    """Return the length of the descriptor after the data, in whichever of its four forms agrees with the directory."""
    file.seek(at)
    following = file.read(24)
    for form, mark in (("<LLL", DESCRIPTOR_MARK), ("<LQQ", DESCRIPTOR_MARK), ("<LLL", b""), ("<LQQ", b"")):
        try:
            written = mark + struct.pack(form, entry.CRC, entry.compress_size, entry.file_size)
        except struct.error:
            continue  # this form has no room for such sizes
        if following.startswith(written):
            return len(written)
    raise RecordError("what stands behind an entry's data has another size than the list")


def _encode_name(entry: zipfile.ZipInfo) -> bytes:
    # `orig_filename` still holds a NUL and what follows it
    return entry.orig_filename.encode("utf-8" if entry.flag_bits & UTF8 else "cp437")


def _has_second_name(extra: bytes) -> bool:
    """Say whether the extra fields hold another name for the file."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        if kind == OTHER_NAME:
            return True
        position += 4 + length
    return False


def unpack(archive: Draft, *, limit_bytes: int) -> list[Draft]:
    """Unpack a zip into sealed drafts, under the names of its files; the caller keeps or discards them.

    Entries for folders are skipped, and the draft of the zip itself stays.

    Raises Invalid for a damaged archive or an entry that is not allowed, TooLarge where its files declare more than
    `limit_bytes` in all, and NoSpace where the disk has no room for them.
    """
    directory = _find_directory(archive)
    drafts: list[Draft] = []
    try:
        with _open_zip(archive) as zipped:
            entries = _list_files(zipped.infolist(), archive=archive.name)
            total = sum(entry.file_size for entry in entries)
            if total > limit_bytes:
                name = make_printable(archive.name)
                text = f"{name} holds {total:,} bytes unpacked; there is room for {limit_bytes:,}."
                raise TooLarge(text, code="quota")
            check_entries(archive.file, zipped.infolist(), directory=directory)
            check_free_space(bytes_wanted=total)
            for entry in entries:
                drafts.append(_extract_entry(zipped, entry))
    except BaseException:
        for draft in drafts:
            draft.discard()
        raise
    return drafts


@contextmanager
def _open_zip(archive: Draft) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive.file) as zipped:
            yield zipped
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, ValueError) as problem:
        raise Invalid(
            f"{make_printable(archive.name)} is not a readable zip: {str(problem).rstrip('.') or 'it is damaged'}.",
            code="bad_zip",
            hint="Make it again with `zip -j model.zip FILES`.",
        ) from problem


def _list_files(entries: list[zipfile.ZipInfo], *, archive: str) -> list[zipfile.ZipInfo]:
    """Return the entries that are files. Raises Invalid for too many, or for the first that is not allowed."""
    if len(entries) > MAX_FILES:
        raise Invalid(
            f"{make_printable(archive)} has {len(entries)} entries; the limit is {MAX_FILES}.", code="too_many_files"
        )
    files = [entry for entry in entries if not _is_folder(entry)]
    for entry in files:
        _check_entry(entry)
    return files


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    """Say whether an entry is an empty folder, by its whole name (`filename` ends before a NUL)."""
    return entry.orig_filename.endswith("/") and not entry.file_size and entry.compress_size <= EMPTY_BYTES


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = make_printable(entry.orig_filename)
    if not is_allowed_zip_name(entry.orig_filename):
        raise Invalid(f"The zip's entry “{name}” is not a plain file name.", code="bad_name", hint=FLAT_HINT)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Invalid(f"The zip's entry “{name}” is a link or a special file; only files are taken.", code="link")
    if entry.flag_bits & 0x1:
        raise Invalid(f"The zip's entry “{name}” is encrypted; zip it without a password.", code="encrypted")
    if entry.compress_type not in METHODS:
        raise Invalid(f"The zip's entry “{name}” is compressed in a way other than deflate.", code="bad_zip")


def _extract_entry(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Draft:
    """Decompress an entry into a draft, which raises TooLarge where more bytes come out than the list declares."""
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


def _find_directory(archive: Draft) -> Directory:
    """Find the directory. Raises Invalid where it is missing, or too large for the number of files allowed."""
    try:
        directory = read_directory(archive.file, size=archive.bytes)
    except RecordError as problem:
        text = f"{make_printable(archive.name)} is not a readable zip: {problem}."
        raise Invalid(text, code="bad_zip", hint="Upload it again.") from problem
    if directory.bytes > MAX_DIRECTORY_BYTES:
        raise Invalid(
            f"The directory of {make_printable(archive.name)} has {directory.bytes:,} bytes; "
            f"{MAX_FILES} entries need far less.",
            code="bad_zip",
        )
    return directory
