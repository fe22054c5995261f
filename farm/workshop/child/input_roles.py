"""Guesses what an input is for from its name, its shape and the operators that it feeds. Runs in the child only.

Positions are an array of integers with a name like `position_ids`. A length is one integer, or one for each row, with a
name like `lengths`.
"""

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx

from farm.workshop.child import constants, signature, traversal

_MASK = re.compile(r"mask", re.IGNORECASE)
_STATE = re.compile(
    r"(^|[._/])(h|c|hn|cn|h0|c0|h_0|c_0|h_in|c_in|mems?|memory_?\d*)(\d*)$|state|hidden|cache|^past|past_key",
    re.IGNORECASE,
)
_POSITIONS = re.compile(r"position|(^|_)pos(_ids?)?$", re.IGNORECASE)
_RATE = re.compile(r"^(sr|fs|sample_?rate|sampling_?rate)$", re.IGNORECASE)
_LENGTH = re.compile(r"(^|_)(len|lens|length|lengths|seqlens?|seq_?lengths?)(_|$)", re.IGNORECASE)
_FACTOR = re.compile(r"speed|scale|(^|_)rate|temperature|tempo", re.IGNORECASE)
_RECURRENT = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
_COMPARES = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}
_DIVIDES = {"Div", "Mod"}
# by operator: the new factor and offset of an input's values after the operator combines them with a number
_SCALES: Mapping[str, Callable[[float, float, float], tuple[float, float]]] = {
    "Add": lambda factor, offset, by: (factor, offset + by),
    "Sub": lambda factor, offset, by: (factor, offset - by),
    "Mul": lambda factor, offset, by: (factor * by, offset * by),
    "Div": lambda factor, offset, by: (factor / by, offset / by),
}
# the largest value of an input that the graph scales down, such as 255 for pixels, lies between these
_MIN_REACH, _MAX_REACH = 100, 1 << 16
# operators whose output holds numbers of their first input, in another shape
_PASS_THROUGH = {
    *("Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Expand", "Gather"),
    *("Split", "Concat"),
}
USUAL_RATE = 16_000
# a score that is replaced by a number this low is hidden; the lowest number of fp16 is -65,504
_HIDDEN = -10_000


def is_mask(port: signature.Port) -> bool:
    """Say whether the input's name contains `mask`. Ones in such an input usually let everything through."""
    return bool(_MASK.search(port["name"]))


def is_hiding_mask(port: signature.Port, model: onnx.ModelProto) -> bool:
    """Say whether the input is a mask whose ones hide values: the graph replaces these by about minus infinity."""
    carriers = find_tensors_holding(model, port["name"])
    chosen = [
        node.input[1]
        for node in traversal.iterate_nodes(model, with_functions=False)
        if node.op_type == "Where" and len(node.input) == 3 and node.input[0] in carriers
    ]
    stored = constants.read_constants(model, names=set(chosen))
    return any(value.size and value.dtype.kind == "f" and value.max() <= _HIDDEN for value in stored.values())


def holds_positions(port: signature.Port) -> bool:
    return is_integer(port) and bool(_POSITIONS.search(port["name"])) and bool(port["shape"])


def holds_length(port: signature.Port) -> bool:
    return is_integer(port) and len(port["shape"] or ()) <= 1 and bool(_LENGTH.search(port["name"]))


def holds_factor(port: signature.Port) -> bool:
    """Say whether the input may be a factor: a single float, or floats called speed, scale, rate, temperature or tempo.

    An input of open rank is not one.
    """
    is_float = signature.find_numpy_kind(port) == "f"
    is_one = all(dim == 1 for dim in port["shape"] or ())
    return is_float and port["shape"] is not None and (is_one or bool(_FACTOR.search(port["name"])))


def holds_state(port: signature.Port, model: onnx.ModelProto) -> bool:
    """Say whether the input is a state that one call hands to the next.

    It is one if it feeds the state of a recurrent operator, or if its name says so and an output has its type and
    shape. The name of a model's only input does not count. Only floats of at least two dimensions can be a state.
    """
    if signature.find_numpy_kind(port) != "f" or len(port["shape"] or ()) < 2:
        return False
    stored = {tensor.name for tensor in model.graph.initializer}
    has_others = any(value.name not in stored | {port["name"]} for value in model.graph.input)
    if has_others and _STATE.search(port["name"]) and any(_can_follow(out, port) for out in model.graph.output):
        return True
    carriers = find_tensors_holding(model, port["name"])
    return any(
        at < len(node.input) and node.input[at] in carriers
        for node in traversal.iterate_nodes(model, with_functions=False)
        for at in _RECURRENT.get(node.op_type, ())
    )


def _can_follow(output: onnx.ValueInfoProto, port: signature.Port) -> bool:
    """Say whether an output has the input's type and shape as far as both are known."""
    after, before = signature.make_port(output), port["shape"] or []
    if after["dtype"] != port["dtype"] or after["shape"] is None:
        return bool(after["dtype"] == port["dtype"])
    return len(after["shape"]) == len(before) and all(
        made == taken for made, taken in zip(after["shape"], before, strict=True) if {type(made), type(taken)} == {int}
    )


