"""The first divergent node: found by few looks, with the smallest cut that shows it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from farm.contract.cells import Recipe
from farm.contract.reports import OutputParity
from farm.rules.quality.looks import CandidateError, Compare, Look, Sides
from farm.workshop import arrays, divergence, orders
from farm.workshop.samples import builders as samples
from tests.conftest import MODELS
from tests.unit.workshop import making
from worker.runner.parity import compare_output

pytestmark = pytest.mark.slow  # every look is a run of both sides
Run = Callable[[Look], dict[str, np.ndarray]]


def optimised(look: Look) -> dict[str, np.ndarray]:
    """A candidate: this runtime with all optimisations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(look.folder / look.main, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, arrays.read_npz(look.inputs)), strict=True))


def comparing(run: Run, *, atol: float = 1e-5, rtol: float = 1e-4) -> Compare:
    def compare(look: Look) -> Sequence[OutputParity]:
        reference = arrays.read_npz(look.reference)
        facts = [compare_output(n, v, reference.get(n), atol=atol, rtol=rtol) for n, v in run(look).items()]
        return [OutputParity.model_validate(fact) for fact in facts]

    return compare


def miscounting(operator: str, name: str) -> Run:
    """A candidate that computes one node wrongly, wherever it stands."""

    def run(look: Look) -> dict[str, np.ndarray]:
        model = onnx.load(look.folder / look.main)
        for node in list(model.graph.node):
            if (node.op_type, node.name) == (operator, name):
                right, node.output[0] = node.output[0], f"{node.output[0]}_right"
                at = list(model.graph.node).index(node) + 1
                model.graph.node.insert(at, helper.make_node("Add", [node.output[0], node.output[0]], [right]))
        wrong = look.folder / "wrong.onnx"
        wrong.write_bytes(model.SerializeToString())
        return optimised(Look(folder=look.folder, main=wrong.name, inputs=look.inputs, reference=look.reference))

    return run


def prepared(folder: Path, main: str, work: Path) -> Path:
    work.mkdir()
    return orders.prepare_inputs(folder, main, out_dir=work).path


def test_a_node_that_computes_wrongly_is_named_after_few_looks(tmp_path: Path) -> None:
    samples.write_model("convnet", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "convnet.onnx", tmp_path / "work")
    found = divergence.find_first_divergence(
        tmp_path / "in", "convnet.onnx", inputs=inputs, work_dir=tmp_path / "work",
        sides=Sides(compare=comparing(miscounting("Conv", "block_inner"))),
    )  # fmt: skip
    assert (found.node.name, found.tensor, found.part) == ("block_inner", "block_inner_out", ("block_inner",))
    assert len(found.looks) <= 5
    assert found.sentence().endswith("made by block_inner (Conv); that node alone shows it.")
    cut = onnx.load(found.folder / found.main)
    assert [node.name for node in cut.graph.node] == ["block_inner"]
    assert list(arrays.read_npz(found.inputs)) == ["down1_relu_out"]


def test_a_quantised_convolution_that_lands_one_quantum_away_is_cut_out(tmp_path: Path) -> None:
    folder = making.save(onnx.load(MODELS / "qdq_bias.onnx"), tmp_path / "in")
    (tmp_path / "work").mkdir()
    found = divergence.find_first_divergence(
        folder, "model.onnx", inputs=MODELS / "qdq_bias.inputs.npz", work_dir=tmp_path / "work",
        sides=Sides(compare=comparing(optimised)),
    )  # fmt: skip
    assert "conv" in found.part
    # what the difference does not need was left out again
    assert set(found.part) < {"quantise_x", "dequantise_x", "dequantise_w", "conv", "quantise_y", "dequantise_y"}
    assert found.parity.violations > 0
    assert found.tensor_parity.name == found.tensor
    assert found.part_parity.max_abs is not None
    assert found.part_parity.violations > 0


def test_outputs_that_agree_have_no_divergence(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "digits.onnx", tmp_path / "work")
    assert (
        divergence.find_first_divergence(
            tmp_path / "in",
            "digits.onnx",
            inputs=inputs,
            work_dir=tmp_path / "work",
            sides=Sides(compare=comparing(optimised)),
        )
        is None
    )


def test_a_variant_is_looked_at_where_both_have_a_tensor(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "digits.onnx", tmp_path / "work")
    (tmp_path / "variant").mkdir()
    orders.make_variant(
        tmp_path / "in", "digits.onnx", recipe=Recipe(precision="int8-dynamic"), out_dir=tmp_path / "variant"
    )
    found = divergence.find_first_divergence(
        tmp_path / "in", "digits.onnx", inputs=inputs, work_dir=tmp_path / "work",
        sides=Sides(compare=comparing(optimised)), variant_dir=tmp_path / "variant",
    )  # fmt: skip
    assert found.node.op_type == "Conv"
    assert found.part_parity is None


def test_another_reference_than_the_cpu_without_optimisations_can_be_given(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "digits.onnx", tmp_path / "work")
    conv = next(node for node in onnx.load(tmp_path / "in" / "digits.onnx").graph.node if node.op_type == "Conv")
    wrong = miscounting("Conv", conv.name)
    found = divergence.find_first_divergence(
        tmp_path / "in", "digits.onnx", inputs=inputs, work_dir=tmp_path / "work", sides=Sides(
            compare=comparing(optimised), refer=lambda look: void(arrays.write_npz(look.reference, wrong(look)))
        ),
    )  # fmt: skip
    assert (found.node.name, found.part) == (conv.name, (conv.name,))


def void(_: object) -> None:
    """For lambdas whose value nobody wants."""


def test_a_look_inside_that_does_not_run_accuses_nobody(tmp_path: Path) -> None:
    samples.write_model("digits", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "digits.onnx", tmp_path / "work")
    conv = next(node for node in onnx.load(tmp_path / "in" / "digits.onnx").graph.node if node.op_type == "Conv")
    wrong, whole = comparing(miscounting("Conv", conv.name)), ["the whole model comes first"]

    def fragile(look: Look) -> Sequence[OutputParity]:
        if not whole:
            raise CandidateError("it takes only the whole model")
        whole.clear()
        return wrong(look)

    with pytest.raises(orders.WorkshopError, match="so none was cut out"):
        divergence.find_first_divergence(
            tmp_path / "in", "digits.onnx", inputs=inputs, work_dir=tmp_path / "work", sides=Sides(compare=fragile)
        )


def test_a_runtime_that_fails_is_not_hidden(tmp_path: Path) -> None:
    def broken(look: Look) -> Sequence[OutputParity]:
        raise RuntimeError("the node went away")

    samples.write_model("digits", tmp_path / "in")
    inputs = prepared(tmp_path / "in", "digits.onnx", tmp_path / "work")
    with pytest.raises(RuntimeError, match="went away"):
        divergence.find_first_divergence(
            tmp_path / "in", "digits.onnx", inputs=inputs, work_dir=tmp_path / "work", sides=Sides(compare=broken)
        )
