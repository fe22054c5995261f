"""The bench document: every point once, every number from a report, nothing invented."""

import json

import numpy as np
import pytest

from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison
from farm.contract.evaluation import AccuracyReport
from farm.contract.reasons import ReasonCode
from farm.contract.reports import EndReport
from farm.contract.sustained import CurvePoint, CurveReport
from farm.rules.cells import label
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.quality import evaluation
from farm.rules.quality.parity import Preset
from farm.rules.reporting import documents, operator_changes
from farm.rules.reporting.documents import BlockRecord, RunRecord, assemble
from farm.rules.reporting.multiple_tests import correct_verdicts
from farm.rules.runtimes.models import ModelInput
from tests.unit.rules.making import (
    make_block,
    make_check,
    make_facts,
    make_model,
    make_operator,
    make_output,
    make_reason,
    make_reports,
    make_round,
    make_rounds,
    make_trace,
)


def record_of(block, reports, *, model=None, refused=(), **known):
    fields = {name: known.pop(name) for name in ("node", "reason", "is_over") if name in known}
    return RunRecord(
        model=model or make_model(), blocks=[BlockRecord(block, reports, **fields)], refused=refused, **known
    )


def cells_of(document):
    return {cell.id: cell for cell in document.cells}


def traced(arm, slow_us, count=5):
    return [
        make_trace(
            arm,
            [make_operator("mm", 700.0), make_operator("add", slow_us + n, op_type="SlowThing", covers=["norm"])],
            trace_round=n,
            copies_to_device=1,
            copies_to_host=2,
        )
        for n in range(count)
    ]


def test_a_measured_block_becomes_done_cells_and_judged_comparisons():
    block = make_block()
    reports = [*make_reports({0: 1.0, 1: 1.24}), *traced(0, 300.0), *traced(1, 540.0)]
    document = assemble(
        record_of(block, reports, node="bench-1", seed=7, machine={"cpu": "Example"}, command="onnxfarm")
    )
    old, new = document.cells
    assert (old.status, old.reason, old.node, old.block) == ("done", None, "bench-1", "b1")
    assert (str(new.runtime), new.provider, new.batch, new.precision, new.threads) == (
        "onnxruntime==1.31.1",
        "CPUExecutionProvider",
        1,
        "fp32",
        1,
    )
    assert len(old.samples_ms) == 8
    assert old.throughput == pytest.approx(1000.0 / old.p50_ms)
    assert (old.session_ms, old.first_ms, old.import_ms, old.peak_memory_bytes) == (30.0, 2.0, 150.0, 60_000_000)
    assert (old.parity.verdict, old.parity.outputs[0].name) == ("pass", "y")
    assert (old.opset, old.model, old.model_sha256) == (17, "encoder", "b" * 64)
    assert old.copies == 3
    assert [operator.node for operator in old.operators] == ["mm", "add"]
    assert old.operators[1].covers == ["norm"]
    (compared,) = document.comparisons
    assert (compared.baseline, compared.candidate, compared.axis, compared.verdict) == ("c1", "c2", "runtime", "slower")
    assert compared.ci_low < compared.ratio < compared.ci_high
    assert (compared.rounds, compared.ci_level, compared.traces) == (8, 0.95, 5)
    assert compared.operators[0].op_type == "SlowThing"
    assert compared.operators[0].share == pytest.approx(1.0, rel=0.02)
    assert document.sentence.startswith("ONNX Runtime 1.31.1 runs encoder")
    assert (document.seed, document.budget, document.command) == (7, "quick", "onnxfarm")


def test_one_round_sees_no_change_however_large():
    (compared,) = assemble(record_of(make_block(), make_reports({0: 1.0, 1: 1.24}, rounds=1))).comparisons
    assert (compared.rounds, compared.verdict, compared.smallest_detectable) == (0, "undecided", None)


def test_a_document_is_json_with_its_schema_first_and_reads_back():
    document = assemble(record_of(make_block(), make_reports({0: 1.0, 1: 1.24})))
    text = document.to_json()
    assert next(iter(json.loads(text))) == "schema"
    assert Document.model_validate_json(text) == document


def test_refused_points_are_cells_with_their_reason_and_no_numbers():
    plan = planner.plan(matrix.from_options(runtime="1.20.1,1.31.1"), make_model(opsets={"": 22}))
    (block,) = plan.blocks
    document = assemble(record_of(block, make_reports({0: 1.0}), refused=plan.refused))
    refused = cells_of(document)["c1"]
    assert (refused.status, refused.reason.code) == ("refused", ReasonCode.OPSET_TOO_NEW)
    assert (refused.p50_ms, refused.throughput, refused.samples_ms, refused.parity.verdict) == (
        None,
        None,
        [],
        "not_measured",
    )
    assert len(refused.digest) == 64


