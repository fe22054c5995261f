"""Proposes sizes of images and of audio that a model hints at. Runs in the child only."""

import json
import math
import re
from collections.abc import Iterator, Sequence

import onnx

from farm.workshop.child import input_roles, signature, traversal
from farm.workshop.child.consumers import Requirements

# tokens of a text, and one second of audio
SEQUENCE, AUDIO_SAMPLES = 64, 16_000
MAX_HINT = 8192
# audio samples that a streaming model takes at once: 32 ms at 16,000 a second
AUDIO_FRAME = 512
# how many strides of the first convolution a proposed length of audio has
_STRIDES = 4
_CHANNELS = (1, 3, 4)
# usual numbers of frequency bands in a spectrum
_BANDS = {40, 64, 80, 96, 128}
_SPECTRUM_WORDS = re.compile(r"^input_features$|audio|speech|mel|spectr|fbank|filter_?bank", re.IGNORECASE)
# metadata keys under which exporters note the size of the images that a model was made for
_IMAGE_SIZE_KEYS = ("imgsz", "input_size", "image_size")
# how many rows of a table of positions may stand for tokens before an image's patches
_MAX_LEADING_TOKENS = 8
Shape = Sequence[int | str]


def propose_hints(
    model: onnx.ModelProto, ports: Sequence[tuple[signature.Port, Shape]], free: list[str], required: Requirements
) -> Iterator[dict[str, int]]:
    """Yield sizes that the model hints at: of the images that it was made for, or the audio that its convolutions take.

    Each proposal holds only the dimensions that it concerns.
    """
    noted_size = _read_noted_size(model)
    for port, shape in ports:
        # height before width, both where the image's shape has them
        sides = [dim for dim in shape if isinstance(dim, str) and dim in free and is_image(shape, dim)]
        if noted_size and sides:
            yield dict(zip(sides, noted_size[-len(sides) :], strict=False))
        if len(sides) > 1:
            yield from (dict(zip(sides, grid, strict=False)) for grid in _propose_grids(model, port["name"], required))
        if sides:
            yield from (dict.fromkeys(sides, side) for side in _propose_sides(model, port["name"], required.table_rows))
    has_rate = any(input_roles.find_compared_number(port, model) == input_roles.USUAL_RATE for port, _ in ports)
    for port, shape in ports:
        last = shape[-1] if shape else None
        if isinstance(last, str) and last in free and is_spectrum(port["name"], shape):
            yield from ({last: rows * _multiply_audio_strides(model)} for rows in required.table_rows)
        elif isinstance(last, str) and last in free and 1 <= len(shape) <= 3:
            yield from ({last: size} for size in _propose_lengths(model, port["name"], required, has_rate=has_rate))


def is_image(shape: Shape, dim: str) -> bool:
    """Say whether a dimension is a side of an image: the shape has four dimensions, one of them usual as channels."""
    if len(shape) != 4 or dim not in shape:
        return False
    return (shape[1] in _CHANNELS and dim in shape[2:]) or (shape[3] in _CHANNELS and dim in shape[1:3])


def is_spectrum(name: str, shape: Shape) -> bool:
    """Say whether an input is a spectrum: by a usual number of bands on one of its last two axes, and by its name."""
    return len(shape) == 3 and bool(_BANDS & {*shape[1:]}) and bool(_SPECTRUM_WORDS.search(name))


def _propose_lengths(model: onnx.ModelProto, name: str, required: Requirements, *, has_rate: bool) -> Iterator[int]:
    """Yield lengths of audio: as a table of positions says, one second, or some strides of the first convolution.

    `has_rate` means that the model takes a sampling rate, as models that read one frame at a time do.
    """
    yield from (rows * _multiply_audio_strides(model) for rows in required.table_rows)
    convolutions = [node for node in _list_first_convolutions(model, name) if len(_read_strides(node)) == 1]
    stride = max((_read_strides(node)[0] for node in convolutions), default=0)
    if stride > 1:
        # an input of one channel that a convolution reads in strides is unprocessed audio
        is_recorded = all(required.shapes.get(node.input[1], [])[1:2] == [1] for node in convolutions)
        if is_recorded and not has_rate:
            yield AUDIO_SAMPLES
        yield min(max(_STRIDES * stride, SEQUENCE), MAX_HINT)
    if has_rate:
        yield AUDIO_FRAME


def _propose_grids(model: onnx.ModelProto, name: str, required: Requirements) -> Iterator[list[int]]:
    """Yield image sizes with as many patches as a stored grid of positions that the graph resizes."""
    fixed, stride = {tensor.name for tensor in model.graph.initializer}, _find_patch_side(model, name)
    for node in model.graph.node:
        grid = required.shapes.get(node.input[0], [])[2:] if node.op_type == "Resize" and node.input else []
        if {*node.input} - {""} <= fixed:
            fixed.update(node.output)
        elif len(grid) == 2 and node.input[0] in fixed:
            sides = [side * stride for side in grid if isinstance(side, int) and 0 < side * stride <= MAX_HINT]
            if len(sides) == 2:
                yield sides


def _propose_sides(model: onnx.ModelProto, name: str, tables: list[int]) -> Iterator[int]:
    """Yield sides of square images with as many patches as a table of positions has rows, but for a few tokens."""
    stride = _find_patch_side(model, name)
    for rows in tables:
        patches = (rows - tokens for tokens in range(min(_MAX_LEADING_TOKENS, rows)))
        side = next((math.isqrt(count) for count in patches if math.isqrt(count) ** 2 == count), 0)
        if 0 < side * stride <= MAX_HINT:
            yield side * stride


def _find_patch_side(model: onnx.ModelProto, name: str) -> int:
    # a patch is as wide as the stride of the image's first convolution; 1 without one
    strides = [_read_strides(node) for node in _list_first_convolutions(model, name)]
    return max((stride[0] for stride in strides if len(stride) == 2), default=1)


def _read_noted_size(model: onnx.ModelProto) -> list[int]:
    for entry in model.metadata_props:
        if entry.key.lower() in _IMAGE_SIZE_KEYS:
            try:
                value = json.loads(entry.value)
            except (ValueError, RecursionError):
                return []
            sizes = value if isinstance(value, list) else [value, value]
            if len(sizes) == 2 and all(type(size) is int and 0 < size <= MAX_HINT for size in sizes):
                return sizes
    return []


def _list_first_convolutions(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    """List the convolutions that read the input before anything else computes with it."""
    carriers, convolutions = input_roles.find_tensors_holding(model, name), []
    for node in traversal.iterate_nodes(model, with_functions=False):
        if not node.input or node.input[0] not in carriers:
            continue
        if node.op_type in ("Pad", "Unsqueeze", "Reshape", "Squeeze"):
            carriers.update(node.output)
        if node.op_type == "Conv":
            convolutions.append(node)
    return convolutions


def _multiply_audio_strides(model: onnx.ModelProto) -> int:
    # the product of all strides says how many steps of audio become one
    strides = [_read_strides(node) for node in model.graph.node if node.op_type == "Conv"]
    return min(math.prod(stride[0] for stride in strides if len(stride) == 1), MAX_HINT)


def _read_strides(node: onnx.NodeProto) -> list[int]:
    return list(traversal.read_attribute(node, "strides", []))
