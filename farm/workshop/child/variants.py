"""Makes variants of a model by recipe: another operator set, another precision. Runs in the child only."""

import tempfile
from pathlib import Path

import onnx

from farm.rules.cells import recipes
from farm.workshop import options
from farm.workshop.child import (
    conversion,
    external,
    four_bits,
    half_precision,
    model_file,
    payloads,
    programs,
    quantisation,
    quantisation_report,
    signature,
    static_quantisation,
    storage,
)
from farm.workshop.problems import answer_problems


@answer_problems
def make_variant(payload: payloads.Recipe) -> dict[str, object]:
    """Make the variant of the payload's model by precision, opset and options, and write it to `out` under its name.

    With `program`, the program beside the model is written instead. Returns the names of the written files, sentences
    on what was done, and which operators were quantised, or the problem of the step that failed. `opset` None keeps the
    operator set; `calibration` is for static quantisation.
    """
    folder, out = Path(payload["folder"]), Path(payload["out"])

    # a framework's own program instead of a variant
    if name := payload.get("program"):
        facts = signature.read_signature(model_file.read_model(folder, payload["main"]))
        sentence = programs.write_program(folder, out / name, inputs=facts["inputs"], outputs=facts["outputs"])
        return {"files": [name], "history": [sentence], "coverage": []}

    # convert to another operator set, then to another precision
    model = original = model_file.read_model(folder, payload["main"], with_data=True)
    history: list[str] = []
    if payload["opset"] is not None:
        before = model
        model, history = conversion.convert_opset(before, payload["opset"])
        history += conversion.check_same_outputs(before, model) if history else ["The model has this opset already."]
    with tempfile.TemporaryDirectory(dir=out) as work:
        model, conversion_history = _convert(model, payload, work=Path(work))

    had_data = bool(external.list_external_files(model_file.read_model(folder, payload["main"])))
    files = storage.write_model(model, out, payload["main"], with_data=had_data)
    is_quantised = recipes.is_quantised(payload["precision"])
    coverage = quantisation_report.measure_coverage(original, model) if is_quantised else []
    return {"files": files, "history": [*history, *conversion_history], "coverage": coverage}


def _convert(model: onnx.ModelProto, payload: payloads.Recipe, *, work: Path) -> tuple[onnx.ModelProto, list[str]]:
    precision, chosen = payload["precision"], payload["options"]
    if precision == "fp32":
        options.parse_options(chosen, precision=precision)
        return model, []
    if precision == "fp16":
        return half_precision.convert_to_half(model, chosen=chosen)
    if precision == "int4":
        return four_bits.quantise_to_four_bits(model, chosen=chosen)
    if precision == "int8-dynamic":
        return quantisation.quantise_dynamically(model, work=work, chosen=chosen)
    calibration = payload.get("calibration")
    samples = Path(calibration) if calibration else None
    return static_quantisation.quantise_statically(
        model, work=work, precision=precision, chosen=chosen, samples=samples
    )