def test_an_arm_that_crashed_keeps_what_was_measured_and_says_why_it_ended():
    rounds = [*make_rounds(3, {0: 1.0, 1: 1.2}), make_round(3, {0: 1.0, 1: make_reason()})]
    document = assemble(record_of(make_block(), [*rounds, *make_rounds(8, {0: 1.0})[4:], EndReport()]))
    crashed = cells_of(document)["c2"]
    assert (crashed.status, crashed.reason.code) == ("crashed", ReasonCode.CRASHED)
    assert len(crashed.samples_ms) == 3
    assert cells_of(document)["c1"].status == "done"
    assert document.comparisons[0].verdict == "not comparable"


def test_a_runtime_that_refuses_the_model_makes_a_refused_cell():
    check = make_check(0, reason=make_reason(ReasonCode.MODEL_NOT_LOADED, "The runtime does not load it."), outputs=())
    document = assemble(record_of(make_block(runtime="1.31.1"), [check, EndReport()]))
    (cell,) = document.cells
    assert (cell.status, cell.parity.verdict, cell.parity.text) == (
        "refused",
        "not_measured",
        "The outputs were not computed.",
    )


def test_cells_still_being_measured_are_left_out_of_an_unfinished_document():
    failed = make_check(1, reason=make_reason())
    document = assemble(record_of(make_block(), [failed, *make_rounds(2, {0: 1.0})], is_over=False))
    assert [(cell.id, cell.status) for cell in document.cells] == [("c2", "crashed")]
    assert document.comparisons == []


def test_cells_with_all_their_rounds_are_done_before_their_block_ends():
    document = assemble(record_of(make_block(), make_rounds(8, {0: 1.0, 1: 1.24}), is_over=False))
    assert [cell.status for cell in document.cells] == ["done", "done"]
    assert len(document.comparisons) == 1


@pytest.mark.parametrize(
    ("known", "reports", "status"),
    [
        ({"reason": make_reason(ReasonCode.CANCELLED, "Cancelled by its owner.")}, [], "cancelled"),
        ({}, [EndReport(reason=make_reason(ReasonCode.RUNTIME_INSTALL_FAILED, "No wheel."))], "failed"),
        ({}, [], "failed"),
        ({}, [*make_rounds(2, {0: 1.0}), EndReport()], "done"),
        ({"reason": make_reason(ReasonCode.NODE_LOST, "Lost.")}, make_rounds(2, {0: 1.0}), "failed"),
        ({"reason": make_reason(ReasonCode.NODE_LOST, "Late.")}, make_rounds(8, {0: 1.0}), "done"),
    ],
)
def test_a_block_that_ended_gives_each_cell_an_ending(known, reports, status):
    document = assemble(record_of(make_block(runtime="1.31.1"), reports, **known))
    (cell,) = document.cells
    assert cell.status == status
    assert (cell.reason is None) == (status == "done")


@pytest.mark.parametrize(
    ("known", "end", "rounds", "said"),
    [
        ({"reason": make_reason(ReasonCode.CANCELLED, "By ada.")}, [], 1, "By ada. 1 round was measured before."),
        ({"reason": make_reason(ReasonCode.FAIL_FAST, "Failed.")}, [], 2, "Failed. 2 rounds were measured before."),
        ({"reason": make_reason(ReasonCode.CANCELLED, "By ada.")}, [], 8, "By ada. 8 rounds were measured before."),
        ({}, [EndReport(reason=make_reason(ReasonCode.CANCELLED))], 2, "Stopped. 2 rounds were measured before."),
    ],
)
def test_a_cell_that_was_stopped_after_a_round_is_done_and_says_so(known, end, rounds, said):
    block = make_block(runtime="1.31.1")
    document = assemble(record_of(block, [*make_rounds(rounds, {0: 1.0}), *end], **known))
    (cell,) = document.cells
    assert (cell.status, len(cell.samples_ms), cell.reason.text) == ("done", rounds, said)
    assert document.sentence.endswith(said)


def test_an_a_a_twin_names_the_arm_it_repeats():
    plan = planner.plan(matrix.from_options(runtime="1.31.1"), make_model(), with_null_pair=True)
    document = assemble(record_of(plan.blocks[0], make_reports({0: 1.0, 1: 1.0})))
    twin = cells_of(document)["c1.twin"]
    assert twin.twin_of == "c1"
    assert twin.digest == cells_of(document)["c1"].digest
    assert document.comparisons[0].axis == "twin"


