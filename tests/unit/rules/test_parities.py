"""Engine against engine and level against level: the pairs of a block as the document has them."""

from typing import Any

import pytest

from farm.contract.cells import Recipe, Runtime
from farm.contract.document import Document
from farm.contract.document_cells import EngineParity
from farm.contract.reports import EnginePair, EnginesReport
from farm.rules.cells.commands import diverge_command
from farm.rules.planning.plans import PlannedBlock
from farm.rules.presenting import parities, sentences
from farm.rules.quality import parity
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from tests.documents import NEW, make_cell, make_document
from tests.unit.rules.making import make_block, make_check, make_model, make_output, make_reason, make_reports

DIFFERENT = make_output(violations=17, elements=2048, max_abs=0.05, shape=(2048,), reference_shape=(2048,))


def document(block: PlannedBlock, *pairs: EnginePair, **check: Any) -> Document:
    reports = make_reports({arm.arm: 1.0 for arm in block.arms}, end=False)
    checks = [make_check(arm.arm, **check) for arm in block.arms]
    record = BlockRecord(block=block, reports=[*reports, *checks, EnginesReport(pairs=pairs)])
    return assemble(RunRecord(model=make_model(), blocks=[record]))


def test_a_later_cell_is_held_against_each_earlier_one_with_a_sentence() -> None:
    block = make_block()
    first, second = document(block, EnginePair(one=0, other=1, outputs=(DIFFERENT,))).cells[:2]
    assert first.engines == []
    (pair,) = second.engines
    assert (pair.cell, pair.verdict, pair.atol, pair.outputs[0].violations) == (first.id, "fail", 1e-5, 17)
    assert pair.command == (
        "onnxfarm diverge model.onnx --ort 1.31.1 --against 1.29.0 --provider CPUExecutionProvider "
        "--threads 1 --batch 1"
    )
    assert (
        "17 of 2,048 values are beyond atol 1e-05 × scale + rtol 0.0001 of c1's, largest difference 0.05" in pair.text
    )


def test_of_engines_that_agree_the_sentence_is_kept_and_no_numbers() -> None:
    (pair,) = document(make_block(), EnginePair(one=0, other=1, outputs=(make_output(),))).cells[1].engines
    assert (pair.verdict, pair.outputs) == ("pass", [])
    assert pair.text == "The output is within atol 1e-05 × scale + rtol 0.0001 of c1's."


def test_outputs_of_a_model_that_draws_are_not_judged_anywhere() -> None:
    """Neither against a reference, nor another engine, nor without optimisations; other models still are."""
    block = make_block()
    checks = [make_check(arm.arm, outputs=(DIFFERENT,), unoptimised=(DIFFERENT,)) for arm in block.arms]
    pairs = EnginesReport(pairs=(EnginePair(one=0, other=1, outputs=(DIFFERENT,)),))
    reports = [*make_reports({arm.arm: 1.0 for arm in block.arms}, end=False), *checks, pairs]
    for draws, verdict, unoptimised in (("RandomNormalLike", "not_measured", None), ("", "fail", "fail")):
        record = RunRecord(model=make_model(draws=draws), blocks=[BlockRecord(block=block, reports=reports)])
        cell = assemble(record).cells[1]
        assert (cell.parity.verdict, cell.engines[0].verdict) == (verdict, verdict)
        assert (cell.unoptimised and cell.unoptimised.verdict) == unoptimised
        if draws:
            assert cell.parity.text == "Outputs are not judged: the model draws random numbers (RandomNormalLike)."


def test_why_engines_were_not_compared_is_said() -> None:
    block = make_block()
    reports = make_reports({arm.arm: 1.0 for arm in block.arms}, end=False)
    record = BlockRecord(block=block, reports=[*reports, EnginesReport(reason=make_reason())])
    cells = assemble(RunRecord(model=make_model(), blocks=[record])).cells
    assert cells[0].engines == []
    assert [(pair.cell, pair.verdict, pair.text) for pair in cells[1].engines] == [
        ("c1", "not_measured", "The runner died of SIGSEGV.")
    ]


def test_a_change_between_runtimes_is_in_the_opening_sentence() -> None:
    found = document(make_block(), EnginePair(one=0, other=1, outputs=(DIFFERENT,)))
    assert "The outputs changed between 1.29.0 and 1.31.1: Output 'y': 17 of 2,048 values" in found.sentence
    same = document(make_block(), EnginePair(one=0, other=1, outputs=(make_output(),)))
    assert "outputs changed" not in same.sentence


def test_only_pairs_that_differ_in_the_runtime_alone_are_a_change_between_runtimes() -> None:
    against = EngineParity(cell="c1", verdict="fail", text="Output 'y' differs.")
    old = make_cell("c1")
    changed = make_cell("c2", runtime=NEW, engines=[against])
    other = make_cell("c3", runtime="onnxruntime-openvino==1.24.1", engines=[against])
    quantised = make_cell("c4", runtime=NEW, precision="int8-qdq", engines=[against])
    found = make_document(old, changed, other, quantised)
    assert [new.id for _, new, _ in parities.find_changed_outputs(found)] == ["c2", "c3"]
    said = parities.describe_changed_outputs(found)
    assert said == "The outputs changed between 1.29.0 and 1.31.1 (and 1 more pairs): Output 'y' differs."
    assert "between onnxruntime==1.29.0 and onnxruntime-openvino==1.24.1" in parities.describe_changed_outputs(
        Document(machine={}, seed=0, cells=[old, other])
    )
    assert sentences.describe_run(Document(machine={}, seed=0)) == "Nothing was planned."


