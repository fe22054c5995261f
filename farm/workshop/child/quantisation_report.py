"""Reports what quantisation did to a model: which operators took part, with which scales, and where the error is.

Runs in the child only. Errors are signal-to-noise ratios in decibels, as ONNX Runtime's qdq_loss_debug computes them:
lower is worse.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import numpy as np
import onnx
from onnxruntime.quantization import qdq_loss_debug

from farm.workshop.arrays import Array
from farm.workshop.child import calibration, constants, model_file, payloads, storage
from farm.workshop.problems import Problem, answer_problems, first_line

# operators worth quantising; others cost little or cannot be quantised
_QUANTISED_OPERATORS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "Attention", "Gather")
_MAX_SAMPLES = 8
_MAX_SCALES = 4096

Activations = dict[str, list[Array]]


class Coverage(TypedDict):
    """The fields of an `inspection.Coverage`."""

    op_type: str
    all: int
    kept_float: list[str]


class TensorError(TypedDict):
    """The fields of an `inspection.TensorError`."""

    tensor: str
    node: str
    op_type: str
    model_db: float | None
    rounding_db: float | None


@answer_problems
def make_report(payload: payloads.Quantised) -> dict[str, object]:
    """Compare the payload's model with its variant in `variant`: coverage, weight scales, and errors by tensor.

    `data` holds samples to compare on; None takes random ones. Errors are listed with the worst first; they are None
    for forms other than QDQ. Returns the problem ranking_failed where they cannot be measured.
    """
    original = model_file.read_model(Path(payload["folder"]), payload["main"], with_data=True)
    variant = model_file.read_model(Path(payload["variant"]), payload["main"], with_data=True)
    is_qdq = any(node.op_type == "DequantizeLinear" for node in variant.graph.node)
    samples = Path(payload["data"]) if payload["data"] else None
    return {
        "coverage": measure_coverage(original, variant),
        "scales": list_weight_scales(variant) if is_qdq else {},
        "errors": rank_tensor_errors(original, variant, samples=samples, out=Path(payload["out"])) if is_qdq else None,
    }


def measure_coverage(original: onnx.ModelProto, variant: onnx.ModelProto) -> list[Coverage]:
    """Count the original's operators by kind, and name those that still read plain floats in the variant's graph.

    The list is sorted by kind. Kinds that are hardly worth quantising, and graphs inside nodes, are left out. Only a
    trace shows what a runtime makes of the variant's graph.
    """
    # operators of the variant that read plain floats
    dequantised = {name for n in variant.graph.node if n.op_type == "DequantizeLinear" for name in n.output}
    float_operators = {
        (node.op_type, node.name)
        for node in variant.graph.node
        if node.op_type in _QUANTISED_OPERATORS
        and not dequantised.issuperset(node.input[: 1 if node.op_type == "Gather" else 2])
    }

    # the same operators in the original, by kind
    before = Counter(node.op_type for node in original.graph.node if node.op_type in _QUANTISED_OPERATORS)
    float_nodes: dict[str, list[str]] = {kind: [] for kind in before}
    for node in original.graph.node:
        if (node.op_type, node.name) in float_operators:
            float_nodes[node.op_type].append(node.name)
    return [{"op_type": kind, "all": count, "kept_float": float_nodes[kind]} for kind, count in sorted(before.items())]


def list_weight_scales(variant: onnx.ModelProto) -> dict[str, list[float]]:
    """List the scales of stored tensors by name, one for each channel or one for all, _MAX_SCALES at most."""
    stored = {tensor.name for tensor in variant.graph.initializer}
    uses = {
        node.input[0]: node.input[1]
        for node in variant.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in stored
    }
    values = constants.read_constants(variant, names=set(uses.values()))
    scales_by_name = {name: values[scale].reshape(-1)[:_MAX_SCALES] for name, scale in uses.items() if scale in values}
    return {name: scales.astype(float).tolist() for name, scales in scales_by_name.items()}


def rank_tensor_errors(
    original: onnx.ModelProto, variant: onnx.ModelProto, *, samples: Path | None, out: Path
) -> list[TensorError]:
    """Rank tensors by their error against the original, the worst first; each also has the error of its own rounding.

    Both models run on the first _MAX_SAMPLES feeds of the samples. Raises Problem ranking_failed if the tool fails,
    and what `calibration.make_feeds` raises.
    """
    feeds, _ = calibration.make_feeds(original, samples)
    makers = {name: node for node in original.graph.node for name in node.output}
    with tempfile.TemporaryDirectory(dir=out) as work:
        try:
            errors = _measure_errors(original, variant, feeds[:_MAX_SAMPLES], Path(work))
        except Exception as error:  # the tool raises many undocumented kinds of errors
            raise Problem("ranking_failed", f"The errors could not be measured ({first_line(error)}).") from error
    rows = [_make_row(name, makers.get(name), measured) for name, measured in errors.items()]
    return sorted(rows, key=lambda row: row["model_db"] if row["model_db"] is not None else np.inf)


def _make_row(tensor: str, maker: onnx.NodeProto | None, measured: Mapping[str, float]) -> TensorError:
    return {
        "tensor": tensor,
        "node": maker.name if maker else "",
        "op_type": maker.op_type if maker else "",
        "model_db": _drop_infinite(measured.get("xmodel_err")),
        "rounding_db": _drop_infinite(measured.get("qdq_err")),
    }


def _measure_errors(
    original: onnx.ModelProto, variant: onnx.ModelProto, feeds: calibration.Feeds, work: Path
) -> dict[str, dict[str, float]]:
    collected: list[Activations] = []
    for name, model in (("variant", variant), ("original", original)):
        storage.write_model(model, work, f"{name}.onnx")
        augmented, large = work / f"{name}.open.onnx", storage.is_too_large_for_protobuf(model)
        qdq_loss_debug.modify_model_output_intermediate_tensors(
            work / f"{name}.onnx", augmented, save_as_external_data=large
        )
        collected.append(qdq_loss_debug.collect_activations(str(augmented), calibration.CalibrationReader(feeds)))
    matched = qdq_loss_debug.create_activation_matching(*collected)
    measured: dict[str, dict[str, float]] = qdq_loss_debug.compute_activation_error(matched)
    return measured


def _drop_infinite(number: float | None) -> float | None:
    return float(number) if number is not None and np.isfinite(number) else None
