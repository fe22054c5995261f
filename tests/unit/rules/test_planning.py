"""Planning: cells, refusals with their reasons, and what a block promises."""

import re

import pytest

from farm.contract.cells import Budget, Runtime
from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix
from farm.rules.planning import estimates, planner
from farm.rules.planning.planner import NodeOffer
from farm.rules.runtimes import releases
from farm.rules.runtimes.models import ContextFacts, ModelInput, SourceFacts
from farm.rules.runtimes.releases import Known
from tests.unit.rules.making import make_block, make_model, only_refusal, plan_of

DIGEST = "c" * 64


def test_the_default_matrix_is_one_block_of_eight_arms_in_order_of_their_neighbours():
    plan = planner.plan(matrix.default_matrix(), make_model())
    (block,) = plan.blocks
    assert [arm.labels["runtime"][-6:] for arm in block.arms] == ["1.29.0", "1.31.1"] * 4
    assert [arm.labels["batch"] for arm in block.arms] == ["1"] * 4 + ["8"] * 4
    assert (plan.cells, plan.refused, plan.problem) == (8, (), None)
    assert block.tags == ("cpu",)
    assert (block.min_rounds, block.max_rounds) == (8, 8)
    assert 1.0 < block.minutes < 3.0


def test_arms_that_differ_in_one_axis_are_compared_and_the_earlier_value_is_the_baseline():
    block = make_block(batch="1,8")
    compared = {(c.baseline, c.candidate, c.axis) for c in block.comparisons}
    assert compared == {(0, 1, "runtime"), (2, 3, "runtime"), (0, 2, "batch"), (1, 3, "batch")}
    assert block.comparisons[0].smallest_detectable == pytest.approx(0.029, abs=0.0005)
    assert block.is_noise_assumed


def test_a_baseline_is_the_earlier_value_of_the_axis_even_when_it_is_the_newer_release():
    block = make_block(runtime="1.31.1,1.29.0")
    (compared,) = block.comparisons
    assert str(block.arms[compared.baseline].spec.runtime) == "onnxruntime==1.31.1"


def test_the_same_release_twice_is_an_a_a_pair():
    block = make_block(runtime="1.31.1,1.31.1")
    first, second = block.arms
    assert first.spec.digest == second.spec.digest
    assert (first.id, second.id, second.twin_of) == ("c1", "c2", 0)
    (compared,) = block.comparisons
    assert compared.axis == "runtime"


def test_a_null_pair_adds_a_twin_of_the_baseline():
    plan = plan_of({"runtime": "1.29.0,1.31.1"}, with_null_pair=True)
    (block,) = plan.blocks
    twin = block.arms[-1]
    assert (twin.arm, twin.id, twin.cell, twin.twin_of) == (2, "c1.twin", "c1", 0)
    assert {(c.baseline, c.candidate, c.axis) for c in block.comparisons} == {(0, 1, "runtime"), (0, 2, "twin")}
    assert plan.cells == 2


def test_a_full_block_has_no_room_for_a_twin():
    plan = plan_of({"batch": list(range(1, 17)), "runtime": "1.31.1"}, with_null_pair=True)
    (block,) = plan.blocks
    assert len(block.arms) == 16
    assert not any(arm.twin_of is not None for arm in block.arms)


def test_only_one_block_in_eight_carries_a_twin():
    plan = plan_of({"batch": list(range(1, 160)), "runtime": "1.31.1"}, with_null_pair=True)
    twins = [block.arms[-1].id.endswith(".twin") for block in plan.blocks]
    # a place was kept for it, as one was due
    assert all(len(block.arms) <= 16 for block in plan.blocks)
    assert twins == [number % 8 == 0 for number in range(12)]


# what a cell is made of


def test_nothing_declared_means_the_newest_release_on_the_cpu_with_one_thread():
    block = make_block(runtime=None, batch=None)
    (arm,) = block.arms
    assert arm.spec.runtime == releases.NEWEST
    assert (arm.spec.provider, arm.spec.session.threads, arm.spec.workload.batch) == ("CPUExecutionProvider", 1, 1)


def spec_of(options, **facts):
    plan = plan_of({"runtime": "1.31.1", **options}, model=make_model(**facts))
    return plan.blocks[0].arms[0].spec