def find_compared_number(port: signature.Port, model: onnx.ModelProto) -> int | None:
    """Find the number that the model compares a single integer input with; None if there is none, or for other inputs.

    Of several numbers it is USUAL_RATE, the usual sampling rate, if that is among them, else the first. An input named
    like a sampling rate that is compared with nothing gets USUAL_RATE too.
    """
    if not is_integer(port) or any(dim != 1 for dim in port["shape"] or ()) or port["shape"] is None:
        return None
    numbers = [int(value.reshape(-1)[0]) for value in _list_operands(model, port["name"], _COMPARES) if value.size == 1]
    if _RATE.match(port["name"]) or USUAL_RATE in numbers:
        return USUAL_RATE if USUAL_RATE in numbers or not numbers else numbers[0]
    return numbers[0] if numbers else None


def find_greatest_compared_number(port: signature.Port, model: onnx.ModelProto) -> int | None:
    """Find the greatest number in the stored lists that an integer input is compared with; None if there is none.

    One-hot encodings are computed by such comparisons.
    """
    if not is_integer(port):
        return None
    lists = [
        value for value in _list_operands(model, port["name"], {"Equal"}) if value.size > 1 and value.dtype.kind in "iu"
    ]
    return max((int(value.max()) for value in lists), default=None)


def list_compared_numbers(port: signature.Port, model: onnx.ModelProto) -> list[int]:
    """List the integers that an input of several numbers is compared with, such as labels of points, sorted.

    Empty if there are fewer than two. If 0 and 1 are among them, only these two are listed, as the others stand
    for padding, corners or ends.
    """
    if all(dim == 1 for dim in port["shape"] or ()):
        return []
    values = [
        value
        for value in _list_operands(model, port["name"], {"Equal"})
        if value.size == 1 and value.dtype.kind in "fiu"
    ]
    low, high = (
        (np.iinfo(port["dtype"]).min, np.iinfo(port["dtype"]).max) if is_integer(port) else (-_MAX_REACH, _MAX_REACH)
    )
    numbers = sorted({int(value.item()) for value in values if low <= value.item() <= high and value.item() % 1 == 0})
    if len(numbers) < 2:
        return []
    return [0, 1] if {0, 1} <= {*numbers} else numbers


def holds_boxes(port: signature.Port, model: onnx.ModelProto) -> bool:
    """Say whether the input holds boxes: four columns (left, upper, right, lower), some subtracted from others."""
    carriers = find_tensors_holding(model, port["name"])
    return (port["shape"] or [0])[-1] == 4 and any(
        node.op_type == "Sub" and carriers >= {*node.input}
        for node in traversal.iterate_nodes(model, with_functions=False)
    )


def find_scaled_range(port: signature.Port, model: onnx.ModelProto) -> int:
    """Find the value that the graph scales to 1 where it scales an input to 0..1 or -1..1, like 255 for pixels.

    0 if the input is not scaled, or the value is not from _MIN_REACH to _MAX_REACH.
    """
    scaling = [node for node in model.graph.node if node.op_type in _SCALES and len(node.input) > 1]
    stored = constants.read_constants(model, names={node.input[1] for node in scaling})
    numbers = {name: value.item() for name, value in stored.items() if value.size == 1 and value.dtype.kind in "fiu"}
    scales, reach = {port["name"]: (1.0, 0.0)}, 0
    for node in model.graph.node:
        if not node.input or node.input[0] not in scales:
            continue
        if node.op_type in _PASS_THROUGH:
            scales.update(dict.fromkeys(node.output, scales[node.input[0]]))
        elif node.op_type in _SCALES and (number := numbers.get(node.input[-1], 0)) > 0:
            scaled = _SCALES[node.op_type](*scales[node.input[0]], number)
            scales.update(dict.fromkeys(node.output, scaled))
            reach = _invert_scale(*scaled) or reach
    return reach


def _invert_scale(factor: float, offset: float) -> int:
    """Solve x × factor + offset = 1 where the offset is 0 or -1 and x may be a pixel's largest value; else 0."""
    is_scaled = factor > 0 and min(abs(offset), abs(offset + 1)) < 0.01
    end = (1 - offset) / factor if is_scaled else 0.0
    return int(end + 0.01) if _MIN_REACH <= end <= _MAX_REACH else 0


def holds_divisors(port: signature.Port, model: onnx.ModelProto) -> bool:
    """Say whether the graph divides by the integers of the input, so that none of them may be 0."""
    carriers = find_tensors_holding(model, port["name"])
    return is_integer(port) and any(
        node.op_type in _DIVIDES and len(node.input) > 1 and node.input[1] in carriers
        for node in traversal.iterate_nodes(model, with_functions=False)
    )


def find_tensors_holding(model: onnx.ModelProto, name: str) -> set[str]:
    """Find the tensors that hold values of the input unchanged, in another shape or in part, and the input itself.

    Tensors in branches and loops are included, and those in the model's own functions are not.
    """
    carriers = {name}
    for node in traversal.iterate_nodes(model, with_functions=False):
        if node.op_type in _PASS_THROUGH and node.input and node.input[0] in carriers:
            carriers.update(node.output)
    return carriers


def _list_operands(model: onnx.ModelProto, name: str, kinds: set[str]) -> Iterator[np.ndarray]:
    """Yield the stored values that operators of these kinds combine with the input's values."""
    carriers = find_tensors_holding(model, name)
    operands = [
        second
        for node in traversal.iterate_nodes(model, with_functions=False)
        if node.op_type in kinds and len(node.input) == 2
        for first, second in (node.input, reversed(node.input))
        if first in carriers
    ]
    stored = constants.read_constants(model, names=set(operands))
    yield from (stored[operand] for operand in operands if operand in stored and stored[operand].size)


def is_integer(port: signature.Port) -> bool:
    return signature.find_numpy_kind(port) in ("i", "u")
