"""Proposes sizes to try for dynamic dimensions, the likeliest first. Runs in the child only."""

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import onnx

from farm.workshop.child import consumers, context, detectors, input_roles, signature, traversal

MAX_TRIES = 20
SEQUENCE, PICTURE, SAMPLES = 64, 224, 16_000
# the sides of a picture in which things are looked for; how many points are pointed at
SEARCHED, POINTED = 640, 2
# a decoder's usual work: one token more, behind so many
PAST, STEP = 256, 1
# larger ones before smaller ones, since a small one may run and be no work; of pictures not the largest first
SEQUENCES = (64, 96, 128, 192, 224, 256, 320, 512, 576, 640, 1024, 48, 32, 16, 8, 1)
PICTURES = (224, 256, 320, 192, 128, 96, 64, 48, 32, 512, 640, 576, 1024, 16, 8, 1)
_CHANNELS = (1, 3, 4)
_PICTURE_WORDS = re.compile(r"height|width|^[hw]$", re.IGNORECASE)
_SOUND_WORDS = re.compile(r"sample|audio|wav", re.IGNORECASE)
# what a model of diffusion works on, eight times smaller than its pictures
_LATENT_WORDS = re.compile(r"latent|^(noisy_)?sample$", re.IGNORECASE)
_LATENT = 64
# what ONNX Runtime says of a size that the file was exported with
_RESHAPED = re.compile(r"Input shape:\{([\d,]+)\}, requested shape:\{([-\d,]+)\}")
_BROADCAST = re.compile(r"by a dimension other than 1\. (\d+) by (\d+)")
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
# ten seconds of sound in frames of 10 ms, of so many bands each
FRAMES, _BANDS = 1000, {40, 64, 80, 96, 128}
_SPECTRUM_WORDS = re.compile(r"^input_features$|audio|speech|mel|spectr|fbank|filter_?bank", re.IGNORECASE)
# 32 ms at 16,000 samples a second, which is what is listened to at once
FRAME = 512
Shape = Sequence[int | str]


def list_candidates(
    model: onnx.ModelProto, facts: signature.Signature, *, required: consumers.Required, batch: int = 1
) -> Iterator[dict[str, int]]:
    """Yield at most MAX_TRIES different choices of a size for every dynamic dimension, the likeliest first.

    Sizes that the graph requires are kept; where its consumers disagree, a few combinations of them are tried. For the
    rest come first sizes that the model hints at,
    then one size for all, and last another size for each dimension in turn.
    """
    seen: list[dict[str, int]] = []
    for sizes in _propose_sizes(model, facts, batch, required):
        whole = _add_sums(sizes, facts, required)
        if whole not in seen:
            seen.append(whole)
            yield whole
        if len(seen) == MAX_TRIES:
            return


def _propose_sizes(
    model: onnx.ModelProto, facts: signature.Signature, batch: int, required: consumers.Required
) -> Iterator[dict[str, int]]:
    wanted = {dim: required.list_sizes(dim) for dim in facts["dims"]}
    choices = {dim: sizes for dim, sizes in wanted.items() if sizes}
    free = [dim for dim in facts["dims"] if dim not in choices]
    ones = {dim: batch if dim == facts["batch"] else 1 for dim in free if _is_repeated(dim, model, facts)}
    for sizes in itertools.islice(itertools.product(*choices.values()), _MOST_WAYS):
        known = {**ones, **dict(zip(choices, sizes, strict=True))}
        yield from _propose_others(known, model, facts, required)