def test_without_a_batch_the_inputs_decide_then_the_model_then_one():
    assert spec_of({}, batch="N", inputs_sha256=DIGEST, inputs_batch=3).workload.batch == 3
    assert spec_of({}, batch=4).workload.batch == 4
    assert spec_of({}, batch="N").workload.batch == 1
    assert spec_of({}, batch=None).workload.batch is None


def test_the_batch_dimension_named_in_shapes_is_the_batch():
    workload = spec_of({"shapes": [{"N": 6, "sequence": 16}]}).workload
    assert (workload.batch, workload.shapes) == (6, {"sequence": 16})


@pytest.mark.parametrize(
    ("options", "given", "shapes"),
    [
        ({"batch": 4}, {}, {"num_images": 4, "sequence": 64}),
        ({"batch": 4, "shapes": [{"num_images": 2}]}, {}, {"num_images": 2, "sequence": 64}),
        ({"shapes": [{"num_texts": 4}]}, {}, {"num_images": 1, "sequence": 64}),
        ({}, {}, {"num_images": 1, "sequence": 64}),
        ({"batch": 4}, {"inputs_sha256": DIGEST, "inputs_batch": 4}, {"num_images": 1, "sequence": 64}),
    ],
)
def test_other_batches_follow_the_one_that_is_asked_for(options, given, shapes):
    ports = (("input_ids", ("num_texts", "sequence")), ("pixel_values", ("num_images", 3)))
    inputs = tuple(ModelInput(name=name, dtype="float32", shape=shape, fill="normal") for name, shape in ports)
    facts = {"batch": "num_texts", "dims": {"num_images": None, "sequence": None}, "inputs": inputs}
    sizes = {"num_texts": 1, "num_images": 1, "sequence": 64}
    workload = spec_of(options, **facts, sizes=sizes, **given).workload
    assert (workload.batch, workload.shapes) == (4 if options else 1, shapes)


def test_threads_that_the_sandbox_lets_nobody_pin_are_not_measured_as_if_they_were_pinned():
    pinned = {"name": "pinned", "config": {"session.intra_op_thread_affinities": "2"}}
    reason = only_refusal(planner.plan(matrix.parse({"session": [pinned], "threads": 2}), make_model()))
    assert reason.code == ReasonCode.NOT_SUPPORTED
    assert "session.intra_op_thread_affinities cannot take hold in the sandbox" in reason.text


@pytest.mark.parametrize(
    ("matrices", "sentence"),
    [
        ({"runtime": "1.22.1"}, "onnxruntime==1.22.1 follows no policy: take 1.23.0 or newer, or leave `policy` out."),
        (
            {"runtime": "onnxruntime-openvino==1.24.1", "provider": "openvino"},
            "The policy prefer-npu lets ONNX Runtime choose, and OpenVINOExecutionProvider is asked for: leave one of "
            "them out.",
        ),
        (
            {"runtime": "onnxruntime-ep-webgpu==0.4.0"},
            "The policy prefer-npu chooses among what a build of ONNX Runtime itself has: leave "
            "onnxruntime-ep-webgpu==0.4.0 out.",
        ),
        ({"runtime": "torch==2.13.0"}, "without policy: prefer-npu: leave that out."),
    ],
)
def test_a_policy_that_onnx_runtime_cannot_follow_is_refused(matrices, sentence):
    reason = only_refusal(planner.plan(matrix.parse({**matrices, "policy": "prefer-npu"}), make_model()))
    assert reason.code == ReasonCode.NOT_SUPPORTED
    assert sentence in reason.text


def test_a_policy_is_part_of_the_session_of_a_release_that_follows_it():
    plan = planner.plan(matrix.parse({"runtime": "1.23.0", "policy": ["none", "min-power"]}), make_model())
    assert [arm.spec.session.policy for arm in plan.blocks[0].arms[:2]] == ["none", "min-power"]
    assert "policy" not in plan.blocks[0].arms[0].spec.model_dump(mode="json")["session"]


SEQUENCE = "the output y is a sequence"
BFLOAT16 = ModelInput(name="x", dtype="bfloat16", shape=("N",), fill="normal")


