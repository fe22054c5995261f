"""Proposes sizes to try for dynamic dimensions, the likeliest first. Runs in the child only."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import onnx

from farm.workshop.child import context, detectors, input_roles, signature, size_hints
from farm.workshop.child.consumers import Requirements
from farm.workshop.child.size_hints import AUDIO_SAMPLES, MAX_HINT, SEQUENCE, Shape, is_image, is_spectrum

MAX_TRIES = 20
IMAGE_SIDE = 224
# the side of an image in which objects are detected; how many points a prompt of a segmentation model has
DETECTION_SIDE, POINTS = 640, 2
# a decoder's usual work: the tokens in its cache, and those of the next step
PAST, STEP = 256, 1
# sizes to try in turn: a small one may run with hardly any work, so larger ones come first, except the largest images
SEQUENCE_LENGTHS = (64, 96, 128, 192, 224, 256, 320, 512, 576, 640, 1024, 48, 32, 16, 8, 1)
IMAGE_SIDES = (224, 256, 320, 192, 128, 96, 64, 48, 32, 512, 640, 576, 1024, 16, 8, 1)
_IMAGE_WORDS = re.compile(r"height|width|^[hw]$", re.IGNORECASE)
_AUDIO_WORDS = re.compile(r"sample|audio|wav", re.IGNORECASE)
# a diffusion model works on latents, eight times smaller than its images
_LATENT_WORDS = re.compile(r"latent|^(noisy_)?sample$", re.IGNORECASE)
_LATENT = 64
# errors of ONNX Runtime that name the size that the model was exported with
_RESHAPED = re.compile(r"Input shape:\{([\d,]+)\}, requested shape:\{([-\d,]+)\}")
_BROADCAST = re.compile(r"by a dimension other than 1\. (\d+) by (\d+)")
_PAST, _TOTAL = re.compile(r"past", re.IGNORECASE), re.compile(r"total", re.IGNORECASE)
_SUM = re.compile(r"^\(?\s*([A-Za-z_]\w*)\s*\+\s*(\w+)\s*\)?$")
# limit of the combinations of sizes that are tried where nodes require different ones
_MAX_COMBINATIONS = 4
# ten seconds of audio in frames of 10 ms
FRAMES = 1000


class CacheDims(NamedTuple):
    """The names of the dimensions of a decoder's cache."""

    # lengths of the cached steps
    pasts: Sequence[str]
    # lengths of the steps that one run appends
    steps: Sequence[str]

    def make_sizes(self, *, past: int, step: int) -> dict[str, int]:
        return {**dict.fromkeys(self.pasts, past), **dict.fromkeys(self.steps, step)}


def list_candidates(
    model: onnx.ModelProto, facts: signature.Signature, *, required: Requirements, batch: int = 1
) -> Iterator[dict[str, int]]:
    """Yield choices of a size for every dynamic dimension, the likeliest first, at most MAX_TRIES.

    Sizes that the graph requires stay the same; where nodes require different ones, a few combinations are tried. For
    the other dimensions, the usual sizes and those that the model hints at come first, then one size for all, and last
    another size for each dimension in turn.
    """
    candidates: list[dict[str, int]] = []
    for sizes in _propose_sizes(model, facts, batch, required):
        candidate = _add_sums(sizes, facts, required)
        if candidate not in candidates:
            candidates.append(candidate)
            yield candidate
        if len(candidates) == MAX_TRIES:
            return


def _propose_sizes(
    model: onnx.ModelProto, facts: signature.Signature, batch: int, required: Requirements
) -> Iterator[dict[str, int]]:
    choices = {dim: sizes for dim in facts["dims"] if (sizes := required.list_sizes(dim))}
    free = [dim for dim in facts["dims"] if dim not in choices]
    item_counts = {dim: batch if dim == facts["batch"] else 1 for dim in free if _counts_items(dim, model, facts)}
    for chosen in itertools.islice(itertools.product(*choices.values()), _MAX_COMBINATIONS):
        fixed = {**item_counts, **dict(zip(choices, chosen, strict=True))}
        yield from _propose_others(fixed, model, facts, required)


