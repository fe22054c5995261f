"""Two models in one block: what both are given, which cells stand side by side, what is said of their outputs."""

from dataclasses import replace

import numpy as np
import pytest

from farm.contract.blocks import Tolerance
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.evaluation import AccuracyReport
from farm.contract.reports import EnginePair, EnginesReport, OutputParity
from farm.rules.changes.watch_rounds import Rule, judge
from farm.rules.matrices import matrix as matrices
from farm.rules.planning import beside, planner
from farm.rules.presenting.key_results import find_key_result
from farm.rules.presenting.lines import make_comparison_line
from farm.rules.quality import evaluation
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from farm.rules.runtimes.models import ModelFacts, ModelInput
from farm.rules.searches.gate import Checks
from farm.rules.searches.search import Measured
from farm.rules.searches.watching import Watching
from tests.unit.rules.making import make_check, make_model, make_output, make_reports

BASE = make_model(name="base")
NEW = make_model(name="new", bundle_sha256="c" * 64, main_sha256="d" * 64)
FAR = make_output(max_abs=0.25, cosine=0.9)


def fed(name: str, *shape: int | str, dtype: str = "float32", fill: str = "normal") -> ModelInput:
    return ModelInput(name=name, dtype=dtype, shape=shape, fill=fill)


def model_fed(name: str, *inputs: ModelInput, **changes: object) -> ModelFacts:
    return make_model(name=name, inputs=inputs, **changes)


def document(
    *outputs: OutputParity, medians: tuple[float, float] = (1.0, 2.0), tolerances: dict[str, Tolerance] | None = None
) -> Document:
    """The document of both models on one release, the second as slow as `medians` say."""
    (block,) = planner.plan(matrices.from_options(runtime="1.31.1"), [BASE, NEW]).blocks
    block = block.model_copy(update={"tolerances": tolerances or {}})
    reports = [
        *make_reports(dict(enumerate(medians)), end=False),
        *(make_check(arm.arm) for arm in block.arms),
        EnginesReport(pairs=(EnginePair(one=0, other=1, outputs=outputs),)),
    ]
    return assemble(RunRecord(model=BASE, other_models=[NEW], blocks=[BlockRecord(block=block, reports=reports)]))


def test_each_point_is_measured_of_both_models_side_by_side_and_compared_between_them() -> None:
    plan = planner.plan(matrices.from_options(runtime="1.29.0,1.31.1"), [BASE, NEW])
    (block,) = plan.blocks
    cells = [(arm.labels["model"], arm.spec.runtime.version, arm.spec.artifact_sha256[0]) for arm in block.arms]
    assert cells == [("base", "1.29.0", "a"), ("new", "1.29.0", "c"), ("base", "1.31.1", "a"), ("new", "1.31.1", "c")]
    along = [(one.baseline, one.candidate) for one in block.comparisons if one.axis == "model"]
    assert along == [(0, 1), (2, 3)]
    assert len({arm.id for arm in block.arms}) == 4


def test_a_block_that_is_split_keeps_both_models_of_a_release_together() -> None:
    versions = ",".join(f"1.{minor}.0" for minor in (20, 21, 22, 23, 25, 26, 27, 28, 29))
    plan = planner.plan(matrices.from_options(runtime=versions), [BASE, NEW])
    assert len(plan.blocks) > 1
    pairs = [one for block in plan.blocks for one in block.comparisons if one.axis == "model"]
    assert len(pairs) == 9


def test_a_point_that_one_model_cannot_run_is_refused_for_that_model_alone() -> None:
    newer = NEW.model_copy(update={"opsets": {"": 99}})
    plan = planner.plan(matrices.from_options(runtime="1.31.1"), [BASE, newer])
    assert [arm.labels["model"] for block in plan.blocks for arm in block.arms] == ["base"]
    assert [point.labels["model"] for point in plan.refused] == ["new"]


def test_the_document_tells_each_cell_by_its_own_model() -> None:
    cells = document(make_output()).cells
    assert [(cell.model, cell.model_sha256) for cell in cells] == [("base", "b" * 64), ("new", "d" * 64)]


def test_the_headline_names_both_models_and_what_they_have_in_common_once() -> None:
    said = document(FAR).sentence
    assert said.startswith("new runs 2.00× slower than base, with CPU, fp32, batch 1, 1 thread, ONNX Runtime 1.31.1 (")


def test_outputs_without_a_tolerance_are_not_judged_and_fail_nothing() -> None:
    found = document(FAR)
    (pair,) = found.cells[1].engines
    assert (pair.verdict, pair.atol, pair.command) == ("not_measured", None, "")
    assert "'y' differs by up to 0.25; --tolerance y=ATOL or labelled data say" in found.sentence