@pytest.mark.parametrize(
    ("matrices", "changes"),
    [
        ({"call": "bound"}, {"unbound": SEQUENCE}),
        ({"call": "run"}, {"inputs": (BFLOAT16,)}),
        (
            {"call": "run", "scenario": "generate:prompt=16:new=8"},
            {"context": ContextFacts(tokens=99, where="a table")},
        ),
        ({"call": "run", "runtime": "torch==2.13.0"}, {"source": SourceFacts(name="m.pt2", saved_by="2.9.0")}),
        ({"call": "run", "runtime": "onnxruntime-web==1.31.0", "provider": "wasm"}, {}),
    ],
)
def test_a_call_that_there_is_not_is_refused(matrices, changes):
    is_browser = "wasm" in matrices.values()
    fleet = [NodeOffer(id="1", tags=frozenset({"cpu", "wasm"}), providers=frozenset({"wasm"}), is_browser=is_browser)]
    reason = only_refusal(planner.plan(matrix.parse(matrices), make_model(**changes), fleet))
    assert reason.code == ReasonCode.NOT_SUPPORTED
    assert "`call" in reason.text


def test_a_model_that_cannot_be_bound_is_timed_by_run_where_a_session_runs_it():
    model = make_model(unbound=SEQUENCE, source=SourceFacts(name="m.pt2", saved_by="2.9.0"))
    declared = matrix.parse({"runtime": ["1.29.0", "1.31.1", "torch==2.13.0"], "threads": [1, 2]})
    (block,) = planner.plan(declared, model).blocks
    calls = {(arm.spec.runtime.distribution, arm.spec.session.threads, arm.spec.session.call) for arm in block.arms}
    assert calls == {("onnxruntime", 1, "run"), ("onnxruntime", 2, "run"), ("torch", 1, "bound"), ("torch", 2, "bound")}


def test_the_usual_call_goes_without_saying():
    bound = planner.plan(matrix.parse({"runtime": "1.31.1", "call": ["bound"]}), make_model()).blocks[0].arms[0].spec
    assert "call" not in bound.model_dump(mode="json")["session"]


def test_session_sets_and_levels_become_session_settings():
    session = {"name": "quiet", "spinning": False, "config": {"a.b": "1"}, "disabled-optimizers": ["X"]}
    plan = planner.plan(matrix.parse({"session": [session], "optimization": "basic", "threads": 4}), make_model())
    settings = plan.blocks[0].arms[0].spec.session
    assert (settings.spinning, settings.config, settings.disabled_optimizers) == (False, {"a.b": "1"}, ("X",))
    assert (settings.optimization, settings.threads) == ("basic", 4)


@pytest.mark.parametrize(
    ("asked", "own", "release", "meant"),
    [
        ("as-is", 17, "1.31.1", "as-is"),
        ("17", 17, "1.31.1", "as-is"),
        ("21", 17, "1.31.1", 21),
        ("max-of-runtime", 17, "1.31.1", 26),
        ("max-of-runtime", 17, "1.21.0", 22),
        ("max-of-runtime", 22, "1.21.0", "as-is"),
    ],
)
def test_an_opset_is_a_conversion_only_when_it_changes_the_model(asked, own, release, meant):
    assert spec_of({"opset": asked, "runtime": release}, opsets={"": own}).recipe.opset == meant


def test_the_newest_opset_never_converts_a_model_down():
    plan = plan_of({"opset": "max-of-runtime", "runtime": "1.20.1"}, model=make_model(opsets={"ai.onnx": 22}))
    assert only_refusal(plan).code == ReasonCode.OPSET_TOO_NEW


# refusals


