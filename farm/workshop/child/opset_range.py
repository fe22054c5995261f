"""Finds how far a model's operator set can be converted, by trying without large weights. Runs in the child only."""

import time
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import helper, inliner

from farm.rules.runtimes import opsets
from farm.workshop.child import conversion, model_file, payloads, version_stamps
from farm.workshop.problems import Problem, answer_problems

# the oldest operator set that is tried
_OLDEST = 7
# adapters read small constants, such as axes; weights only cost time
_SMALL_BYTES = 4096
_MAX_S = 8.0


@answer_problems
def find_opset_range(payload: payloads.Model) -> dict[str, object]:
    """Return the oldest and newest operator set that the payload's model can be converted to, and what stops it there.

    The reasons are empty if the end of the table was reached or time was up; an operator set is None if time was
    up. Returns the problem no_adapter where the model names no default operator set.
    """
    model = model_file.read_model(Path(payload["folder"]), payload["main"])
    current = version_stamps.read_default_opset(model)
    if current is None:
        raise Problem("no_adapter", "The model names no default operator set, so it cannot be converted to another.")
    light = _copy_without_weights(inliner.inline_local_functions(model) if model.functions else model)
    until = time.monotonic() + _MAX_S
    newest = opsets.max_opset(f"{opsets.NEWEST[0]}.{opsets.NEWEST[1]}") or current
    highest, above = _find_last_step(light, range(current + 1, newest + 1), start=current, until=until)
    lowest, below = _find_last_step(light, range(current - 1, _OLDEST - 1, -1), start=current, until=until)
    return {"lowest": lowest, "below": below, "highest": highest, "above": above}


def _find_last_step(
    model: onnx.ModelProto, steps: Sequence[int], *, start: int, until: float
) -> tuple[int | None, str]:
    """Find the last step that works and why the next one fails, by bisection; None and no reason when time was up.

    Without a step that works, `start` is the last one. Bisection is valid because a converter that fails at a step also
    fails at all later ones.
    """
    reached, failing, reason = -1, len(steps), ""
    step = len(steps) - 1
    while reached + 1 < failing:
        if time.monotonic() > until:
            return None, ""
        try:
            conversion.convert_with_onnx(model, steps[step])
            reached = step
        except Problem as problem:
            failing, reason = step, problem.text
        step = (reached + failing) // 2
    return steps[reached] if reached >= 0 else start, reason


def _copy_without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy the model with its large stored tensors as inputs of the same type and shape."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    graph, named = light.graph, {port.name for port in light.graph.input}
    large = [tensor for tensor in graph.initializer if tensor.ByteSize() > _SMALL_BYTES or tensor.external_data]
    for tensor in large:
        if tensor.name not in named:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        graph.initializer.remove(tensor)
    light.ir_version = max(light.ir_version, 4)
    return light