def test_without_a_reference_parity_is_not_measured():
    check = make_check(0, outputs=(make_output(reference_shape=None),))
    (cell,) = assemble(record_of(make_block(runtime="1.31.1"), [check, *make_rounds(8, {0: 1.0})])).cells
    assert (cell.parity.verdict, cell.parity.reference, cell.parity.outputs) == ("not_measured", None, [])


def test_parity_names_its_reference_and_tolerances():
    block = make_block(runtime="1.31.1")
    reports = [make_check(0), *make_rounds(8, {0: 1.0})]
    references = {block.arms[0].spec.digest: "expected"}
    (cell,) = assemble(record_of(block, reports, references=references)).cells
    assert (cell.parity.reference, cell.parity.atol, cell.parity.rtol) == ("expected", 1e-5, 1e-4)
    own = Preset("own", atol=1e-9, rtol=0.0)
    (cell,) = assemble(record_of(block, reports, preset=own)).cells
    assert cell.parity.atol == 1e-9


def test_int8_is_judged_by_direction_and_shows_no_tolerance():
    block = make_block(runtime="1.31.1", precision="int8-dynamic")
    check = make_check(0, outputs=(make_output(cosine=0.9),))
    (cell,) = assemble(record_of(block, [check, *make_rounds(8, {0: 1.0})])).cells
    assert (cell.parity.verdict, cell.parity.atol, cell.recipe) == ("fail", None, "int8-dynamic")


def test_a_converted_cell_shows_the_opset_it_was_measured_with():
    block = make_block(runtime="1.31.1", opset="21")
    (cell,) = assemble(record_of(block, make_reports({0: 1.0}))).cells
    assert (cell.opset, cell.recipe) == (21, "opset 21")


def test_a_check_that_never_came_still_names_what_was_asked():
    (cell,) = assemble(record_of(make_block(runtime="1.31.1"), make_rounds(8, {0: 1.0}))).cells
    assert cell.requested_providers == ["CPUExecutionProvider"]
    assert (cell.session_ms, cell.peak_memory_bytes, cell.active_providers) == (None, None, [])


def test_a_check_without_provider_lists_shows_what_a_session_is_asked_for():
    check = make_check(0, requested_providers=(), peak_memory_bytes=None)
    (cell,) = assemble(record_of(make_block(runtime="1.31.1"), [check, *make_rounds(8, {0: 1.0})])).cells
    assert cell.requested_providers == ["CPUExecutionProvider"]


def test_a_failed_trace_leaves_placement_unknown():
    trace = make_trace(0, [], reason=make_reason())
    (cell,) = assemble(record_of(make_block(runtime="1.31.1"), [trace, *make_rounds(8, {0: 1.0})])).cells
    assert (cell.copies, cell.operators, cell.providers) == (None, [], [])


def test_lists_of_operators_are_bounded():
    many = [make_operator(f"n{number}", float(number)) for number in range(400)]
    reports = [*make_reports({0: 1.0, 1: 1.24}), make_trace(0, many), make_trace(1, many)]
    document = assemble(record_of(make_block(), reports))
    assert len(document.cells[0].operators) == 256
    assert document.cells[0].operators[0].node == "n399"
    assert sum(sum(own.values()) for own in document.cells[0].executed.values()) == 400
    assert len(document.comparisons[0].operators) == operator_changes.MAX_OPERATORS
    assert document.comparisons[0].traces == 1


def test_only_trace_rounds_that_both_arms_have_are_compared():
    reports = [*make_reports({0: 1.0, 1: 1.24}), *traced(0, 300.0, count=5), *traced(1, 540.0, count=3)]
    (compared,) = assemble(record_of(make_block(), reports)).comparisons
    assert compared.traces == 3


def test_the_whole_farms_session_settings_are_shown_under_the_sets_name():
    plan = planner.plan(matrix.parse({"session": [{"name": "quiet", "spinning": False}]}), make_model())
    (cell,) = assemble(record_of(plan.blocks[0], make_reports({0: 1.0}))).cells
    assert (cell.session["name"], cell.session["spinning"]) == ("quiet", False)


# many comparisons


def compared(p, verdict, axis="runtime"):
    return Comparison(baseline="c1", candidate="c2", axis=axis, p=p, verdict=verdict, margin=0.02, ratio=1.1)


def test_a_lonely_change_among_many_comparisons_becomes_undecided():
    many = [compared(0.01, "slower"), *[compared(0.6, "equal")] * 20]
    held = correct_verdicts(many)
    assert held[0].verdict == "undecided"
    assert "Among 21 comparisons this one may be chance (Benjamini-Hochberg at 5 %)" in held[0].reason
    assert [one.verdict for one in held[1:]] == ["equal"] * 20


def test_a_clear_change_among_many_comparisons_stands():
    held = correct_verdicts([compared(1e-6, "slower"), *[compared(0.6, "undecided")] * 20])
    assert held[0].verdict == "slower"


