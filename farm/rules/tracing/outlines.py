"""Removes the weights of a model, which a drawing of its graph does not need.

Works on protobuf's wire format (https://protobuf.dev/programming-guides/encoding/) with onnx.proto's field numbers, so
that a model of gigabytes needs no more memory than its graph. Tensors keep their name, type and shape. They keep their
values only where these are a few 64-bit integers, which determine shapes. Biases and scales are removed, however small.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

# tensors of 64-bit integers up to this size keep their values: shapes, axes, pads
KEPT_BYTES: Final = 1024
INT64: Final = b"\x07"
# A message of up to this size cannot contain a tensor with values, and is copied whole unless it is a tensor itself.
EMPTY_BYTES: Final = 8
MAX_DEPTH: Final = 100
VARINT, I64, LEN, I32 = 0, 1, 2, 5

# message → field number → message inside it that may hold a tensor
INSIDE: Final = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
# fields with the values of a tensor
VALUES: Final = frozenset({4, 5, 6, 7, 9, 10, 11})
# fields that are removed from a message of more than KEPT_BYTES: bytes and lists of an attribute
LARGE: Final = {"attribute": frozenset({4, 8, 9})}
# fields that are always removed: the location of external data, an attribute's list of floats, and training information
NEVER: Final = {"tensor": frozenset({13, 14}), "attribute": frozenset({7}), "model": frozenset({20})}


class _Field(NamedTuple):
    """A field of a message: its number, its wire type, its bytes as a whole, and those of its content."""

    number: int
    wire: int
    whole: memoryview
    content: memoryview


def remove_weights(model: memoryview) -> bytes:
    """Return the bytes of an ONNX model without its weights.

    Raises ValueError where `model` is not protobuf, or is nested deeper than protobuf itself allows.
    """
    return _copy_message(model, kind="model", depth=0)


def _copy_message(view: memoryview, *, kind: str, depth: int) -> bytes:
    """Return a message without the removed fields. Raises ValueError where it is malformed or nested too deep."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} messages")
    dropped = _list_dropped_fields(view, kind=kind)
    parts: list[bytes | memoryview] = []
    for field in _iterate_fields(view):
        if field.number in dropped:
            continue
        inner = INSIDE[kind].get(field.number) if field.wire == LEN else None
        if inner is None or (inner != "tensor" and len(field.content) <= EMPTY_BYTES):
            parts.append(field.whole)
            continue
        content = _copy_message(field.content, kind=inner, depth=depth + 1)
        parts += (_encode_varint(field.number << 3 | LEN), _encode_varint(len(content)), content)
    return b"".join(parts)


def _list_dropped_fields(view: memoryview, *, kind: str) -> frozenset[int]:
    """Return the field numbers of a message that are removed."""
    dropped = NEVER.get(kind, frozenset())
    if len(view) > KEPT_BYTES:
        return dropped | (VALUES if kind == "tensor" else LARGE.get(kind, frozenset()))
    if kind == "tensor":
        # field 2 is the type of the tensor's values
        types = {bytes(field.content) for field in _iterate_fields(view) if field.number == 2}
        return dropped if types == {INT64} else dropped | VALUES
    return dropped


def _iterate_fields(view: memoryview) -> Iterator[_Field]:
    """Yield the fields of a message. Raises ValueError where it is malformed."""
    at, end = 0, len(view)
    while at < end:
        start = at
        key, at = _read_varint(view, at)
        number, wire = key >> 3, key & 7
        if wire == LEN:
            length, at = _read_varint(view, at)
        elif wire == VARINT:
            length = _read_varint(view, at)[1] - at
        elif wire in (I64, I32):
            length = 8 if wire == I64 else 4
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire}")
        if number == 0 or at + length > end:
            raise ValueError(f"field {number} goes past the end of its message")
        yield _Field(number, wire, whole=view[start : at + length], content=view[at : at + length])
        at += length


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    """Return the number and the index after it. Raises ValueError where the number has no end."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(view):
            break
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number has no end")


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