@pytest.mark.parametrize(
    ("output", "atol", "verdict"),
    [
        (FAR, 0.5, "pass"),
        (FAR.model_copy(update={"violations": 3}), 0.1, "fail"),
        (make_output(max_abs=0.0), None, "pass"),
        (make_output(shape=(1, 5), violations=5), None, "fail"),
        (make_output(nan_count=2, violations=2), None, "fail"),
        (make_output(inf_count=1, violations=1), None, "fail"),
        # both have it: nothing is wrong with the new one
        (make_output(nan_count=2), None, "not_measured"),
        # how many classes may change is for its team to say
        (make_output(dtype="int64", violations=3), None, "not_measured"),
        (make_output(reference_shape=None), None, "not_measured"),
    ],
)
def test_what_is_wrong_in_any_case_fails_and_a_tolerance_judges(output: OutputParity, atol: float | None, verdict: str):
    found = document(output, tolerances={} if atol is None else {"y": Tolerance(atol=atol, rtol=0.0)})
    (pair,) = found.cells[1].engines
    assert pair.verdict == verdict
    assert found.sentence.startswith("Wrong outputs of new") == (verdict == "fail")


def test_a_faster_model_with_wrong_outputs_is_not_praised() -> None:
    found = document(make_output(nan_count=2, violations=2), medians=(2.0, 1.0))
    assert found.sentence.startswith("Wrong outputs of new: 1 of 2 cells fails parity, so 1 change in their favour")


@pytest.mark.parametrize(
    ("medians", "output", "failed"),
    [
        ((1.0, 2.0), FAR, ["slower"]),
        ((1.0, 1.0), FAR, []),
        ((2.0, 1.0), FAR, []),
        ((1.0, 1.0), make_output(nan_count=2, violations=2), ["parity"]),
    ],
)
def test_a_gate_fails_for_a_new_model_that_is_slower_or_wrong(
    medians: tuple[float, float], output: OutputParity, failed: list[str]
) -> None:
    found = document(output, medians=medians)
    answer = Checks(fail_on=("slower", "parity")).judge(found, None)
    assert (answer.pairs, answer.compared) == ((("c1", "c2"),), 1)
    assert [finding.check for finding in answer.failures] == failed
    assert answer.is_passed == (not failed)
    assert all(finding.text.startswith("The candidate (onnxruntime==1.31.1, CPU, fp32") for finding in answer.failures)


@pytest.mark.parametrize(
    ("medians", "output", "kinds"),
    [
        ((1.0, 2.0), FAR, ["slower"]),
        ((1.0, 1.0), FAR, []),
        ((1.0, 1.0), make_output(max_abs=0.0), []),
        ((2.0, 1.0), make_output(nan_count=2, violations=2), ["parity"]),
    ],
)
def test_a_watch_alerts_of_a_version_that_is_slower_or_wrong(
    medians: tuple[float, float], output: OutputParity, kinds: list[str]
) -> None:
    judged = judge(document(output, medians=medians), Rule(), old="base", new="new")
    assert ([finding.kind for finding in judged.findings], judged.compared) == (kinds, 1)


def test_a_version_that_fails_where_the_one_before_ran_alerts_and_the_other_way_round_is_news() -> None:
    found = document(FAR)
    base, new = found.cells
    failed = {"status": "failed", "reason": {"code": "crashed", "text": "It died."}}
    worse, better = (
        judge(found.model_copy(update={"cells": cells}), Rule(), old="base", new="new")
        for cells in (
            [base, Cell.model_validate({**new.model_dump(), **failed})],
            [Cell.model_validate({**base.model_dump(), **failed}), new],
        )
    )
    assert [finding.kind for finding in worse.findings] == ["failed"]
    assert "worked on base and fails on new: It died." in worse.findings[0].text
    assert "works on new; on base it did not." in better.news[0]


def test_a_fresh_block_of_two_versions_is_measured_on_the_same_releases() -> None:
    declared = replace(matrices.from_options(runtime="1.31.1"), models=("base@1",))
    search = Watching(lambda: declared, ("base", "new"), Rule())
    search.record(Measured(declared, document(FAR), lambda name: {"runtime": 0, "model": int(name == "c2")}))
    again = search.next()
    assert again is not None
    assert (again.matrix.axes["runtime"], again.matrix.models) == (declared.axes["runtime"], declared.models)


def labelled(wrong_of_the_new: int) -> Document:
    """Both models on 400 labelled samples, of which the base has all right."""
    (block,) = planner.plan(matrices.from_options(runtime="1.31.1"), [BASE, NEW]).blocks
    reports = [
        *make_reports({0: 1.0, 1: 1.0}, end=False),
        *(make_check(arm.arm) for arm in block.arms),
        EnginesReport(pairs=(EnginePair(one=0, other=1, outputs=(FAR,)),)),
        *(
            AccuracyReport(
                arm=arm, n=400, samples=evaluation.pack_samples(np.arange(400) >= wrong), data_sha256="e" * 64
            )
            for arm, wrong in enumerate((0, wrong_of_the_new))
        ),
    ]
    return assemble(RunRecord(model=BASE, other_models=[NEW], blocks=[BlockRecord(block=block, reports=reports)]))