def _propose_others(
    known: dict[str, int], model: onnx.ModelProto, facts: signature.Signature, required: consumers.Required
) -> Iterator[dict[str, int]]:
    """Yield the known sizes with several choices of the others."""
    free = [dim for dim in facts["dims"] if dim not in known]
    ports = [(port, [known.get(str(dim), dim) for dim in port["shape"] or ()]) for port in facts["inputs"]]
    pictures = [shape for port, shape in ports if not input_roles.holds_state(port, model)]
    latents = {dim for port, shape in ports if _is_latent(port["name"], shape) for dim in shape[2:]}
    usual = {dim: _LATENT if dim in latents else _guess_size(dim, pictures) for dim in free}
    searched = {dim: SEARCHED if size == PICTURE else size for dim, size in usual.items()}
    if searched != usual and detectors.is_detector(model, facts, required.shapes, {**known, **searched}):
        usual = searched
    usual |= dict.fromkeys(_find_point_dims(model, facts) & {*free}, POINTED)
    framed = {dim for port, shape in ports if _is_spectrum(port["name"], shape) for dim in shape[1:]}
    usual |= {dim: FRAMES for dim in free if dim in framed}
    if stepped := _make_step_sizes(facts, free, required):
        longest = context.count_context_tokens(model, inputs=facts["inputs"]) or PAST + STEP
        for past in dict.fromkeys((min(PAST, longest - STEP), SEQUENCE)):
            yield {**known, **usual, **{dim: past if size == PAST else size for dim, size in stepped.items()}}
    yield from ({**known, **usual, **hint} for hint in _propose_hints(model, ports, free, required))
    yield {**known, **usual}
    ordered = PICTURES if set(usual.values()) in ({PICTURE}, {SEARCHED}) else SEQUENCES
    yield from ({**known, **dict.fromkeys(free, size)} for size in ordered)
    if len(free) > 1:
        yield from ({**known, **usual, dim: size} for dim in free for size in (1, SEQUENCE))


