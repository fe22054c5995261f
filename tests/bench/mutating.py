"""Mutants of real ONNX files, from a seed: of their bytes, and of what the bytes mean."""

import random
from collections.abc import Callable
from pathlib import Path

import onnx
from google.protobuf.message import Message  # type: ignore[import-untyped]

MODELS = Path(__file__).parents[1] / "models"
MOST_EDITS = 4
# values that parsers and shape inference stumble over
NUMBERS = (-1, 0, 1, 2, 2**31 - 1, 2**31, 2**62, -(2**63), 2**63 - 1, 97)
FLOATS = (0.0, -1.0, 1e38, float("nan"), float("inf"), 1e-45)
TEXTS = ("", "x", "x" * 5000, "\x00", "../../etc/passwd", "/etc/passwd", "é\u202e", "If", "Loop", "ai.onnx.ml", "%s%n")


def seeds() -> list[tuple[str, bytes]]:
    """The reference models that are whole in one file, by name."""
    paths = [path for path in sorted(MODELS.glob("*.onnx")) if not path.with_name(path.name + ".data").exists()]
    return [(path.stem, path.read_bytes()) for path in paths]


def of_bytes(content: bytes, chance: random.Random) -> bytes:
    """A few edits anywhere: flip, overwrite, cut out, double, insert, swap, truncate."""
    data = bytearray(content)
    for _ in range(chance.randint(1, MOST_EDITS)):
        at, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 2, 4, 8, 64, 512))
        edit = chance.randrange(7)
        if edit == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif edit == 1:
            data[at : at + length] = chance.randbytes(length)
        elif edit == 2:
            del data[at : at + length]
        elif edit == 3:
            data[at:at] = data[at : at + length]
        elif edit == 4:
            data[at:at] = chance.choice((b"\xff" * length, b"\x00" * length, chance.randbytes(length)))
        elif edit == 5:
            other = chance.randrange(len(data) + 1)
            data[at : at + length], data[other : other + length] = (
                data[other : other + length],
                data[at : at + length],
            )
        else:
            data = data[: max(1, at)]
    return bytes(data)


def of_structure(content: bytes, chance: random.Random) -> bytes:
    """A few edits of fields anywhere in the message: it stays a protobuf, and stops being a model."""
    model = onnx.load_from_string(content)
    for _ in range(chance.randint(1, MOST_EDITS)):
        places = _messages(model)
        chance.choice(EDITS)(chance.choice(places), chance)
    return model.SerializeToString()


def _messages(root: Message, most: int = 4000) -> list[Message]:
    """The message and those inside it."""
    found, waiting = [], [root]
    while waiting and len(found) < most:
        message = waiting.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting.extend(value if field.is_repeated else [value])
    return found


def _set_some(message: Message, chance: random.Random) -> None:
    """Another value in a field that has one, or in one that had none."""
    field = chance.choice(message.DESCRIPTOR.fields)
    if field.message_type is not None:
        message.ClearField(field.name)
        return
    made: dict[int, Callable[[], object]] = {
        field.CPPTYPE_INT32: lambda: max(-(2**31), min(2**31 - 1, chance.choice(NUMBERS))),
        field.CPPTYPE_INT64: lambda: chance.choice(NUMBERS),
        field.CPPTYPE_UINT64: lambda: abs(chance.choice(NUMBERS)),
        field.CPPTYPE_FLOAT: lambda: chance.choice(FLOATS),
        field.CPPTYPE_DOUBLE: lambda: chance.choice(FLOATS),
        field.CPPTYPE_ENUM: lambda: chance.choice([value.number for value in field.enum_type.values]),
        field.CPPTYPE_STRING: lambda: (
            chance.randbytes(chance.choice((0, 1, 7, 64))) if field.type == field.TYPE_BYTES else chance.choice(TEXTS)
        ),
    }
    make = made.get(field.cpp_type)
    if make is None:
        return
    if field.is_repeated:
        getattr(message, field.name).extend([make()] * chance.choice((1, 1, 3, 1000)))
    else:
        setattr(message, field.name, make())


def _drop_some(message: Message, chance: random.Random) -> None:
    """A field gone, or one entry of it."""
    known = message.ListFields()
    if not known:
        return
    field, value = chance.choice(known)
    if field.is_repeated and chance.random() < 0.8:
        del value[chance.randrange(len(value))]
    else:
        message.ClearField(field.name)


def _double_some(message: Message, chance: random.Random) -> None:
    """An entry again, once or often."""
    repeated = [(field, value) for field, value in message.ListFields() if field.is_repeated]
    if not repeated:
        return
    _, value = chance.choice(repeated)
    entry = value[chance.randrange(len(value))]
    if isinstance(entry, Message) and entry.ByteSize() > 100_000:
        return
    value.extend([entry] * chance.choice((1, 2, 50)))


def _swap_some(message: Message, chance: random.Random) -> None:
    """Two entries in each other's place: nodes before what they need, inputs of another node."""
    repeated = [value for field, value in message.ListFields() if field.is_repeated and len(value) > 1]
    if not repeated:
        return
    value = chance.choice(repeated)
    # entries of a repeated field are its own: they are copied before it is emptied
    entries = [type(one).FromString(one.SerializeToString()) if isinstance(one, Message) else one for one in value]
    chance.shuffle(entries)
    del value[:]
    value.extend(entries)


EDITS = (_set_some, _set_some, _drop_some, _double_some, _swap_some)
