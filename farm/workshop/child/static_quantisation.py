"""Makes static 8-bit variants, with ranges of activations from calibration data. Runs in the child only."""

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from farm.workshop import options
from farm.workshop.child import calibration, quantisation, storage
from farm.workshop.problems import Problem, first_line

_FORMATS = {"int8-qdq": QuantFormat.QDQ, "int8-qoperator": QuantFormat.QOperator}
_METHODS = {
    "minmax": CalibrationMethod.MinMax,
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
}
_TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}


def quantise_statically(
    model: onnx.ModelProto, *, work: Path, precision: str, chosen: Mapping[str, str], samples: Path | None
) -> tuple[onnx.ModelProto, list[str]]:
    """Quantise weights and activations to 8-bit integers in QDQ or QOperator form, and say what was done.

    `samples` is an `.npz`, None takes random ones; `work` is a folder for scratch files. Activations are
    unsigned unless `chosen` says otherwise, as planning does by hardware. Raises Problem with the code
    already_quantised, bad_option, bad_calibration, bad_arrays, nothing_quantised or quantising_failed.
    """
    parsed = options.parse_options(chosen, precision=precision, nodes=[node.name for node in model.graph.node])
    quantisation.check_not_quantised(model)
    feeds, sample_sentences = calibration.make_feeds(model, samples)
    activation = parsed.activation or "uint8"
    misread = quantisation.list_misread_attention(model)
    source, target = _prepare(model, work), work / "quantised.onnx"
    try:
        quantize_static(
            source,
            target,
            calibration.CalibrationReader(feeds),
            quant_format=_FORMATS[precision],
            op_types_to_quantize=parsed.op_types or None,
            per_channel=parsed.per_channel,
            reduce_range=parsed.reduce_range,
            activation_type=_TYPES[activation],
            weight_type=_TYPES[parsed.weight],
            nodes_to_exclude=[*parsed.exclude_nodes, *misread],
            use_external_data_format=storage.is_too_large_for_protobuf(model),
            calibrate_method=_METHODS[parsed.calibration],
            extra_options={"ActivationSymmetric": parsed.symmetric},
        )
    except Exception as error:  # the tool raises many undocumented kinds of errors
        raise Problem("quantising_failed", f"Static quantisation failed ({first_line(error)}).") from error
    description = f"{precision}, activations {activation}, weights {parsed.weight}, ranges by {parsed.calibration}"
    quantised, history = quantisation.finish_quantised(
        model, onnx.load(target), description=description + parsed.describe(), left_out=misread
    )
    return quantised, [*history, *sample_sentences]


def _prepare(model: onnx.ModelProto, work: Path) -> Path:
    """Write the model after shape inference and basic optimisation, which let more operators be quantised.

    The tool's symbolic inference fails on some models, which are then prepared without it.
    """
    source, prepared = work / "plain.onnx", work / "prepared.onnx"
    storage.write_model(quantisation.copy_without_shapes(model), work, "plain.onnx")
    for skip in (False, True):
        try:
            quant_pre_process(
                source,
                prepared,
                skip_symbolic_shape=skip,
                save_as_external_data=storage.is_too_large_for_protobuf(model),
            )
        except Exception as error:  # the tool raises bare Exception
            if skip:
                text = f"Preparing the model for quantisation failed ({first_line(error)})."
                raise Problem("quantising_failed", text) from error
        else:
            break
    return prepared