@pytest.mark.parametrize(
    ("options", "facts", "code", "words"),
    [
        ({"runtime": "1.20.1"}, {"opsets": {"": 22}}, ReasonCode.OPSET_TOO_NEW, "opset 22 needs ONNX Runtime ≥ 1.21"),
        ({"opset": "22", "runtime": "1.20.1"}, {}, ReasonCode.OPSET_TOO_NEW, "opset 22 needs"),
        ({"runtime": "1.20.1"}, {"opsets": {}, "ir_version": 11}, ReasonCode.IR_TOO_NEW, "IR version 11 needs"),
        ({}, {"custom_domains": ("acme",)}, ReasonCode.CUSTOM_DOMAIN, "acme"),
        (
            {"provider": "openvino"},
            {},
            ReasonCode.PROVIDER_NOT_IN_BUILD,
            "OpenVINOExecutionProvider is not in onnxruntime==1.31.1: it comes with onnxruntime-openvino or",
        ),
        ({"provider": "xnnpack"}, {}, ReasonCode.PROVIDER_NOT_IN_BUILD, "is in no package of the index"),
        (
            {"batch": "8"},
            {"batch": 1},
            ReasonCode.FIXED_BATCH,
            "fixed batch 1: batch 8 needs a dynamic first dimension",
        ),
        ({"batch": "8"}, {"batch": None}, ReasonCode.NO_BATCH, "leave batch out, and set sizes with --shape NAME=SIZE"),
        ({"batch": "8"}, {"inputs_batch": 2, "inputs_sha256": DIGEST}, ReasonCode.FIXED_BATCH, "inputs have batch 2"),
        ({"precision": "int8-dynamic"}, {"is_quantised": True}, ReasonCode.VARIANT_IMPOSSIBLE, "already quantised"),
        ({"precision": "int8-qdq"}, {"is_quantised": True}, ReasonCode.VARIANT_IMPOSSIBLE, "would quantise it twice"),
        ({"precision": "int4"}, {"is_quantised": True}, ReasonCode.VARIANT_IMPOSSIBLE, "would quantise it twice"),
        (
            {"precision": "int4", "runtime": "1.16.3"},
            {},
            ReasonCode.NOT_SUPPORTED,
            "int4 is computed from ONNX Runtime 1.17.0 on: leave onnxruntime==1.16.3 out",
        ),
        ({"precision": "fp16"}, {"is_quantised": True}, ReasonCode.VARIANT_IMPOSSIBLE, "convert it a second time"),
        (
            {"shapes": [{"sequense": 8}]},
            {},
            ReasonCode.NOT_SUPPORTED,
            "no dynamic dimension 'sequense' \\(the nearest is 'sequence'\\): it has sequence",
        ),
        ({"shapes": [{"x": 8}]}, {"dims": {}}, ReasonCode.NOT_SUPPORTED, "all its dimensions are fixed"),
        ({"shapes": [{"hidden": 8}]}, {}, ReasonCode.NOT_SUPPORTED, "'hidden' of encoder is fixed at 256"),
        ({"batch": "1", "shapes": [{"N": 8}]}, {}, ReasonCode.NOT_SUPPORTED, "'N' is the batch and is 1 already"),
        ({"shapes": [{"N": 0}]}, {}, ReasonCode.NOT_SUPPORTED, "'N' is the batch, of which there is at least 1"),
    ],
)
def test_a_point_that_cannot_run_is_refused_with_its_reason(options, facts, code, words):
    plan = plan_of({"runtime": "1.31.1", **options}, model=make_model(**facts))
    reason = only_refusal(plan)
    assert reason.code == code
    assert re.search(words, reason.text), reason.text
    assert plan.problem is None


def test_a_fixed_dimension_given_its_own_size_is_no_refusal():
    assert spec_of({"shapes": [{"hidden": 256}]}).workload.shapes == {"hidden": 256}


def test_the_fixed_batch_asked_for_is_no_refusal():
    assert spec_of({"batch": "4"}, batch=4).workload.batch == 4


def test_refused_points_keep_their_ids_beside_the_cells():
    plan = plan_of({"runtime": "1.20.1,1.31.1"}, model=make_model(opsets={"": 22}))
    assert [(one.id, one.labels["runtime"]) for one in plan.refused] == [("c1", "onnxruntime==1.20.1")]
    assert [arm.id for arm in plan.blocks[0].arms] == ["c2"]


@pytest.mark.parametrize(
    ("release", "nearest"),
    [
        ("1.31.2", "1.31.1"),
        ("1.19.1", "1.19.2"),
        ("9.9.9", releases.ONNXRUNTIME[-1]),
        ("0.1", "1.15.0"),
        ("1.16.9", "1.16.3"),
    ],
)
def test_a_release_that_does_not_exist_is_a_problem_of_the_matrix(release, nearest):
    plan = plan_of({"runtime": release})
    assert only_refusal(plan).code == ReasonCode.UNKNOWN_RUNTIME
    assert plan.problem == f"onnxruntime=={release} does not exist: the nearest known release is {nearest}."


def test_releases_learnt_from_the_index_or_a_node_exist():
    assert plan_of({"runtime": "1.99.0"}, known=Known(releases=[Runtime.of("onnxruntime==1.99.0")])).problem is None
    node = NodeOffer(id="n1", versions=frozenset({"onnxruntime==1.98.0"}))
    assert plan_of({"runtime": "1.98.0"}, fleet=[node]).problem is None
    assert (
        plan_of({"runtime": "1.99.0"}, known=Known(releases=[Runtime.of("onnxruntime-gpu==1.99.0")])).problem
        is not None
    )


