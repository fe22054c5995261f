"""Reads a model file, or explains what else the file seems to be. Runs in the child only."""

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from farm.workshop.child import external, functions
from farm.workshop.problems import Problem, first_line, printable

_MAX_PROTOBUF = (1 << 31) - 1
# the first bytes of files that people often take for a model
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a zip archive (or a PyTorch file)"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x89HDF", "an HDF5 file"),
    (b"<", "a page or an XML file"),
    (b"{", "a JSON file"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x93NUMPY", "a numpy file"),
)
# ModelProto: field numbers and their wire types (0 varint, 2 length-delimited)
_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
# what helps a file that cannot be parsed
NEXT = "Export it again, or open it in Netron."


def read_model(folder: Path, main: str, *, with_data: bool = False) -> onnx.ModelProto:
    """Read the model of a bundle and check its external data, which `with_data` loads too.

    Raises Problem with the code empty_file, over_2gb, not_onnx, truncated, too_many_nodes, or one of
    `check_external_data`.
    """
    path = folder / main
    size = path.stat().st_size
    if size == 0:
        raise Problem("empty_file", f"{printable(main)} is empty: export the model again and upload the new file.")
    if size > _MAX_PROTOBUF:
        text = f"{printable(main)} has {size:,} bytes, more than protobuf's 2 GB: save the weights as external data."
        raise Problem("over_2gb", text)
    content = path.read_bytes()
    model = _parse(content, main)
    if not model.HasField("graph") or not (model.graph.node or model.graph.input or model.graph.output):
        raise Problem(
            "not_onnx", f"{printable(main)} is not a valid ONNX model{_describe_likeness(content)}: it holds no graph."
        )
    if not model.opset_import:
        raise Problem(
            "truncated", f"{printable(main)} names no operator set, as if cut short: export or upload it again."
        )
    functions.check_node_count(model)
    external.check_external_data(model, folder=folder, main=main)
    if with_data:
        onnx.load_external_data_for_model(model, str(folder))
    return model


def _parse(content: bytes, main: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        if _is_cut_short(content):
            text = (
                f"{printable(main)} ends after {len(content):,} bytes in the middle of a field: upload it again, whole."
            )
            raise Problem("truncated", text) from error
        text = f"{printable(main)} is not a valid ONNX model{_describe_likeness(content)}: it cannot be parsed. {NEXT}"
        raise Problem("not_onnx", text) from error
    except (RecursionError, ValueError) as error:
        raise Problem(
            "not_onnx",
            f"{printable(main)} cannot be parsed ({first_line(error)}). Export it again, or open it in Netron.",
        ) from error
    return model


def _describe_likeness(content: bytes) -> str:
    likenesses = [words for start, words in _OTHER_FORMATS if content.lstrip()[: len(start)] == start]
    return f" but looks like {likenesses[0]}" if likenesses else ""


def _is_cut_short(content: bytes) -> bool:
    """Say whether the bytes are an ONNX message whose last field runs past the end."""
    try:
        for number, wire, end in _iterate_top_fields(content):
            if _FIELDS.get(number) != wire:
                return False
            if end > len(content):
                return True
    except IndexError:  # cut inside a number
        return True
    return False


def _iterate_top_fields(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield each field of the outermost message: its number, its wire type, and where it ends."""
    at = 0
    while at < len(content):
        key, at = _read_varint(content, at)
        wire = key & 7
        length, at = _read_varint(content, at)
        at += length if wire == 2 else 0
        yield key >> 3, wire, at


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Read a number at an offset, and return it with the offset after it."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return value, at
