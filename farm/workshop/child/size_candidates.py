"""Sizes that are tried for dynamic dimensions, the likeliest first. Runs in the child only."""

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import onnx

from farm.workshop.child import consumers, roles, signature, walk

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
# rows of a table of positions that are no part of the picture: tokens that are put in front of it
_MOST_TOKENS = 8
# where consumers disagree about sizes, so many ways are tried
_MOST_WAYS = 4
# 32 ms at 16,000 samples a second, which is what is listened to at once
FRAME = 512
Shape = Sequence[int | str]


def candidates(
    model: onnx.ModelProto, facts: signature.Signature, *, required: consumers.Required, batch: int = 1
) -> Iterator[dict[str, int]]:
    """Sizes of every dynamic dimension, at most MOST_TRIES different ones.

    What the graph requires is no guess. Of the rest first what the model gives away, then one size for all that are not
    known, at last one dimension at a time.
    """
    seen: list[dict[str, int]] = []
    for sizes in _proposed(model, facts, batch, required):
        whole = _with_sums(sizes, facts["dims"])
        if whole not in seen:
            seen.append(whole)
            yield whole
        if len(seen) == MOST_TRIES:
            return


def _proposed(
    model: onnx.ModelProto, facts: signature.Signature, batch: int, required: consumers.Required
) -> Iterator[dict[str, int]]:
    ones = {dim: batch if dim == facts["batch"] else 1 for dim in facts["dims"] if _is_one(dim, model, facts)}
    wanted = {dim: required.of(dim) for dim in facts["dims"] if dim not in ones}
    choices = {dim: sizes for dim, sizes in wanted.items() if sizes}
    for sizes in itertools.islice(itertools.product(*choices.values()), _MOST_WAYS):
        known = {**ones, **dict(zip(choices, sizes, strict=True))}
        yield from _around(known, model, facts, required)


def _around(
    known: dict[str, int], model: onnx.ModelProto, facts: signature.Signature, required: consumers.Required
) -> Iterator[dict[str, int]]:
    """The known sizes with ways to choose the others."""
    free = [dim for dim in facts["dims"] if dim not in known]
    ports = [(port, [known.get(str(dim), dim) for dim in port["shape"] or ()]) for port in facts["inputs"]]
    usual = {dim: _usual(dim, [shape for _, shape in ports]) for dim in free}
    yield from ({**known, **usual, **hint} for hint in _hints(model, ports, free, required))
    yield {**known, **usual}
    ordered = PICTURES if set(usual.values()) == {PICTURE} else SEQUENCES
    yield from ({**known, **dict.fromkeys(free, size)} for size in ordered)
    if len(free) > 1:
        yield from ({**known, **usual, dim: size} for dim in free for size in (1, SEQUENCE))


def _is_one(dim: str, model: onnx.ModelProto, facts: signature.Signature) -> bool:
    """Whether a dimension counts what is done at once: the batch, and where no input but a state has it."""
    if dim == facts["batch"] or (signature.is_batch_name(dim) and dim.lower() not in ("n", "b")):
        return True
    places = [(port, at) for port in facts["inputs"] for at, one in enumerate(port["shape"] or ()) if one == dim]
    if all(roles.is_state(port, model) for port, _ in places):
        return not _PAST.search(dim)
    says_nothing = dim.lower() in ("n", "b") or all(dim == f"{port['name']}.{at}" for port, at in places)
    return says_nothing and all(at == 0 and len(port["shape"] or ()) > 1 for port, at in places)


def _usual(dim: str, shapes: Sequence[Shape]) -> int:
    """What such a dimension has where nothing else is known."""
    if _PICTURE_WORDS.search(dim) or any(_is_picture(shape, dim) for shape in shapes):
        return PICTURE
    return SAMPLES if _SOUND_WORDS.search(dim) else SEQUENCE


def _is_picture(shape: Shape, dim: str) -> bool:
    if len(shape) != 4 or dim not in shape:
        return False
    return (shape[1] in _CHANNELS and dim in shape[2:]) or (shape[3] in _CHANNELS and dim in shape[1:3])


def _hints(
    model: onnx.ModelProto,
    ports: Sequence[tuple[signature.Port, Shape]],
    free: list[str],
    required: consumers.Required,
) -> Iterator[dict[str, int]]:
    """What the model gives away: the pictures it was made for, the stride of what it does to sound first."""
    noted = _noted(model)
    for port, shape in ports:
        # height before width, both where the picture's shape has them
        both = [dim for dim in shape if isinstance(dim, str) and dim in free and _is_picture(shape, dim)]
        if noted and both:
            yield dict(zip(both, noted[-len(both) :], strict=False))
        if both:
            yield from (dict.fromkeys(both, side) for side in _sides(model, port["name"], required.tables))
    for port, shape in ports:
        last = shape[-1] if shape else None
        if not isinstance(last, str) or last not in free or not 1 <= len(shape) <= 3:
            continue
        yield from ({last: rows * _all_strides(model)} for rows in required.tables)
        stride = max((one[0] for one in _strides(model, port["name"]) if len(one) == 1), default=0)
        if stride > 1:
            yield {last: min(_STRIDES * stride, _LARGEST_HINT)}
        if any(roles.compared_with(one, model) == roles.USUAL_RATE for one, _ in ports):
            yield {last: FRAME}


def _sides(model: onnx.ModelProto, name: str, tables: list[int]) -> Iterator[int]:
    """Of square pictures that give as many patches as a table of positions has rows, but for a few of its own."""
    stride = max((one[0] for one in _strides(model, name) if len(one) == 2), default=1)
    for rows in tables:
        patches = (rows - tokens for tokens in range(min(_MOST_TOKENS, rows)))
        side = next((math.isqrt(many) for many in patches if math.isqrt(many) ** 2 == many), 0)
        if 0 < side * stride <= _LARGEST_HINT:
            yield side * stride


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


def _strides(model: onnx.ModelProto, name: str) -> list[list[int]]:
    """The strides of the convolutions that read the input before anything else computes."""
    carried, strides = roles.carried_by(model, name), []
    for node in walk.nodes(model, with_functions=False):
        if not node.input or node.input[0] not in carried:
            continue
        if node.op_type in ("Pad", "Unsqueeze", "Reshape", "Squeeze"):
            carried.update(node.output)
        if node.op_type == "Conv":
            strides.append(_strides_of(node))
    return [found for found in strides if found]


def _all_strides(model: onnx.ModelProto) -> int:
    """How many steps of sound become one: the strides of all convolutions along one axis, multiplied."""
    found = (_strides_of(node) for node in model.graph.node if node.op_type == "Conv")
    return min(math.prod(one[0] for one in found if len(one) == 1), _LARGEST_HINT)


def _strides_of(node: onnx.NodeProto) -> list[int]:
    return next((list(one.ints) for one in node.attribute if one.name == "strides"), [])


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