def test_twins_and_what_cannot_be_compared_are_no_hypotheses():
    many = [
        compared(0.01, "slower"),
        compared(0.01, "slower", axis="twin"),
        compared(None, "not comparable"),
        *[compared(0.5, "not comparable")] * 50,
    ]
    assert [one.verdict for one in correct_verdicts(many)[:2]] == ["slower", "slower"]


def test_a_confounded_change_that_falls_keeps_its_note():
    noted = compared(0.01, "slower").model_copy(update={"reason": "Confounded: driver."})
    held = correct_verdicts([noted, *[compared(0.6, "equal")] * 20])
    assert held[0].reason.endswith("Confounded: driver.")


def test_no_comparisons_are_no_problem():
    assert correct_verdicts([]) == []


def test_a_curve_and_an_accuracy_stand_in_the_cell_that_they_are_of():
    block = make_block()
    points = [CurvePoint(at_s=at, span_s=1.0, n=10, p50_ms=1.0, p90_ms=1.1) for at in (0.0, 1.0, 2.0)]
    empty = CurveReport(arm=1, reason=make_reason())
    judged = AccuracyReport(arm=1, n=2, samples=evaluation.pack_samples(np.array([True, False])), measured_arm=0)
    reports = [*make_reports({0: 1.0, 1: 1.0}), CurveReport(arm=0, points=tuple(points)), empty, judged]
    first, second = assemble(record_of(block, reports)).cells[:2]
    assert first.sustained.text == "Steady for 3 s: p50 stays within 5 % of its first point."
    assert (second.sustained.points, second.accuracy.n) == ([], 2)
    assert (first.accuracy, second.accuracy.value) == (None, 0.5)


@pytest.mark.parametrize("load", [{"busy_share": "high"}, {"busy_share": True}, {"busy_share": -1.0}, "high"])
def test_what_a_node_makes_up_about_its_load_is_left_out(load):
    facts = make_facts(more={"load": load}).facts
    assert documents.make_facts(facts, block="1", node="bench-1").busy_share is None


@pytest.mark.parametrize(("run_us", "left"), [(100.0, 40.0), (50.0, None), (None, None)])
def test_time_in_no_operator_is_what_is_left_of_an_inference_and_unknown_where_operators_overlap(run_us, left):
    trace = make_trace(0, [make_operator("a", 40.0), make_operator("b", 20.0)], run_us=run_us)
    document = assemble(record_of(make_block(), [*make_reports({0: 1.0, 1: 1.0}), trace]))
    assert document.cells[0].unaccounted_us == left


def test_the_inputs_of_a_cell_are_told_where_all_their_sizes_are_known():
    ports = (ModelInput(name="x", dtype="float32", shape=("N", "sequence"), fill="normal"),)
    block = make_block()
    shown, hidden = (
        assemble(record_of(block, make_reports({0: 1.0, 1: 1.0}), model=make_model(inputs=ports, sizes=sizes))).cells[0]
        for sizes in ({"sequence": 8}, {})
    )
    assert [(one.name, one.shape) for one in shown.inputs] == [("x", [1, 8])]
    assert hidden.inputs == []


def test_the_inputs_of_a_model_whose_batch_is_fixed_are_told_as_they_are():
    ports = (ModelInput(name="x", dtype="float32", shape=(4, 8), fill="normal"),)
    model = make_model(inputs=ports, batch=4)
    (cell, *_) = assemble(record_of(make_block(), make_reports({0: 1.0, 1: 1.0}), model=model)).cells
    assert [one.shape for one in cell.inputs] == [[4, 8]]


def test_the_memory_of_operators_stands_in_the_document_where_the_trace_has_it():
    known = [make_operator("a", 2.0).model_copy(update={"memory_bytes": 4096}), make_operator("b", 1.0)]
    trace = make_trace(0, known)
    (cell,) = assemble(record_of(make_block(runtime="1.31.1"), [trace, *make_rounds(8, {0: 1.0})])).cells
    assert [one.memory_bytes for one in cell.operators] == [4096, None]
    assert [one.get("memory_bytes", "absent") for one in cell.model_dump(mode="json")["operators"]] == [4096, "absent"]


def test_a_cell_says_what_the_numbers_of_its_model_are() -> None:
    block = make_block(runtime="1.31.1", precision="fp32,int8-dynamic")
    document = assemble(record_of(block, [], model=make_model(uploaded="fp16")))
    assert {cell.precision: cell.uploaded for cell in document.cells} == {"fp32": "fp16", "int8-dynamic": ""}
    (varying,) = label.varying_axes(document.cells)
    assert {varying.label(cell) for cell in document.cells} == {"as uploaded: fp16", "int8-dynamic"}
