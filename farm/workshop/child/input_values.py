"""Chooses fills for inputs for which the user gives none, and makes the arrays. Runs in the child only."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from farm.rules.cells import fills
from farm.rules.cells.fills import Fill
from farm.rules.cells.problems import MatrixProblem
from farm.workshop.arrays import Array
from farm.workshop.child import bounds, input_roles, signature, traversal
from farm.workshop.child.consumers import Requirements
from farm.workshop.problems import Problem, printable

# values of inputs that are a count, and the side of an image
_COUNT, _SIDE = 3, 640
# the largest coordinate of a box in whole numbers
_PAGE = 1000
# strings are made of these words where no operator has a table of the strings that it knows
_WORDS = "the quick brown fox jumps over a lazy dog while seven white birds watch"
_WORDS_EACH = 8
_MAX_CODES = 16
# attributes that hold the strings that an operator knows
_STRING_TABLES = ("pool_strings", "cats_strings", "keys_strings", "string_vocabulary", "classlabels_strings")
_SPLITS = {"Tokenizer", "StringSplit", "RegexSplitWithOffsets"}


def choose_fills(model: onnx.ModelProto, facts: signature.Signature, required: Requirements) -> dict[str, str]:
    """Choose a fill for each input, by name, with values that the operators behind it accept."""
    limits = bounds.find_upper_bounds(model, [port["name"] for port in facts["inputs"]], shapes=required.shapes)
    limits = {name: limit for name, limit in limits.items() if isinstance(limit, int) or limit in facts["dims"]}
    pasts = [dim for dim in facts["dims"] if dim in required.past_dims]
    for port in facts["inputs"]:
        if (choices := input_roles.find_greatest_compared_number(port, model)) and choices >= 1:
            limits.setdefault(port["name"], choices + 1)
    return {
        port["name"]: _choose_by_role(port, model, facts, pasts)
        or _choose_by_limit(port, model, limits.get(port["name"]))
        for port in facts["inputs"]
    }


def make_array(
    text: str, port: signature.Port, *, shape: list[int], sizes: Mapping[str, int], seeds: tuple[int, int]
) -> Array:
    """Make the array that the fill `text` describes. Raises Problem bad_input if the input cannot hold it.

    `seeds` are the seed of the run and the index of the input. A seed in the text replaces that of the run.
    """
    fill = _parse_fill(text, port)
    random = np.random.default_rng([seeds[0] if fill.seed is None else fill.seed, seeds[1]])
    if port["dtype"] == "string":
        return _draw_strings(fill, shape, random)
    if port["dtype"] != "bfloat16":
        return _make_numbers(fill, port, shape=shape, dtype=signature.find_dtype(port), sizes=sizes, random=random)
    values = _make_numbers(fill, port, shape=shape, dtype=np.dtype(np.float32), sizes=sizes, random=random)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def _draw_strings(fill: Fill, shape: list[int], random: np.random.Generator) -> Array:
    texts = np.array(fill.texts or _WORDS.split())
    if fill.kind == fills.TEXT:
        return random.choice(texts, size=shape)
    words = random.choice(texts, size=[*shape, _WORDS_EACH])
    return np.array([" ".join(row) for row in words.reshape(-1, _WORDS_EACH)]).reshape(shape)


def _make_numbers(
    fill: Fill,
    port: signature.Port,
    *,
    shape: list[int],
    dtype: np.dtype[Any],
    sizes: Mapping[str, int],
    random: np.random.Generator,
) -> Array:
    if fill.kind == fills.BOXES:
        return _draw_boxes(fill, port, shape, dtype, random)
    if fill.kind in (fills.NORMAL, fills.OF, "range"):
        return _draw(fill, shape, dtype, random)
    if fill.dimension and fill.dimension not in sizes:
        text = f"The input {printable(port['name'])!r} cannot be the size of {printable(fill.dimension)!r}"
        raise Problem("bad_input", f"{text}: the model has no such dynamic dimension.")
    if fill.kind == fills.BELOW:
        return _draw_between(replace(fill, high=max(0, sizes[fill.dimension] - 1)), shape, dtype, random)
    if fill.kind == fills.POSITIONS:
        start = sizes[fill.dimension] if fill.dimension else 0
        counted = np.arange(start, start + (shape[-1] if shape else 1))
        return np.broadcast_to(counted.astype(dtype), shape).copy()
    if fill.kind == "size":
        return np.full(shape, sizes[fill.dimension], dtype=dtype)
    return np.full(shape, fill.low, dtype=dtype)


def _draw(fill: Fill, shape: list[int], dtype: np.dtype, random: np.random.Generator) -> Array:
    if fill.kind == fills.NORMAL:
        return random.standard_normal(shape).astype(dtype)
    if fill.kind == fills.OF:
        return random.choice(np.array(fill.numbers), size=shape).astype(dtype)
    return _draw_between(fill, shape, dtype, random)


def _parse_fill(text: str, port: signature.Port) -> Fill:
    try:
        fill = fills.parse(text)
    except MatrixProblem as problem:
        raise Problem("bad_input", str(problem)) from problem
    if (why := fills.misfit_reason(fill, port["dtype"])) is not None:
        raise Problem("bad_input", f"The input {printable(port['name'])!r} takes {port['dtype']}: {why}")
    return fill


def _draw_between(fill: Fill, shape: list[int], dtype: np.dtype, random: np.random.Generator) -> Array:
    if dtype.kind == "f":
        return random.uniform(fill.low, fill.high, size=shape).astype(dtype)
    kind = np.dtype(np.int64) if dtype.kind == "b" else dtype
    return random.integers(int(fill.low), int(fill.high), size=shape, endpoint=True, dtype=kind).astype(dtype)


def _draw_boxes(
    fill: Fill, port: signature.Port, shape: list[int], dtype: np.dtype, random: np.random.Generator
) -> Array:
    if shape[-1:] != [4]:
        text = f"The input {printable(port['name'])!r} has the shape {shape}: boxes are four numbers each."
        raise Problem("bad_input", f"{text} Write LOW..HIGH.")
    corners = _draw_between(fill, [*shape[:-1], 2, 2], dtype, random)
    return np.sort(corners, axis=-2).reshape(shape)


def _choose_by_role(
    port: signature.Port, model: onnx.ModelProto, facts: signature.Signature, pasts: list[str]
) -> str | None:
    """Choose a fill by the input's role, such as ones for a mask and zeros for a state; None for no known role."""
    if port["dtype"] == "string":
        return _find_known_texts(port, model)
    if signature.find_numpy_kind(port) in ("b", "i", "u") and input_roles.is_hiding_mask(port, model):
        return fills.ZERO
    if input_roles.is_mask(port):
        return fills.ONE
    if (compared_number := input_roles.find_compared_number(port, model)) is not None:
        return str(compared_number)
    if input_roles.holds_state(port, model):
        return fills.ZERO
    if input_roles.holds_positions(port):
        return f"{fills.POSITIONS}:{pasts[0]}" if pasts else fills.POSITIONS
    if input_roles.holds_length(port):
        return _choose_length(port, facts)
    return fills.ONE if input_roles.holds_factor(port) or input_roles.holds_divisors(port, model) else None