def test_a_model_that_labelled_data_show_to_be_wrong_is_led_with_and_nothing_says_that_nobody_judged_it() -> None:
    found = labelled(100)
    assert found.sentence.startswith("Wrong outputs of new: 1 of 2 cells loses accuracy, top-1 100.0 → 75.0 %. ")
    accuracy, (pair,) = found.cells[1].accuracy, found.cells[1].engines
    assert accuracy is not None
    assert "Against base (c1): " in accuracy.text
    assert (find_key_result(found).verdict, find_key_result(found).reason) == ("wrong outputs", accuracy.text)
    assert pair.text.endswith("'y' differs by up to 0.25; labelled data judge them.")
    assert make_comparison_line(found.comparisons[0], {cell.id: cell for cell in found.cells}).wrong == "wrong outputs"


def test_an_output_under_another_name_is_told_in_the_runs_sentence() -> None:
    (block,) = planner.plan(matrices.from_options(runtime="1.31.1"), [BASE, NEW]).blocks
    same = make_output(name="logits", reference_name="scores")
    reports = [
        *make_reports({0: 1.0, 1: 1.0}, end=False),
        *(make_check(arm.arm) for arm in block.arms),
        EnginesReport(pairs=(EnginePair(one=0, other=1, outputs=(same,)),)),
    ]
    found = assemble(RunRecord(model=BASE, other_models=[NEW], blocks=[BlockRecord(block=block, reports=reports)]))
    assert "Output 'scores' is now called 'logits': callers that name it break." in found.sentence
    assert found.cells[1].engines[0].renamed == {"scores": "logits"}


def test_a_model_that_labelled_data_show_to_be_as_right_is_told_with_what_they_say() -> None:
    found = labelled(1)
    assert found.cells[1].accuracy is not None
    assert found.sentence.endswith(found.cells[1].accuracy.text)
    assert find_key_result(found).verdict == found.comparisons[0].verdict


def test_a_new_model_is_less_accurate_than_the_base_by_the_same_samples() -> None:
    found = labelled(100)
    accuracy = found.cells[1].accuracy
    assert accuracy is not None
    assert (accuracy.baseline, accuracy.difference) == ("c1", -0.25)
    answer = Checks(fail_on=("lower",)).judge(found, None)
    assert [(finding.check, finding.baseline) for finding in answer.failures] == [("lower", "c1")]
    watched = judge(found, Rule(), old="base", new="new")
    assert [finding.kind for finding in watched.findings] == ["accuracy"]
    level = accuracy.model_copy(update={"difference_high": 0.1, "p": 0.9})
    same = found.model_copy(update={"cells": [found.cells[0], found.cells[1].model_copy(update={"accuracy": level})]})
    cleared = {kind for kind, _ in judge(same, Rule(), old="base", new="new").cleared}
    assert "accuracy" in cleared


def test_another_input_type_or_size_is_a_difference_and_a_free_dimension_is_none() -> None:
    image = fed("x", "N", 3, 32, 32)
    assert beside.describe_input_difference(model_fed("a", image), model_fed("b", fed("x", 1, 3, "h", "w"))) == ""
    differing = [fed("x", "N", 4, 32, 32), fed("x", "N", 3, 32), fed("x", "N", 3, 32, 32, dtype="float16")]
    for other in differing:
        assert beside.describe_input_difference(model_fed("a", image), model_fed("b", other)).startswith(
            "'x' is float32['N', 3, 32, 32]"
        )
    assert beside.describe_input_difference(model_fed("a", image), model_fed("b", fed("pixels", "N", 3, 32, 32))) == (
        "a takes 'x' and b does not"
    )
    assert beside.describe_input_difference(model_fed("a"), model_fed("b", image)) == "b takes 'x' and a does not"


def test_both_models_are_given_the_sizes_and_values_of_the_first() -> None:
    first = model_fed("a", fed("ids", "N", "seq", dtype="int64", fill="0..99"), sizes={"seq": 64}, batch="N")
    second = model_fed(
        "b", fed("ids", "rows", "length", dtype="int64", fill="0..9"), sizes={"length": 128}, batch="rows"
    )
    _, other = beside.align_inputs(first, second)
    assert other.sizes == {"length": 64}
    assert [one.fill for one in other.inputs] == ["0..99"]


def test_a_fixed_batch_is_the_batch_of_both() -> None:
    free, fixed = model_fed("a", fed("x", "N", 3), batch="N"), model_fed("b", fed("x", 8, 3), batch=8)
    plan = planner.plan(matrices.from_options(runtime="1.31.1"), beside.align_inputs(free, fixed))
    assert [arm.spec.workload.batch for arm in plan.blocks[0].arms] == [8, 8]


def test_of_several_models_each_that_takes_the_same_is_fed_as_the_first_is() -> None:
    first = model_fed("a", fed("ids", "N", "seq"), sizes={"seq": 64}, batch="N")
    alike = model_fed("b", fed("ids", "N", "length"), sizes={"length": 128}, batch="N")
    others = [model_fed("c", fed("other", "N", 3)), model_fed("d")]
    (_, second, third, _), apart = beside.align_models([first, alike, *others])
    assert (second.sizes, third) == ({"length": 64}, others[0])
    assert apart == "a takes 'ids' and c does not"
