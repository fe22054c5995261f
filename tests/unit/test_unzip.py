"""Zips that different programs would read differently, and zips whose end lies: refused before anything is unpacked."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.base.refusals import Invalid, Refusal, TooLarge
from farm.registry.storage import Draft
from farm.registry.unzip import END, END64, END64_MARK, LOCATOR, LOCATOR_MARK, unpack

FILES = {"a.onnx": b"model" * 50, "w.bin": bytes(range(256)) * 4}
ENOUGH = 1 << 20


class Unseekable(io.BytesIO):
    """As a pipe: zipfile then writes descriptors behind the data."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError("a pipe")

    def tell(self) -> int:
        raise OSError("a pipe")


def zipped(*, comment: bytes = b"", out: io.BytesIO | None = None, **how: bool) -> bytes:
    memory = out or io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            with archive.open(zipfile.ZipInfo(name), "w", **how) as entry:
                entry.write(content)
        archive.comment = comment
    return memory.getvalue()


def with_zip64(content: bytes, *, places: dict[int, int] | None = None, short: bool = True, **changes: int) -> bytes:
    """The same zip with a zip64 end record. `places`: other values by their place in the short record."""
    *_, count, size, offset, _ = parts = list(END.unpack_from(content, len(content) - END.size))
    told = {"rest": END64.size - 12, "count": count, "size": size, "offset": offset, "place": offset + size} | changes
    record = END64.pack(
        END64_MARK, told["rest"], 45, 45, 0, 0, count, told["count"], told["size"], told["offset"]
    ) + LOCATOR.pack(LOCATOR_MARK, 0, told["place"], 1)
    if short:
        parts[3:7] = [0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF]
        record = record.replace(
            struct.pack("<QQ", count, told["count"]), struct.pack("<QQ", told["count"], told["count"])
        )
    for place, value in (places or {}).items():
        parts[place] = value
    return content[: -END.size] + record + END.pack(*parts)


def unpacked(content: bytes, *, limit_bytes: int = ENOUGH) -> dict[str, bytes]:
    draft = Draft("m.zip", limit_bytes=1 << 30)
    draft.write(content)
    draft.seal()
    found = {}
    try:
        for part in unpack(draft, limit_bytes=limit_bytes):
            found[part.name] = part.file.read()
            part.discard()
    finally:
        draft.discard()
    return found


GOOD: dict[str, Callable[[], bytes]] = {
    "as python writes it": zipped,
    "with a comment": lambda: zipped(comment=b"made by hand"),
    "with descriptors, as from a pipe": lambda: zipped(out=Unseekable()),
    "with zip64 headers of entries": lambda: zipped(force_zip64=True),
    "with a zip64 end record": lambda: with_zip64(zipped()),
    "with both end records telling": lambda: with_zip64(zipped(), short=False),
    "with the zip64 mark in its comment": lambda: zipped(
        comment=b"about PK\x06\x06 and PK\x06\x07 marks, nothing more"
    ),
}


@pytest.mark.parametrize("make", GOOD.values(), ids=list(GOOD))
def test_a_zip_in_any_honest_form_is_unpacked(make: Callable[[], bytes]) -> None:
    assert unpacked(make()) == FILES


def changed(old: bytes, new: bytes, *, content: bytes | None = None, which: int = -1) -> bytes:
    """The zip with one occurrence of some bytes replaced: the first (0) or the last."""
    whole = content or zipped()
    at = whole.find(old) if which == 0 else whole.rfind(old)
    assert at >= 0
    return whole[:at] + new + whole[at + len(old) :]


def at_end(place: int, form: str, value: int) -> bytes:
    content = bytearray(zipped())
    struct.pack_into(form, content, len(content) - END.size + place, value)
    return bytes(content)


def hidden_list() -> bytes:
    """Two lists: the end record leads to one, its zip64 form, for those who look, to a larger one."""
    return with_zip64(zipped(), size=900 << 20, short=False)


def mark_in_a_field() -> bytes:
    """The zip64 end record says 900 MiB; the last mark in front of the end is within its locator and says nothing."""
    fake = int.from_bytes(END64_MARK, "little")
    return with_zip64(zipped(), size=900 << 20, short=False, place=fake)


BAD: dict[str, Callable[[], bytes]] = {
    "two end records that differ": hidden_list,
    "the mark of a zip64 record within a field": mark_in_a_field,
    "a zip64 count that differs": lambda: with_zip64(zipped(), count=1, short=False),
    "a zip64 record that is longer than it is": lambda: with_zip64(zipped(), rest=4096),
    "a locator that leads elsewhere": lambda: with_zip64(zipped(), place=0),
    "a zip64 end that is missing": lambda: at_end(12, "<L", 0xFFFFFFFF),
    "more entries than its end counts": lambda: at_end(10, "<H", 1),
    "fewer entries on this disk": lambda: at_end(8, "<H", 1),
    "one disk of several": lambda: at_end(4, "<H", 1),
    "an offset that is not the list's": lambda: at_end(16, "<L", 0),
    "a list that is too short": lambda: at_end(12, "<L", 10),
    "bytes in front": lambda: b"#!/bin/sh\n" + zipped(),
    "bytes behind": lambda: zipped() + b"more",
    "a second zip behind": lambda: zipped() + zipped(),
    "an end record within its comment": lambda: zipped(comment=b"x" + zipped()[-END.size :] + b"y"),
    "a name in the header that is not the list's": lambda: changed(b"a.onnx", b"b.onnx", which=0),
    "a NUL within a name": lambda: changed(b"w.bin", b"w\x00bin", content=changed(b"w.bin", b"w\x00bin")),
    "a name that begins with a NUL": lambda: changed(b"w.bin", b"\x00.bin", content=changed(b"w.bin", b"\x00.bin")),
    "a size in the header that is not the list's": lambda: changed(
        struct.pack("<L", len(FILES["w.bin"])), struct.pack("<L", 10), which=0
    ),
    "a folder with something in it": lambda: changed(b"w.bin", b"wbin/", content=changed(b"w.bin", b"wbin/")),
}


@pytest.mark.parametrize("make", BAD.values(), ids=list(BAD))
def test_a_zip_that_two_programs_would_read_differently_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(Invalid) as refused:
        unpacked(make())
    assert refused.value.code in ("bad_zip", "bad_name")
    assert str(refused.value).startswith(("m.zip", "The zip", "The directory"))


def test_entries_that_share_their_data_are_refused() -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("a.onnx", b"x" * 1000)
        archive.writestr("b.onnx", b"x" * 1000)
        # both lists lead to the first one's data: a bomb of as many files as the list has
        archive.filelist[1].header_offset = archive.filelist[0].header_offset
    with pytest.raises(Invalid, match="overlap"):
        unpacked(memory.getvalue())


def test_a_directory_of_gigabytes_takes_no_memory() -> None:
    content = mark_in_a_field()
    tracemalloc.start()
    with pytest.raises(Invalid):
        unpacked(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_zip_that_declares_more_than_there_is_room_for_is_refused_by_its_list() -> None:
    with pytest.raises(TooLarge):
        unpacked(zipped(), limit_bytes=100)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(GOOD)),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 40),
)
def test_any_damage_is_a_refusal_or_changes_no_content(form: str, changes: list[tuple[int, int]], cut_bytes: int):
    content = bytearray(GOOD[form]())
    for place, value in changes:
        content[place % len(content)] = value
    if cut_bytes % 8 == 0:
        content = content[: len(content) - cut_bytes]
    try:
        found = unpacked(bytes(content))
    except Refusal:
        return
    assert sorted(found.values()) == sorted(FILES.values())