def test_the_own_runtime_without_optimisations_is_judged_by_the_tolerance_of_levels() -> None:
    within = make_output(max_abs=5e-5)
    for outputs, verdict in (((within,), "pass"), ((DIFFERENT,), "fail")):
        found = document(make_block(), unoptimised=outputs).cells[0].unoptimised
        assert (found.verdict, found.atol, found.rtol) == (verdict, 1e-4, 0.0)
        assert "the same runtime without optimisations" in found.text
    assert document(make_block()).cells[0].unoptimised is None


@pytest.mark.parametrize(
    ("outputs", "unoptimised", "told"),
    [
        (
            (make_output(reference_shape=None, max_abs=None),),
            (make_output(max_abs=5e-5),),
            "same as unoptimised 1.31.1",
        ),
        ((make_output(reference_shape=None, max_abs=None),), (DIFFERENT,), ""),
        ((make_output(reference_shape=None, max_abs=None),), (), ""),
    ],
)
def test_without_a_reference_the_own_runtime_without_optimisations_is_one(outputs, unoptimised, told) -> None:
    """As of a model that is newer than the runtime that makes references."""
    found = document(make_block(), outputs=outputs, unoptimised=unoptimised).cells[1].parity
    assert (found.verdict, parities.describe_reference(found)) == ("pass" if told else "not_measured", told)


def test_a_variant_without_a_reference_is_not_held_against_itself() -> None:
    spec = make_block().arms[0].spec.model_copy(update={"recipe": Recipe(precision="fp16")})
    lacking = make_check(0, outputs=(make_output(reference_shape=None, max_abs=None),), unoptimised=(make_output(),))
    assert parities.replace_reference(spec, lacking) is None


def test_engines_of_two_precisions_are_judged_by_the_wider_preset() -> None:
    spec = make_block().arms[0].spec
    half = spec.model_copy(update={"recipe": Recipe(precision="fp16")})
    small = spec.model_copy(update={"recipe": Recipe(precision="int8-qdq")})
    level = spec.model_copy(update={"session": spec.session.model_copy(update={"optimization": "basic"})})
    assert parity.preset_between(spec, spec) == parity.FP32
    assert parity.preset_between(half, spec) == parity.preset_between(spec, half) == parity.FP16
    assert parity.preset_between(half, small) == parity.INT8
    assert parity.preset_between(spec, level) == parity.LEVELS
    assert parity.preset_between(half, level) == parity.FP16


def test_a_row_of_the_batch_and_what_the_provider_executed_are_in_the_document() -> None:
    found = document(make_block(), batch_row_max_abs=0.25, executed_precision="bf16").cells[0]
    assert (found.batch_row_max_abs, found.executed_precision) == (0.25, "bf16")


def test_a_failed_parity_says_how_to_look_for_the_node() -> None:
    found = document(make_block(), outputs=(DIFFERENT,)).cells[0].parity
    assert found.verdict == "fail"
    assert found.command.startswith("onnxfarm diverge model.onnx --ort 1.29.0 --provider CPUExecutionProvider")
    assert document(make_block()).cells[0].parity.command == ""


def test_a_command_that_could_not_say_all_of_a_cell_is_not_given() -> None:
    spec = make_block().arms[0].spec
    assert diverge_command(spec.model_copy(update={"provider_options": {"a": "b"}}), "m.onnx") == ""
    session = spec.session.model_copy(update={"arena": False})
    assert diverge_command(spec.model_copy(update={"session": session}), "m.onnx") == ""
    level = spec.session.model_copy(update={"optimization": "basic"})
    own = {"session": level, "recipe": Recipe(precision="fp16")}
    said = diverge_command(spec.model_copy(update=own), "m.onnx", has_inputs=True)
    assert said.endswith("--threads 1 --level basic --precision fp16 --inputs inputs.npz")
    other = spec.model_copy(update={"runtime": Runtime(distribution="onnxruntime-openvino", version="1.24.1")})
    assert "--ort onnxruntime-openvino==1.24.1" in diverge_command(other, "m.onnx")
    work = spec.workload.model_copy(update={"shapes": {"sequence": 16}, "seed": 3, "batch": None})
    assert diverge_command(spec.model_copy(update={"workload": work}), "m.onnx").endswith(
        "--shape sequence=16 --seed 3"
    )  # fmt: skip


def test_a_cell_of_another_recipe_or_level_has_no_command_that_would_show_the_same() -> None:
    spec = make_block().arms[0].spec
    level = spec.model_copy(update={"session": spec.session.model_copy(update={"optimization": "basic"})})
    small = spec.model_copy(update={"recipe": Recipe(precision="fp16")})
    assert parities.make_diverge_command(spec, "m.onnx", against=level) == ""
    assert parities.make_diverge_command(spec, "m.onnx", against=small) == ""
    assert parities.make_diverge_command(spec, "m.onnx", against=spec).startswith("onnxfarm diverge m.onnx")