def suggest_sizes_from_complaint(complaint: str, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Change one size so that what ONNX Runtime complained of fits the size that the model was exported with.

    Return a dict for each size that may be meant; none where the complaint names no sizes.
    """
    pairs: list[tuple[int, int]] = []
    if reshaped := _RESHAPED.search(complaint):
        before, after = ([int(size) for size in shape.split(",")] for shape in reshaped.groups())
        pairs = [(size, _find_fitting_size(after, size, math.prod(before) // size)) for size in before if size > 1]
    elif broadcast := _BROADCAST.search(complaint):
        left, right = map(int, broadcast.groups())
        pairs = [(left, right), (right, left)]
    return [
        {**sizes, dim: wanted}
        for size, wanted in pairs
        for dim in sizes
        if sizes[dim] == size and size != wanted and 0 < wanted <= _LARGEST_HINT
    ]


def _find_fitting_size(shape: list[int], size: int, rest: int) -> int:
    """Find the size in place of `size` that fits a Reshape's `shape`, with `rest` numbers at each place; 0: none does.

    Where the shape has a -1, it is the next size that divides evenly.
    """
    known = math.prod(part for part in shape if part != -1)
    if -1 in shape:
        step = known // math.gcd(known, rest) if known and rest else 0
        return step and -(-size // step) * step
    return known // rest if rest and known % rest == 0 else 0


def make_prompt_sizes(
    sizes: Mapping[str, int], facts: signature.Signature, required: consumers.Required
) -> dict[str, int]:
    """Make sizes for a prompt of SEQUENCE tokens with an empty cache from those of one step after a cache.

    Return an empty dict for a model without such a cache.
    """
    changed = {
        dim: 0 if size == PAST else SEQUENCE for dim, size in _make_step_sizes(facts, list(sizes), required).items()
    }
    return _add_sums({**sizes, **changed}, facts, required) if set(changed.values()) == {0, SEQUENCE} else {}


def _make_step_sizes(facts: signature.Signature, free: list[str], required: consumers.Required) -> dict[str, int]:
    """Make sizes for a single step after a cache of earlier ones; empty for a model without such a cache."""
    pasts = {dim: PAST for dim in free if dim in required.pasts}
    return {**pasts, **{dim: STEP for dim in free if dim in _find_step_dims(facts, required)}} if pasts else {}


def _find_step_dims(facts: signature.Signature, required: consumers.Required) -> set[str]:
    """Find the dimensions by which the cache grows: those that inference found, else the lengths of token inputs."""
    tokens = (port for port in facts["inputs"] if input_roles.is_integer(port) and not input_roles.is_mask(port))
    lasts = {dim for port in tokens if len(port["shape"] or ()) == 2 for dim in (port["shape"] or ())[1:]}
    return required.steps or {dim for dim in lasts if isinstance(dim, str)} - required.pasts


def _is_repeated(dim: str, model: onnx.ModelProto, facts: signature.Signature) -> bool:
    """Say whether a dimension counts items that are computed at once, and so may be 1.

    It is the batch, a dimension named like one, or one that only states have.
    """
    if dim == facts["batch"]:
        return True
    if dim.lower() not in ("n", "b") and signature.counts_items(dim, [port["shape"] for port in facts["inputs"]]):
        return True
    places = [(port, at) for port in facts["inputs"] for at, size in enumerate(port["shape"] or ()) if size == dim]
    if all(input_roles.holds_state(port, model) for port, _ in places):
        # keys and values have a length, of a past or of what an encoder gave; other states count what is done at once
        holds_length = all(len(port["shape"] or ()) == 4 and at == 2 for port, at in places)
        return not holds_length and not _PAST.search(dim)
    says_nothing = dim.lower() in ("n", "b") or all(dim == f"{port['name']}.{at}" for port, at in places)
    return says_nothing and all(at == 0 and len(port["shape"] or ()) > 1 for port, at in places)


def _find_point_dims(model: onnx.ModelProto, facts: signature.Signature) -> set[str]:
    """Find dimensions that count points: one input has two coordinates for each, another a label for each."""
    coordinates = {shape[-2] for port in facts["inputs"] if (shape := port["shape"] or [])[1:] and shape[-1] == 2}
    lasts = ((port, str((port["shape"] or [""])[-1])) for port in facts["inputs"])
    return {last for port, last in lasts if last in coordinates and input_roles.list_compared_numbers(port, model)}


def _guess_size(dim: str, shapes: Sequence[Shape]) -> int:
    """Guess the size of a dimension from its name and place: a picture's side, samples of sound, else a sequence."""
    if _PICTURE_WORDS.search(dim) or any(_is_picture(shape, dim) for shape in shapes):
        return PICTURE
    return SAMPLES if _SOUND_WORDS.search(dim) else SEQUENCE


def _is_picture(shape: Shape, dim: str) -> bool:
    if len(shape) != 4 or dim not in shape:
        return False
    return (shape[1] in _CHANNELS and dim in shape[2:]) or (shape[3] in _CHANNELS and dim in shape[1:3])


def _is_latent(name: str, shape: Shape) -> bool:
    return len(shape) == 4 and bool(_LATENT_WORDS.search(name)) and (shape[1] == 4 or "latent" in name.lower())


def _is_spectrum(name: str, shape: Shape) -> bool:
    """Say whether an input is a spectrum: a usual number of bands on one of its last two axes, and such a name."""
    return len(shape) == 3 and bool(_BANDS & {*shape[1:]}) and bool(_SPECTRUM_WORDS.search(name))


def _propose_hints(
    model: onnx.ModelProto, ports: Sequence[tuple[signature.Port, Shape]], free: list[str], required: consumers.Required
) -> Iterator[dict[str, int]]:
    """Yield sizes that the model hints at: of the pictures it was made for, of the sound its convolutions take."""
    noted = _read_noted_size(model)
    for port, shape in ports:
        # height before width, both where the picture's shape has them
        both = [dim for dim in shape if isinstance(dim, str) and dim in free and _is_picture(shape, dim)]
        if noted and both:
            yield dict(zip(both, noted[-len(both) :], strict=False))
        if len(both) > 1:
            yield from (dict(zip(both, grid, strict=False)) for grid in _propose_grids(model, port["name"], required))
        if both:
            yield from (dict.fromkeys(both, side) for side in _propose_sides(model, port["name"], required.tables))
    has_rate = any(input_roles.find_compared_number(port, model) == input_roles.USUAL_RATE for port, _ in ports)
    for port, shape in ports:
        last = shape[-1] if shape else None
        if isinstance(last, str) and last in free and _is_spectrum(port["name"], shape):
            yield from ({last: rows * _multiply_strides(model)} for rows in required.tables)
        elif isinstance(last, str) and last in free and 1 <= len(shape) <= 3:
            yield from ({last: size} for size in _propose_lengths(model, port["name"], required, has_rate=has_rate))


def _propose_lengths(
    model: onnx.ModelProto, name: str, required: consumers.Required, *, has_rate: bool
) -> Iterator[int]:
    """Yield lengths of sound: as a table of positions says, one second, or some strides of the first convolution.

    `has_rate`: the model takes a sampling rate, as models do that listen to one frame at a time.
    """
    yield from (rows * _multiply_strides(model) for rows in required.tables)
    convolutions = [node for node in _list_first_convolutions(model, name) if len(_read_strides(node)) == 1]
    stride = max((_read_strides(node)[0] for node in convolutions), default=0)
    if stride > 1:
        # one channel that is taken in strides is sound as it was recorded
        is_recorded = all(required.shapes.get(node.input[1], [])[1:2] == [1] for node in convolutions)
        yield from (SAMPLES,) if is_recorded and not has_rate else ()
        yield min(max(_STRIDES * stride, SEQUENCE), _LARGEST_HINT)
    yield from (FRAME,) if has_rate else ()


def _propose_grids(model: onnx.ModelProto, name: str, required: consumers.Required) -> Iterator[list[int]]:
    """Yield picture sizes with as many patches as a stored grid of positions that the graph resizes."""
    fixed, stride = {tensor.name for tensor in model.graph.initializer}, _find_patch_side(model, name)
    for node in model.graph.node:
        grid = required.shapes.get(node.input[0], [])[2:] if node.op_type == "Resize" and node.input else []
        if {*node.input} - {""} <= fixed:
            fixed.update(node.output)
        elif len(grid) == 2 and node.input[0] in fixed:
            sides = [side * stride for side in grid if isinstance(side, int) and 0 < side * stride <= _LARGEST_HINT]
            yield from [sides] if len(sides) == 2 else []


def _find_patch_side(model: onnx.ModelProto, name: str) -> int:
    """Find the stride of a picture's first convolution, which is the side of one patch."""
    strides = [_read_strides(node) for node in _list_first_convolutions(model, name)]
    return max((both[0] for both in strides if len(both) == 2), default=1)


def _propose_sides(model: onnx.ModelProto, name: str, tables: list[int]) -> Iterator[int]:
    """Yield sides of square pictures with as many patches as a table of positions has rows, but for a few tokens."""
    stride = _find_patch_side(model, name)
    for rows in tables:
        patches = (rows - tokens for tokens in range(min(_MOST_TOKENS, rows)))
        side = next((math.isqrt(many) for many in patches if math.isqrt(many) ** 2 == many), 0)
        if 0 < side * stride <= _LARGEST_HINT:
            yield side * stride


def _read_noted_size(model: onnx.ModelProto) -> list[int]:
    for entry in model.metadata_props:
        if entry.key.lower() in _NOTED:
            try:
                found = json.loads(entry.value)
            except (ValueError, RecursionError):
                return []
            sizes = found if isinstance(found, list) else [found, found]
            if len(sizes) == 2 and all(type(size) is int and 0 < size <= _LARGEST_HINT for size in sizes):
                return sizes
    return []


def _list_first_convolutions(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    """List the convolutions that read the input before anything else computes with it."""
    carried, found = input_roles.find_tensors_holding(model, name), []
    for node in traversal.iterate_nodes(model, with_functions=False):
        if not node.input or node.input[0] not in carried:
            continue
        if node.op_type in ("Pad", "Unsqueeze", "Reshape", "Squeeze"):
            carried.update(node.output)
        if node.op_type == "Conv":
            found.append(node)
    return found


def _multiply_strides(model: onnx.ModelProto) -> int:
    """Multiply the strides of all convolutions along one axis: how many steps of sound become one."""
    found = (_read_strides(node) for node in model.graph.node if node.op_type == "Conv")
    return min(math.prod(strides[0] for strides in found if len(strides) == 1), _LARGEST_HINT)


def _read_strides(node: onnx.NodeProto) -> list[int]:
    return next((list(attribute.ints) for attribute in node.attribute if attribute.name == "strides"), [])


def _add_sums(sizes: Mapping[str, int], facts: signature.Signature, required: consumers.Required) -> dict[str, int]:
    """Set dimensions that are sums of others.

    They are named so, like `past_sequence_length + sequence_length`, or belong to a mask over the cache and the step.
    """
    found, dims = dict(sizes), facts["dims"]
    past = next((dim for dim in dims if dim in required.pasts), None) or next(
        (dim for dim in dims if _PAST.search(dim) and not _SUM.match(dim)), None
    )
    named = (dim for dim in dims if "seq" in dim.lower() and not _PAST.search(dim) and not _TOTAL.search(dim))
    steps = _find_step_dims(facts, required) if required.pasts else set()
    now = next((dim for dim in dims if dim in steps), None) or next(named, None)
    others = {dim for port in facts["inputs"] if not input_roles.is_mask(port) for dim in port["shape"] or ()}
    for dim in dims:
        if parts := _SUM.match(dim):
            numbers = [int(part) if part.isdecimal() else sizes.get(part) for part in parts.groups()]
            if all(number is not None for number in numbers):
                found[dim] = sum(number for number in numbers if number is not None)
        elif past is not None and now is not None and (_TOTAL.search(dim) or (required.pasts and dim not in others)):
            found[dim] = sizes[past] + sizes[now]
    return found
