"""Sizes that are tried for dynamic dimensions, the likeliest first. Runs in the child only."""

import json
import re
from collections.abc import Iterator, Mapping

import onnx

from farm.workshop.child import roles, signature, walk

MOST_TRIES = 20
SEQUENCE, PICTURE, SAMPLES = 64, 224, 16_000
# larger ones before smaller ones, since a small one may run and be no work; of pictures not the largest first
SEQUENCES = (64, 96, 128, 192, 224, 256, 320, 512, 576, 640, 1024, 48, 32, 16, 8, 1)
PICTURES = (224, 256, 320, 192, 128, 96, 64, 48, 32, 512, 640, 576, 1024, 16, 8, 1)
_CHANNELS = (1, 3, 4)
_PICTURE_WORDS = re.compile(r"height|width|^[hw]$", re.IGNORECASE)
_SOUND_WORDS = re.compile(r"sample|audio|wav", re.IGNORECASE)
_PAST, _TOTAL = re.compile(r"past", re.IGNORECASE), re.compile(r"total", re.IGNORECASE)
_SUM = re.compile(r"^\(?\s*([A-Za-z_]\w*)\s*\+\s*(\w+)\s*\)?$")
# keys under which tools note the size of pictures that a model was made for
_NOTED = ("imgsz", "input_size", "image_size")
# a frame of sound is some strides of the first convolution long
_STRIDES = 4
_LARGEST_HINT = 8192
# 32 ms at 16,000 samples a second, which is what is listened to at once
FRAME = 512


def candidates(model: onnx.ModelProto, facts: signature.Signature, *, batch: int = 1) -> Iterator[dict[str, int]]:
    """Sizes of every dynamic dimension, at most MOST_TRIES different ones.

    First what the model itself gives away, then one size for all that are not known, at last one dimension at a time.
    """
    seen: list[dict[str, int]] = []
    for sizes in _proposed(model, facts, batch):
        whole = _with_sums(sizes, facts["dims"])
        if whole not in seen:
            seen.append(whole)
            yield whole
        if len(seen) == MOST_TRIES:
            return


def _proposed(model: onnx.ModelProto, facts: signature.Signature, batch: int) -> Iterator[dict[str, int]]:
    ones = {dim: batch if dim == facts["batch"] else 1 for dim in facts["dims"] if _is_one(dim, model, facts)}
    free = [dim for dim in facts["dims"] if dim not in ones]
    usual = {dim: _usual(dim, facts) for dim in free}
    yield from ({**ones, **usual, **hint} for hint in _hints(model, facts, free))
    yield {**ones, **usual}
    ordered = PICTURES if set(usual.values()) == {PICTURE} else SEQUENCES
    yield from ({**ones, **dict.fromkeys(free, size)} for size in ordered)
    if len(free) > 1:
        yield from ({**ones, **usual, dim: size} for dim in free for size in (1, SEQUENCE))


def _is_one(dim: str, model: onnx.ModelProto, facts: signature.Signature) -> bool:
    """Whether a dimension counts what is done at once: the batch, and where no input but a state has it."""
    if dim == facts["batch"] or dim.lower() in signature.BATCH_NAMES - {"n", "b"}:
        return True
    places = [(port, at) for port in facts["inputs"] for at, one in enumerate(port["shape"] or ()) if one == dim]
    if all(roles.is_state(port, model) for port, _ in places):
        return not _PAST.search(dim)
    says_nothing = dim.lower() in ("n", "b") or all(dim == f"{port['name']}.{at}" for port, at in places)
    return says_nothing and all(at == 0 and len(port["shape"] or ()) > 1 for port, at in places)


def _usual(dim: str, facts: signature.Signature) -> int:
    """What such a dimension has where nothing else is known."""
    if _PICTURE_WORDS.search(dim) or any(_is_picture(port, dim) for port in facts["inputs"]):
        return PICTURE
    return SAMPLES if _SOUND_WORDS.search(dim) else SEQUENCE


def _is_picture(port: signature.Port, dim: str) -> bool:
    shape = port["shape"] or []
    if len(shape) != 4 or dim not in shape:
        return False
    return (shape[1] in _CHANNELS and dim in shape[2:]) or (shape[3] in _CHANNELS and dim in shape[1:3])


def _hints(model: onnx.ModelProto, facts: signature.Signature, free: list[str]) -> Iterator[dict[str, int]]:
    """What the model gives away: the pictures it was made for, the stride of what it does to sound first."""
    pictured = [(port, [dim for dim in port["shape"] or [] if dim in free and _is_picture(port, str(dim))])
                for port in facts["inputs"]]  # fmt: skip
    noted = _noted(model)
    for port, dims in pictured:
        if noted and dims:
            # height before width, both where the picture's shape has them
            both = [dim for dim in (port["shape"] or []) if isinstance(dim, str) and dim in dims]
            yield dict(zip(both, noted[-len(both) :], strict=False))
    for port in facts["inputs"]:
        shape = port["shape"] or []
        last = shape[-1] if shape else None
        if not isinstance(last, str) or last not in free or not 1 <= len(shape) <= 3:
            continue
        stride = _first_stride(model, port["name"])
        if stride and stride > 1:
            yield {last: min(_STRIDES * stride, _LARGEST_HINT)}
        if any(roles.compared_with(one, model) == roles.USUAL_RATE for one in facts["inputs"]):
            yield {last: FRAME}


def _noted(model: onnx.ModelProto) -> list[int]:
    for entry in model.metadata_props:
        if entry.key.lower() in _NOTED:
            try:
                found = json.loads(entry.value)
            except (ValueError, RecursionError):
                return []
            sizes = found if isinstance(found, list) else [found, found]
            if len(sizes) == 2 and all(type(one) is int and 0 < one <= _LARGEST_HINT for one in sizes):
                return sizes
    return []


def _first_stride(model: onnx.ModelProto, name: str) -> int | None:
    """The largest stride of the one-dimensional convolutions that read the input before anything else computes."""
    carried, strides = roles.carried_by(model, name), []
    for node in walk.nodes(model, with_functions=False):
        if not node.input or node.input[0] not in carried:
            continue
        if node.op_type == "Pad":
            carried.update(node.output)
        if node.op_type in ("Unsqueeze", "Reshape", "Squeeze"):
            carried.update(node.output)
        if node.op_type == "Conv":
            found = next((list(one.ints) for one in node.attribute if one.name == "strides"), [])
            strides += found if len(found) == 1 else []
    return max(strides, default=None)


def _with_sums(sizes: Mapping[str, int], dims: list[str]) -> dict[str, int]:
    """Dimensions that are sums of others by their name, like `past_sequence_length + sequence_length`."""
    found = dict(sizes)
    past = next((dim for dim in dims if _PAST.search(dim) and not _SUM.match(dim)), None)
    now = next((dim for dim in dims if "seq" in dim.lower() and not _PAST.search(dim) and not _TOTAL.search(dim)), None)
    for dim in dims:
        if parts := _SUM.match(dim):
            numbers = [int(part) if part.isdecimal() else sizes.get(part) for part in parts.groups()]
            if all(number is not None for number in numbers):
                found[dim] = sum(number for number in numbers if number is not None)
        elif _TOTAL.search(dim) and past is not None and now is not None:
            found[dim] = sizes[past] + sizes[now]
    return found
