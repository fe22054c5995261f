"""The way out of a refusal: a change of the matrix that planning takes."""

import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from farm.contract.cells import CellSpec, Runtime
from farm.contract.reasons import ReasonCode, TrialAsked, WayOut
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer, Plan
from farm.rules.planning.resolution import Request
from farm.rules.planning.ways_out import MAX_REASONS, WAYS, apply_way_out
from farm.rules.runtimes import providers
from farm.rules.runtimes.models import CompiledFacts, ModelFacts
from farm.rules.runtimes.releases import nearest_release, newest_release
from onnxfarm.commands.submit import read_matrix
from tests.unit.rules.making import make_model, plan_of

NEWER = make_model(opsets={"": 22}, ir_version=10)
CPU = NodeOffer(id="1", name="bench-1")
OLD, NEW, NEWEST = "onnxruntime==1.17.0", "onnxruntime==1.31.1", "onnxruntime==1.32.0"


def ways(plan: Plan) -> dict[str, WayOut | None]:
    return {point.id: point.way_out for point in plan.refused}


# matrix, model, what the axis then holds
CASES: Mapping[str, tuple[dict[str, Any], ModelFacts, str, list[object]]] = {
    "a newer release where all that an old one gets is refusals": ({"runtime": "1.17.0"}, NEWER, "runtime", [NEWEST]),
    "one newer release where no release of the matrix loads it": (
        {"runtime": "1.17.0,1.18.0"},
        NEWER,
        "runtime",
        ["onnxruntime==1.18.0", NEWEST],
    ),
    "an older opset beside the model's own where a newer release is measured already": (
        {"runtime": "1.17.0,1.31.1"},
        NEWER,
        "opset",
        ["as-is", 20],
    ),
    "the nearest release in place of one that does not exist": (
        {"runtime": "1.39.7"},
        make_model(),
        "runtime",
        [NEWEST],
    ),
    "the package that brings a provider": (
        {"runtime": "1.31.1", "provider": "cpu,openvino"},
        make_model(),
        "runtime",
        [NEW, "onnxruntime-openvino==1.24.1"],
    ),
    "the model's own batch": ({"runtime": "1.31.1", "batch": "2,8"}, make_model(batch=1), "batch", []),
    "no batch where the model has none": ({"runtime": "1.31.1", "batch": "8"}, make_model(batch=None), "batch", []),
    "a newer release beside one that follows no policy": (
        {"runtime": "1.20.0", "policy": "max-performance,none"},
        make_model(),
        "runtime",
        ["onnxruntime==1.20.0", NEWEST],
    ),
    "a policy left out": ({"runtime": "1.20.0", "policy": "max-performance"}, make_model(), "policy", []),
    "no precision where a model is quantised already": (
        {"runtime": "1.31.1", "precision": "int8-dynamic"},
        make_model(is_quantised=True),
        "precision",
        [],
    ),
    "nothing where operators are in no build": (
        {"runtime": "1.31.1"},
        make_model(custom_domains=("their.own",)),
        "",
        [],
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal_names_the_change_that_planning_takes(case: str) -> None:
    declared, model, axis, values = CASES[case]
    plan = plan_of(declared, model=model)
    way = plan.refused[0].way_out
    assert (way.axis, list(way.values)) == (axis, values) if way is not None else axis == ""
    if way is not None:
        again = planner.plan(apply_way_out(matrix.from_options(**declared), way), model)
        assert again.cells > plan.cells
        assert again.problem is None


def test_a_way_out_has_a_label_and_the_command_that_measures_it_here() -> None:
    [way] = ways(plan_of({"runtime": "1.17.0"}, model=NEWER)).values()
    assert way is not None
    assert way.label == "Take 1.32.0 in place of 1.17.0"
    assert way.command == "onnxfarm bench model.onnx --ort 1.32.0"


# matrix, model, the command
COMMANDS: Mapping[str, tuple[dict[str, Any], ModelFacts, str]] = {
    "a release beside the others": ({"runtime": "1.17.0,1.18.0"}, NEWER, "--ort 1.18.0,1.32.0"),
    "no batch, the releases kept, the inputs beside the model": (
        {"runtime": "1.29.0,1.31.1", "batch": "1", "threads": "1,2", "budget": "standard"},
        make_model(batch="batch", inputs_sha256="c" * 64, inputs_batch=2, calibration_sha256="d" * 64),
        """--ort 1.29.0,1.31.1 --matrix '{"budget": "standard", "threads": [1, 2]}' --inputs model.inputs.npz """
        "--calibration model.calibration.npz",
    ),
}


@pytest.mark.parametrize("case", COMMANDS, ids=str)
def test_the_command_keeps_the_whole_matrix_but_for_the_change(case: str) -> None:
    """It measured one cell of it, and read a file that there was not."""
    declared, model, said = COMMANDS[case]
    way = plan_of(declared, model=model).refused[0].way_out
    assert way is not None
    assert way.command == f"onnxfarm bench model.onnx {said}"


def test_a_rule_that_names_a_release_stands_beside_the_releases() -> None:
    rules = {"exclude": [{"runtime": "1.31.1", "batch": 8}]}
    declared = matrix.parse({"matrix": {"runtime": ["1.17.0", "1.31.1"], "batch": [1, 8], **rules}})
    way = planner.plan(declared, NEWER).refused[0].way_out
    assert way is not None
    words = shlex.split(way.command)
    assert words[3] == "--matrix"
    assert matrix.parse(words[4]) == apply_way_out(declared, way)


def test_a_value_that_others_are_measured_with_stays() -> None:
    found = ways(plan_of({"runtime": "1.20.0,1.31.1", "policy": "max-performance"}))["c1"]
    assert found is not None
    assert (found.label, found.values) == ("Add policy none to this matrix", ("max-performance", "none"))


def test_a_node_that_is_not_there_gives_way_to_what_the_provider_needs() -> None:
    [way] = ways(plan_of({"runtime": "1.31.1", "hardware": "node:bench-9"}, fleet=[CPU])).values()
    assert way is not None
    assert (way.axis, way.values) == ("hardware", ())


def test_a_node_that_takes_it_is_named_where_the_usual_hardware_does_not_help() -> None:
    options = {"runtime": "1.31.1", "hardware": "node:bench-9", "provider": "cpu"}
    arm = NodeOffer(id="3", name="bench-3", tags=frozenset({"arm"}))
    [way] = ways(plan_of(options, fleet=[arm])).values()
    assert way is not None
    assert (way.axis, way.values) == ("hardware", ("node:bench-3",))


def test_a_provider_that_nobody_has_proven_gives_way_to_the_cpu() -> None:
    [way] = ways(plan_of({"runtime": "onnxruntime-openvino==1.24.1", "provider": "openvino"}, fleet=[CPU])).values()
    assert way is not None
    assert (way.axis, way.values, way.label) == ("provider", ("CPUExecutionProvider",), "Take CPU in place of OpenVINO")


def test_compiled_code_goes_to_the_provider_that_it_was_compiled_for() -> None:
    compiled = make_model(compiled=CompiledFacts(by=("QNNExecutionProvider",)))
    qnn = NodeOffer(
        id="4", name="bench-4", tags=frozenset({"qnn", "cpu"}), providers=frozenset({"QNNExecutionProvider"})
    )
    options = {"runtime": "onnxruntime-qnn==2.3.0", "provider": "cpu"}
    [way] = ways(plan_of(options, model=compiled, fleet=[qnn])).values()
    assert way is not None
    assert (way.axis, way.values) == ("provider", ("QNNExecutionProvider",))


def test_a_matrix_of_single_points_has_no_axis_to_change() -> None:
    declared = matrix.parse({"matrix": {"include": [{"runtime": "1.17.0"}, {"runtime": "1.31.1", "batch": 1}]}})
    plan = planner.plan(declared, NEWER)
    assert [point.reason.code for point in plan.refused] == [ReasonCode.OPSET_TOO_NEW]
    assert ways(plan) == {"c1": None}


def test_what_excludes_a_value_goes_with_it() -> None:
    declared = matrix.parse(
        {
            "matrix": {
                "runtime": ["1.17.0", "1.31.1"],
                "batch": [1, 8],
                "exclude": [{"runtime": "1.17.0", "batch": 8}, {"runtime": "1.31.1", "batch": 1}],
            }
        }
    )
    [point] = planner.plan(declared, NEWER).refused
    assert point.way_out is not None
    changed = apply_way_out(declared, point.way_out)
    assert [str(runtime) for runtime in changed.axes["runtime"]] == [NEW, NEWEST]
    assert [dict(rule) for rule in changed.exclude] == [{"runtime": Runtime.of(NEW), "batch": 1}]


def test_models_that_are_measured_together_have_ways_of_their_own() -> None:
    older = make_model(bundle_sha256="c" * 64)
    plan = planner.plan(matrix.from_options(runtime="1.17.0"), [older, NEWER])
    assert {point.id: point.labels["model"] for point in plan.refused} == {"c2": "encoder"}
    assert [way and way.axis for way in ways(plan).values()] == ["runtime"]


def test_beyond_so_many_reasons_none_is_looked_at() -> None:
    batches = ",".join(map(str, range(2, MAX_REASONS + 10)))
    plan = plan_of({"runtime": "1.31.1", "batch": batches}, model=make_model(batch=1))
    known = [point.way_out is not None for point in plan.refused]
    assert known == [True] * MAX_REASONS + [False] * (len(known) - MAX_REASONS)


def test_on_a_farm_the_command_submits_the_whole_matrix_to_it() -> None:
    """It measured on the machine of whoever read it, and not on the farm that had refused."""
    declared = {"runtime": "1.17.0", "threads": "1,2"}
    [way] = {point.way_out for point in plan_of(declared, model=NEWER, fleet=[CPU]).refused}
    assert way is not None
    *words, text, wait = shlex.split(way.command)
    assert (words, wait) == (["onnxfarm", "submit", "model.onnx", "--matrix"], "--wait")
    assert read_matrix(text) == apply_way_out(matrix.from_options(**declared), way).as_plain()


def test_a_browsers_release_is_submitted_to_the_farm_that_has_its_browser() -> None:
    options = {"runtime": "onnxruntime-web==1.30.0", "provider": "wasm", "batch": 8}
    wasm = {"tags": frozenset({"wasm"}), "providers": frozenset({"WasmExecutionProvider"})}
    tab = NodeOffer(id="5", name="tab-5", is_browser=True, **wasm)
    [way] = ways(plan_of(options, model=make_model(batch=1), fleet=[tab])).values()
    assert way is not None
    assert (way.axis, way.command.startswith("onnxfarm submit ")) == ("batch", True)
    assert "onnxruntime-web==1.30.0" in way.command


def test_releases_beside_one_that_is_not_on_offer() -> None:
    asked, newer = Runtime.of("onnxruntime==1.31.9"), Runtime.of("onnxruntime==1.33.0")
    assert newest_release(asked) == Runtime.of(NEWEST)
    assert (
        newest_release(asked, extra=[newer, Runtime.of("onnxruntime==1.34.0rc1"), Runtime.of("torch==9.0.0")]) == newer
    )
    assert newest_release(asked, yanked=[Runtime.of(NEWEST)]) == Runtime.of(NEW)
    assert nearest_release(asked) == Runtime.of(NEW)
    assert nearest_release(asked, yanked=[Runtime.of(NEW), Runtime.of(NEWEST)]) == Runtime.of("onnxruntime==1.31.0")


def test_the_owner_of_a_node_that_would_take_it_is_asked_before_anything_is_changed() -> None:
    options = {"runtime": "onnxruntime-openvino==1.24.1", "provider": "openvino"}
    asked = frozenset({"OpenVINOExecutionProvider"})
    fleet = [CPU, CPU.model_copy(update={"id": "7", "name": "bench-7", "may_be_asked": asked})]
    [way] = ways(plan_of(options, fleet=fleet)).values()
    assert way is not None
    assert way.ask == TrialAsked(node=7, provider="openvino")
    assert way.command == "onnxfarm node try bench-7 openvino"
    # one that would not take it, whatever it proves, is not asked
    [way] = ways(plan_of({**options, "hardware": "node:bench-1"}, fleet=fleet)).values()
    assert way is None or way.ask is None


def test_a_node_that_may_try_a_provider_takes_its_cells_beside_others() -> None:
    options = {"runtime": "onnxruntime-openvino==1.24.1", "provider": "cpu,openvino"}
    trying = CPU.model_copy(update={"id": "7", "may_try": frozenset({"OpenVINOExecutionProvider"})})
    plan = plan_of(options, fleet=[CPU, trying])
    assert plan.refused == ()
    [block] = plan.blocks
    assert block.nodes == ("7",)
    assert {arm.spec.provider: arm.trial for arm in block.arms if arm.twin_of is None} == {
        "CPUExecutionProvider": None,
        "OpenVINOExecutionProvider": "7",
    }


def test_a_node_may_find_out_about_public_builds_of_ours_alone() -> None:
    known = {provider.short: providers.can_be_probed(provider) for provider in providers.PROVIDERS}
    assert [known[name] for name in ("openvino", "cuda", "coreml")] == [True] * 3
    assert [known[name] for name in ("cpu", "xnnpack", "wasm")] == [False] * 3


def test_nothing_is_tried_where_nothing_is_known() -> None:
    spec = CellSpec(
        artifact_sha256="a" * 64,
        runtime=Runtime(distribution="their-plugin", version="1.0+onnxruntime.1.31.1"),
        provider="XnnpackExecutionProvider",
    )
    request = Request(make_model(opsets={}))
    tried = {code: [axis for changes in WAYS[code] for axis, _ in changes(spec, request)] for code in WAYS}
    assert tried[ReasonCode.OPSET_TOO_NEW] == tried[ReasonCode.UNKNOWN_RUNTIME] == []
    assert tried[ReasonCode.PROVIDER_NOT_IN_BUILD] == ["provider"]
    assert tried[ReasonCode.MODEL_NOT_LOADED] == ["precision", "opset"]


def test_more_threads_than_cores_become_as_many_as_the_largest_node_has() -> None:
    nodes = [NodeOffer(id="1", name="bench-1", cores=2), NodeOffer(id="2", name="bench-2", cores=4)]
    [way] = ways(plan_of({"runtime": "1.31.1", "threads": 64}, fleet=nodes)).values()
    assert way is not None
    assert (way.axis, way.values) == ("threads", (4,))