@pytest.mark.parametrize(("pre", "newest"), [(True, "1.99.0rc1"), (False, "1.98.0")])
def test_the_newest_may_be_a_pre_release_where_the_matrix_says_so(pre: bool, newest: str) -> None:
    read = matrix.parse({"pre": pre, "batch": [1]})
    assert matrix.parse(read.as_plain()).pre is pre
    both = [Runtime.of("onnxruntime==1.98.0"), Runtime.of("onnxruntime==1.99.0rc1")]
    known = Known(releases=both, newest=both[0], newest_pre=both[1])
    (block,) = planner.plan(read, make_model(), known=known).blocks
    assert block.arms[0].spec.runtime.version == newest


def test_a_release_of_another_distribution_is_believed_when_its_minor_version_exists():
    options = {"runtime": "onnxruntime-openvino==1.24.9", "provider": "openvino"}
    assert plan_of(options).problem is None
    assert plan_of({**options, "runtime": "onnxruntime-openvino==3.1.0"}).problem is not None


# budgets and estimates


def test_settings_of_the_matrix_reach_the_plan():
    read = matrix.parse("budget: standard\nfail-fast: true\nmax-parallel: 3\nbatch: [1, 2]\nexclude: [{batch: 2}]")
    plan = planner.plan(read, make_model())
    assert (plan.budget, plan.fail_fast, plan.max_parallel, plan.excluded) == (Budget.STANDARD, True, 3, 1)
    assert plan.minutes == sum(block.minutes for block in plan.blocks)


@pytest.mark.parametrize(("budget", "rounds"), [("quick", (8, 8)), ("standard", (8, 24)), ("precise", (16, 48))])
def test_a_budget_sets_the_rounds(budget, rounds):
    block = make_block(budget=budget)
    assert (block.min_rounds, block.max_rounds) == rounds


def test_a_precise_budget_sees_smaller_changes():
    seen = [planner.smallest_detectable(budget, noise=0.02, margin=0.02) for budget in Budget]
    assert seen == sorted(seen, reverse=True)


def test_a_quick_sample_of_a_fast_model_takes_about_a_second():
    assert 0.8 < estimates.estimate_sample_s(Budget.QUICK, 0.5) < 1.3


@pytest.mark.parametrize("budget", list(Budget))
def test_slower_models_and_longer_budgets_take_longer(budget):
    times = [estimates.estimate_arm_s(budget, latency_ms) for latency_ms in (None, 50.0, 500.0, 5000.0)]
    assert times == sorted(times)
    assert times[0] >= estimates.estimate_arm_s(Budget.GLANCE, None)


def test_a_very_slow_model_still_gets_two_arms_a_block():
    plan = plan_of({"runtime": "1.29.0,1.30.0,1.31.1"}, model=make_model(latency_ms=60_000.0))
    assert [len(block.arms) for block in plan.blocks] == [2, 2]
    assert all(block.runner_timeout_s <= 3600 and block.block_timeout_s <= 7200 for block in plan.blocks)


def test_no_block_is_planned_longer_than_ten_minutes():
    plan = plan_of({"batch": list(range(1, 40)), "runtime": "1.29.0,1.31.1", "budget": "precise"})
    assert all(block.minutes <= 10.0 for block in plan.blocks)


def test_a_plan_is_json_and_reads_back():
    plan = plan_of({"runtime": "1.20.1,1.31.1", "batch": "1,8"}, model=make_model(opsets={"": 22}), with_null_pair=True)
    assert planner.Plan.model_validate_json(plan.model_dump_json()) == plan


def test_calibration_data_that_cannot_serve_refuse_a_static_variant_in_their_own_words():
    why = "The calibration data lack the input 'x'."
    reason = only_refusal(
        plan_of({"runtime": "1.31.1", "precision": "int8-qdq"}, model=make_model(calibration_problem=why))
    )
    assert (reason.code, reason.text) == (ReasonCode.VARIANT_IMPOSSIBLE, why)


def test_a_block_promises_the_time_of_its_rounds_and_nothing_where_no_budget_bounds_them():
    block = make_block().model_copy(update={"once_s": 10.0, "round_s": 5.0})
    assert block.max_duration_s(8) == pytest.approx(5 * block.max_duration_s(0))
    for unknown in ("once_s", "round_s"):
        assert block.model_copy(update={unknown: None}).max_duration_s(8) is None
