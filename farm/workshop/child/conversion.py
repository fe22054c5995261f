"""Converts a model to another operator set. Runs in the child only."""

import re

import numpy as np
import onnx
from onnx import inliner, version_converter

from farm.rules.runtimes import conversions
from farm.workshop.arrays import Array
from farm.workshop.child import consumers, reference, signature, size_candidates, version_stamps
from farm.workshop.child import inputs as feeding
from farm.workshop.problems import Problem, first_line, printable

_NO_ADAPTER = (
    re.compile(r"No Adapter (?:From|To) Version \$?(?P<version>\d+) for (?P<operator>\w+)", re.I),
    re.compile(r"No Previous Version of (?P<operator>\w+) exists"),
)
# tolerances of the comparison, which are narrow: a conversion should not change what the model computes
_ATOL, _RTOL = 1e-5, 1e-4


def convert_opset(model: onnx.ModelProto, target: int) -> tuple[onnx.ModelProto, list[str]]:
    """Convert the model to another default operator set, and say in sentences what was done.

    Unused operator sets are removed and the IR version is lowered too. Functions of the model are inlined if it has to
    be converted. A model that has this operator set already is changed in place. The outputs are not compared;
    `check_same_outputs` does that. Raises Problem with the code no_adapter or conversion_failed.
    """
    current = version_stamps.read_default_opset(model)
    if current is None:
        raise Problem("no_adapter", "The model names no default operator set, so it cannot be converted to another.")
    history: list[str] = []
    if target != current:
        model, history = _convert_with_reason(model, current=current, target=target)
    return model, [*history, *version_stamps.remove_unused_opsets(model), *version_stamps.lower_ir_version(model)]


def check_same_outputs(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Compare the outputs of both models on seeded inputs and return the result as one sentence.

    If this process's runtime cannot run them, the sentence says so. Raises Problem conversion_failed if the
    outputs differ.
    """
    facts = signature.read_signature(before)
    try:
        chosen = next(
            size_candidates.list_candidates(before, facts, required=consumers.find_required_sizes(before, facts))
        )
        inputs = feeding.make_seeded_inputs(before, facts, chosen=chosen, seed=0)
        old, _ = reference.run_reference(before.SerializeToString(), inputs)
        new, _ = reference.run_reference(after.SerializeToString(), inputs)
    except Problem as problem:
        return [f"The outputs were not compared with the original's: {problem.text}"]
    for name, value in old.items():
        _check_output(name, value, new.get(name))
    return [f"The outputs are the original's on seeded inputs (atol {_ATOL:g}, rtol {_RTOL:g}; {reference.MADE_BY})."]


def _check_output(name: str, old: Array, new: Array | None) -> None:
    is_number = old.dtype.kind in "fiub"
    same = (
        new is not None
        and old.shape == new.shape
        and (
            np.allclose(new.astype(np.float64), old.astype(np.float64), atol=_ATOL, rtol=_RTOL, equal_nan=True)
            if is_number
            else bool(np.array_equal(old, new))
        )
    )
    if not same:
        text = (
            f"The converted model computes another {printable(name)!r} than the original: measure the model as it is."
        )
        raise Problem("conversion_failed", text)


def _convert_with_reason(model: onnx.ModelProto, *, current: int, target: int) -> tuple[onnx.ModelProto, list[str]]:
    if model.functions:
        model = inliner.inline_local_functions(model)
    try:
        converted = convert_with_onnx(model, target)
    except Problem as problem:
        raise Problem(problem.code, conversions.explain_stop(problem.text, current=current, wanted=target)) from problem
    return converted, [f"Converted from opset {current} to {target} with onnx {onnx.__version__}."]


def convert_with_onnx(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """Convert by onnx's converter alone. Raises Problem no_adapter or conversion_failed, with a clause as its text.

    An invalid result has failed too, unless the original is invalid.
    """
    try:
        converted = version_converter.convert_version(model, target)
    except Exception as error:  # the converter raises RuntimeError and others, undocumented
        for pattern in _NO_ADAPTER:
            if match := pattern.search(str(error)):
                age = "an older" if target < (version_stamps.read_default_opset(model) or 0) else "a newer"
                text = f"no adapter leads to {age} version of {match['operator']}"
                raise Problem("no_adapter", text) from error
        raise Problem("conversion_failed", f"onnx's converter fails ({first_line(error)})") from error
    if (fault := _find_fault(converted)) and not _find_fault(model):
        raise Problem("conversion_failed", f"what onnx's converter makes is no valid model ({fault})")
    return converted


def _find_fault(model: onnx.ModelProto) -> str:
    """Say what onnx's checker finds invalid in the model; empty if nothing.

    The converter leaves attributes that the new operator set does not have.
    """
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        return first_line(error)
    return ""