def _propose_others(
    fixed: dict[str, int], model: onnx.ModelProto, facts: signature.Signature, required: Requirements
) -> Iterator[dict[str, int]]:
    """Yield the fixed sizes with several choices of the others, as `list_candidates` says."""
    free = [dim for dim in facts["dims"] if dim not in fixed]
    ports = [(port, [fixed.get(str(dim), dim) for dim in port["shape"] or ()]) for port in facts["inputs"]]
    images = [shape for port, shape in ports if not input_roles.holds_state(port, model)]

    # the usual sizes, by the names of dimensions and inputs
    latents = set()
    for port, shape in ports:
        is_named = len(shape) == 4 and _LATENT_WORDS.search(port["name"])
        if is_named and (shape[1] == 4 or "latent" in port["name"].lower()):
            latents.update(shape[2:])
    usual = {dim: _LATENT if dim in latents else _guess_size(dim, images) for dim in free}
    detection = {dim: DETECTION_SIDE if size == IMAGE_SIDE else size for dim, size in usual.items()}
    if detection != usual and detectors.is_detector(model, facts, required.shapes, {**fixed, **detection}):
        usual = detection
    usual |= dict.fromkeys(_find_point_dims(model, facts) & {*free}, POINTS)
    framed = {dim for port, shape in ports if is_spectrum(port["name"], shape) for dim in shape[1:]}
    usual |= {dim: FRAMES for dim in free if dim in framed}

    # a decoder's next token after a cache
    if cache := _find_cache_dims(free, facts, required):
        max_tokens = context.count_context_tokens(model, inputs=facts["inputs"]) or PAST + STEP
        for past in dict.fromkeys((min(PAST, max_tokens - STEP), SEQUENCE)):
            yield {**fixed, **usual, **cache.make_sizes(past=past, step=STEP)}

    yield from ({**fixed, **usual, **hint} for hint in size_hints.propose_hints(model, ports, free, required))
    yield {**fixed, **usual}
    ordered = IMAGE_SIDES if set(usual.values()) in ({IMAGE_SIDE}, {DETECTION_SIDE}) else SEQUENCE_LENGTHS
    yield from ({**fixed, **dict.fromkeys(free, size)} for size in ordered)
    if len(free) > 1:
        yield from ({**fixed, **usual, dim: size} for dim in free for size in (1, SEQUENCE))