def _find_known_texts(port: signature.Port, model: onnx.ModelProto) -> str | None:
    """Find the strings that operators behind the input have in their tables, as a fill; None if there are none."""
    carriers, is_split, texts = {port["name"]}, False, list[str]()
    for node in traversal.iterate_nodes(model, with_functions=False):
        if node.input and carriers & set(node.input) and node.output:
            is_split |= node.op_type in _SPLITS
            tables = [
                attribute.strings
                for attribute in node.attribute
                if attribute.name in _STRING_TABLES and attribute.strings
            ]
            texts += [text.decode(errors="ignore") for table in tables for text in table]
            carriers |= set() if tables else set(node.output)
    fill = f"{fills.WORDS if is_split else fills.TEXT}:"
    for word in dict.fromkeys(texts):
        if word and word.isprintable() and not set(word) & {"|", "@"} and len(fill) + len(word) < fills.MAX_TEXT:
            fill += word if fill.endswith(":") else f"|{word}"
    return None if fill.endswith(":") else fill


def _choose_length(port: signature.Port, facts: signature.Signature) -> str:
    """Choose the length, after the batch, of the input that this one is named after, else of the first other one."""
    others = [other for other in facts["inputs"] if other["name"] != port["name"] and len(other["shape"] or ()) > 1]
    others.sort(key=lambda other: not port["name"].startswith(other["name"].rstrip("s")))
    for other in others:
        after_batch = [dim for dim in (other["shape"] or ())[1:] if isinstance(dim, str)]
        dims = after_batch or [dim for dim in (other["shape"] or ()) if isinstance(dim, str) and dim != facts["batch"]]
        if dims:
            return f"{fills.SIZE}{dims[0]}"
    return str((others[0]["shape"] or [0, 1])[1]) if others else fills.ONE


def _choose_by_limit(port: signature.Port, model: onnx.ModelProto, limit: bounds.Limit | None) -> str:
    if signature.find_numpy_kind(port) not in ("f", "i", "u"):
        return fills.default_fill(port["dtype"])
    if limit in (bounds.COUNT, bounds.SIDE):
        return str(_SIDE if limit == bounds.SIDE and (port["shape"] or [1]) in ([1], [2], [3]) else _COUNT)
    if limit is None or not input_roles.is_integer(port):
        return _choose_by_arithmetic(port, model)
    if isinstance(limit, str):
        return f"{fills.BELOW}:{limit}"
    highest = max(0, min(limit - 1, int(np.iinfo(port["dtype"]).max)))
    return f"{fills.BOXES}:{min(highest, _PAGE)}" if input_roles.holds_boxes(port, model) else f"0..{highest}"


def _choose_by_arithmetic(port: signature.Port, model: onnx.ModelProto) -> str:
    """Choose among the numbers that the input is compared with, else from 0 to the number that is scaled to 1."""
    if codes := input_roles.list_compared_numbers(port, model):
        return f"{fills.OF}:{'|'.join(map(str, codes[:_MAX_CODES]))}"
    reach = 0 if input_roles.is_integer(port) else input_roles.find_scaled_range(port, model)
    return f"0..{reach}" if reach else fills.default_fill(port["dtype"])