def suggest_sizes_from_error(error: str, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return a copy of `sizes` for each change of one size that may resolve ONNX Runtime's error.

    Empty if the error names no sizes.
    """
    pairs: list[tuple[int, int]] = []
    if reshaped := _RESHAPED.search(error):
        before, after = ([int(size) for size in shape.split(",")] for shape in reshaped.groups())
        pairs = [(size, _find_fitting_size(after, size, math.prod(before) // size)) for size in before if size > 1]
    elif broadcast := _BROADCAST.search(error):
        left, right = map(int, broadcast.groups())
        pairs = [(left, right), (right, left)]
    return [
        {**sizes, dim: new_size}
        for size, new_size in pairs
        for dim in sizes
        if sizes[dim] == size and size != new_size and 0 < new_size <= MAX_HINT
    ]


def _find_fitting_size(shape: list[int], size: int, numbers_per_place: int) -> int:
    """Find the size that has to replace `size` so that a Reshape to `shape` works; 0 if none does.

    Each place of the dimension holds `numbers_per_place`. If the shape has a -1, it is the next size that divides
    evenly.
    """
    fixed = math.prod(part for part in shape if part != -1)
    if -1 in shape:
        step = fixed // math.gcd(fixed, numbers_per_place) if fixed and numbers_per_place else 0
        return -(-size // step) * step if step else 0
    return fixed // numbers_per_place if numbers_per_place and fixed % numbers_per_place == 0 else 0


def make_prompt_sizes(sizes: Mapping[str, int], facts: signature.Signature, required: Requirements) -> dict[str, int]:
    """Make sizes for a prompt of SEQUENCE tokens with an empty cache from those of one step after a cache.

    Return an empty dict for a model without such a cache.
    """
    cache = _find_cache_dims(sizes, facts, required)
    prompt = cache.make_sizes(past=0, step=SEQUENCE) if cache else {}
    return _add_sums({**sizes, **prompt}, facts, required) if set(prompt.values()) == {0, SEQUENCE} else {}


def _find_cache_dims(dims: Iterable[str], facts: signature.Signature, required: Requirements) -> CacheDims | None:
    past_dims = [dim for dim in dims if dim in required.past_dims]
    if not past_dims:
        return None
    step_dims = _find_step_dims(facts, required)
    return CacheDims(past_dims, [dim for dim in dims if dim in step_dims])


def _find_step_dims(facts: signature.Signature, required: Requirements) -> set[str]:
    """Find the dimensions by which the cache grows: those that inference found, else the lengths of token inputs."""
    tokens = (port for port in facts["inputs"] if input_roles.is_integer(port) and not input_roles.is_mask(port))
    lasts = {dim for port in tokens if len(port["shape"] or ()) == 2 for dim in (port["shape"] or ())[1:]}
    return required.step_dims or {dim for dim in lasts if isinstance(dim, str)} - required.past_dims


def _counts_items(dim: str, model: onnx.ModelProto, facts: signature.Signature) -> bool:
    """Say whether a dimension counts items that are computed at once, and so may be 1.

    Such a dimension is the batch, is named like a batch, or is one that only states have.
    """
    if dim == facts["batch"]:
        return True
    if dim.lower() not in ("n", "b") and signature.counts_items(dim, [port["shape"] for port in facts["inputs"]]):
        return True
    places = [(port, at) for port in facts["inputs"] for at, size in enumerate(port["shape"] or ()) if size == dim]
    if all(input_roles.holds_state(port, model) for port, _ in places):
        # cached keys and values have a length, of earlier steps or of an encoder's output; other states count items
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
    """Guess the size of a dimension from its name and place: an image's side, audio samples, else a sequence."""
    if _IMAGE_WORDS.search(dim) or any(is_image(shape, dim) for shape in shapes):
        return IMAGE_SIDE
    return AUDIO_SAMPLES if _AUDIO_WORDS.search(dim) else SEQUENCE


def _add_sums(sizes: Mapping[str, int], facts: signature.Signature, required: Requirements) -> dict[str, int]:
    """Set dimensions that are sums of others.

    They are named so, like `past_sequence_length + sequence_length`, or belong to a mask over the cache and the step.
    """
    # the dimensions of cache and step, as the graph shows them, else as their names say
    summed, dims = dict(sizes), facts["dims"]
    past = next((dim for dim in dims if dim in required.past_dims), None) or next(
        (dim for dim in dims if _PAST.search(dim) and not _SUM.match(dim)), None
    )
    named = (dim for dim in dims if "seq" in dim.lower() and not _PAST.search(dim) and not _TOTAL.search(dim))
    steps = _find_step_dims(facts, required) if required.past_dims else set()
    step = next((dim for dim in dims if dim in steps), None) or next(named, None)

    others = {dim for port in facts["inputs"] if not input_roles.is_mask(port) for dim in port["shape"] or ()}
    for dim in dims:
        if parts := _SUM.match(dim):
            numbers = [int(part) if part.isdecimal() else sizes.get(part) for part in parts.groups()]
            if all(number is not None for number in numbers):
                summed[dim] = sum(number for number in numbers if number is not None)
        elif past and step and (_TOTAL.search(dim) or (required.past_dims and dim not in others)):
            summed[dim] = sizes[past] + sizes[step]
    return summed
