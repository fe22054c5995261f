"""Planning: which nodes of a fleet take which blocks, and what their noise lets be seen."""

import re

import pytest

from farm.contract.cells import Loads
from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.planner import NodeOffer
from farm.rules.presenting.idle_reasons import describe_unavailable_node, explain_not_lent
from farm.rules.runtimes.releases import Known
from tests.unit.rules.making import make_model, only_refusal, plan_of


def node(name, *, tags=("cpu",), providers=(), **known):
    return NodeOffer(id=name, name=name, tags=frozenset(tags), providers=frozenset(providers), **known)


def test_blocks_name_the_nodes_that_may_take_them():
    plan = plan_of({"runtime": "1.31.1", "hardware": "x86"}, fleet=[node("a", tags=["cpu", "x86"]), node("b")])
    (block,) = plan.blocks
    assert (block.nodes, block.tags) == (("a",), ("x86",))


@pytest.mark.parametrize(
    ("hardware", "takers"),
    [
        ("x86", {"a", "b"}),
        ("x86+avx512", {"b"}),
        ("arm|avx512", {"b", "c"}),
        ("node:c", {"c"}),
    ],
)
def test_hardware_is_a_tag_all_of_several_any_of_several_or_a_node(hardware, takers):
    fleet = [node("a", tags=["cpu", "x86"]), node("b", tags=["cpu", "x86", "avx512"]), node("c", tags=["cpu", "arm"])]
    plan = plan_of({"runtime": "1.31.1", "hardware": hardware}, fleet=fleet)
    assert set(plan.blocks[0].nodes) == takers


@pytest.mark.parametrize(
    ("options", "fleet", "words"),
    [
        ({}, [], "No node measures for this team yet: have one lent to it, or add a node, and plan again"),
        # nodes that came a moment ago
        ({}, [node("a", tags=[])], "have not proven their hardware yet"),
        (
            {"hardware": "arm"},
            [node("a", tags=["cpu", "arm64"])],
            "the hardware 'arm' .the nearest is 'arm64'.: the fleet",
        ),
        ({"hardware": "node:b"}, [node("bench")], "No node is named 'b'"),
        (
            {"hardware": "node:bench", "provider": "cuda", "runtime": "onnxruntime-gpu==1.29.0"},
            [node("bench")],
            "Node bench does not run CUDAExecutionProvider on onnxruntime-gpu",
        ),
        (
            {"provider": "cuda", "runtime": "onnxruntime-gpu==1.29.0"},
            [node("a")],
            "No node carries the hardware 'cuda'",
        ),
        (
            {"provider": "cuda", "runtime": "onnxruntime-gpu==1.29.0"},
            [node("a", tags=["cpu", "cuda"])],
            "No node with the hardware 'cuda' runs CUDAExecutionProvider on onnxruntime-gpu",
        ),
        ({}, [node("a", distributions=frozenset({"onnxruntime-gpu"}))], "runs CPUExecutionProvider on onnxruntime:"),
    ],
)
def test_a_matrix_that_no_node_takes_is_refused_as_a_whole(options, fleet, words):
    plan = plan_of({"runtime": "1.31.1", **options}, fleet=fleet)
    assert only_refusal(plan).code == ReasonCode.NO_NODE
    assert re.search(words, plan.problem), plan.problem


def test_a_matrix_for_a_team_without_nodes_is_refused_with_what_keeps_the_nodes_that_are_online():
    reasons = [describe_unavailable_node("bench-1", explain_not_lent("b"))]
    plan = planner.plan(matrix.from_options(runtime="1.31.1"), make_model(), [], idle_reasons=reasons)
    assert plan.problem.startswith("No node measures for this team: bench-1 is online but not lent to “b” (its owner")
    assert plan.problem.endswith(". Add a node, and plan again.")


def test_a_release_that_a_node_tried_is_refused_for_what_it_does_not_load_and_converted_to_what_it_loads():
    seen = {"onnxruntime==1.40.0": Loads(opset=30, ir=15, ml=5)}
    knowing, other = (
        node("a", loads=seen, versions={"onnxruntime==1.40.0"}),
        node("b", versions={"onnxruntime==1.40.0"}),
    )
    newest = make_model(opsets={"": 31}, ir_version=15)
    declared = matrix.from_options(runtime="1.40.0")
    assert only_refusal(planner.plan(declared, newest, [other, knowing])).code == ReasonCode.OPSET_TOO_NEW
    assert planner.plan(declared, newest, [other]).cells == 1, "nobody tried it, so that its check will say"
    assert planner.plan(declared, newest, machine=knowing, known=Known(releases=knowing.versions)).refused
    (block,) = planner.plan(
        matrix.from_options(runtime="1.40.0", opset="max-of-runtime"), make_model(), [knowing]
    ).blocks
    assert block.arms[0].spec.recipe.opset == 30


def test_threads_that_no_node_has_cores_for_are_refused_by_the_nodes_own_count():
    fleet = [node("a", cores=2), node("b", cores=8), node("gpu", tags=["cuda"], cores=64, distributions={"other"})]
    plan = plan_of({"runtime": "1.31.1", "threads": "1,8,999"}, fleet=fleet)
    assert [(one.labels["threads"], one.reason.code) for one in plan.refused] == [("999", ReasonCode.NOT_SUPPORTED)]
    assert plan.refused[0].reason.text == (
        "999 threads on a machine of 8 cores only wait for each other: ask for 8 or fewer."
    )
    assert plan.problem is None
    assert {block.nodes for block in plan.blocks} == {("b",)}


def test_a_node_that_did_not_say_how_many_cores_it_has_takes_any_threads():
    assert plan_of({"runtime": "1.31.1", "threads": "999"}, fleet=[node("a"), node("b", cores=2)]).blocks[0].nodes == (
        "a",
    )


def test_one_machine_refuses_threads_between_operators_as_it_does_those_inside():
    two = NodeOffer(id="here", cores=2)
    session = {"name": "parallel", "execution-mode": "parallel", "inter-op-threads": 999}
    declared = matrix.parse({"runtime": ["1.31.1"], "session": [session], "threads": [2]})
    plan = planner.plan(declared, make_model(), machine=two)
    assert only_refusal(plan).text.startswith("999 inter-op threads on a machine of 2 cores")
    assert plan_of({"runtime": "1.31.1", "threads": "2"}, machine=two).refused == ()


def test_sessions_at_once_that_no_node_has_cores_for_are_refused_as_many_threads_are():
    fleet = [node("a", cores=2), node("b", cores=8)]
    plan = plan_of({"runtime": "1.31.1", "threads": "2,4", "concurrency": "1,4"}, fleet=fleet)
    assert {(one.labels["threads"], one.labels["concurrency"]): one.reason.text for one in plan.refused} == {
        (
            "4",
            "4",
        ): "4 streams of 4 threads on a machine of 8 cores only wait for each other: ask for 2 or fewer at once."
    }
    assert {block.nodes for block in plan.blocks} == {("b",)}


def test_sessions_at_once_on_a_device_wait_for_it_and_not_for_cores():
    gpu = node("gpu", tags=["cuda"], cores=2, providers={"CUDAExecutionProvider"})
    options = {"runtime": "onnxruntime-gpu==1.26.0", "provider": "cuda", "concurrency": "8"}
    assert plan_of(options, fleet=[gpu]).refused == ()


def test_one_provider_without_a_node_leaves_the_others_to_run():
    plan = plan_of({"runtime": "onnxruntime-openvino==1.24.1", "provider": "cpu,openvino"}, fleet=[node("a")])
    assert [one.reason.code for one in plan.refused] == [ReasonCode.NO_NODE]
    assert plan.problem is None
    assert plan.cells == 1


def test_providers_are_side_by_side_on_a_node_that_has_both():
    fleet = [node("a"), node("b", tags=["cpu", "openvino"], providers=["OpenVINOExecutionProvider"])]
    plan = plan_of({"runtime": "onnxruntime-openvino==1.24.1", "provider": "cpu,openvino"}, fleet=fleet)
    (block,) = plan.blocks
    assert block.nodes == ("b",)
    assert block.tags == ("openvino", "cpu")
    assert [c.axis for c in block.comparisons] == ["provider"]


def test_providers_that_no_node_has_together_are_measured_apart():
    fleet = [
        node("a", tags=["cpu", "openvino"], providers=["OpenVINOExecutionProvider"]),
        node("b", tags=["cuda"], providers=["CUDAExecutionProvider"]),
    ]
    plan = planner.plan(
        matrix.parse(
            {
                "include": [
                    {"runtime": "onnxruntime-openvino==1.24.1", "provider": "openvino"},
                    {"runtime": "onnxruntime-gpu==1.24.1", "provider": "cuda"},
                ]
            }
        ),
        make_model(),
        fleet,
    )
    assert [block.nodes for block in plan.blocks] == [("a",), ("b",)]


def test_an_owners_own_provider_is_believed_from_the_node():
    fleet = [node("a", tags=["cpu", "xnnpack"], providers=["XnnpackExecutionProvider"])]
    plan = plan_of({"runtime": "1.31.1", "provider": "xnnpack"}, fleet=fleet)
    assert plan.blocks[0].nodes == ("a",)


def test_a_providers_proof_on_a_node_does_not_put_it_into_another_package():
    fleet = [node("a", tags=["cpu", "openvino"], providers=["OpenVINOExecutionProvider"])]
    plan = plan_of({"runtime": "1.31.1", "provider": "openvino"}, fleet=fleet)
    assert only_refusal(plan).code == ReasonCode.PROVIDER_NOT_IN_BUILD


def test_alternatives_and_named_nodes_are_no_queue_tags():
    plan = plan_of({"runtime": "1.31.1", "hardware": "cpu|arm"}, fleet=[node("a")])
    assert plan.blocks[0].tags == ()
    plan = plan_of({"runtime": "1.31.1", "hardware": "x86+avx512"})
    assert plan.blocks[0].tags == ("avx512", "x86")


def test_the_noisiest_node_decides_what_can_be_seen():
    fleet = [
        node("a", noise=0.007, margins={"session_ms": 0.3}),
        node("b", noise=0.05, margin=0.03, margins={"session_ms": 0.2, "first_ms": 0.15}),
    ]
    (block,) = plan_of({"runtime": "1.29.0,1.31.1"}, fleet=fleet).blocks
    assert (block.noise, block.margin, block.is_noise_assumed) == (0.05, 0.03, False)
    assert block.margins == {"session_ms": 0.3, "first_ms": 0.15}
    assert block.comparisons[0].smallest_detectable == pytest.approx(4.6 * 0.05 / 8**0.5)


def test_a_node_without_a_history_makes_the_noise_an_assumption():
    (block,) = plan_of({"runtime": "1.29.0,1.31.1"}, fleet=[node("a", noise=0.007), node("b")]).blocks
    assert block.is_noise_assumed
    assert block.noise == planner.ASSUMED_NOISE


def test_a_small_node_gets_small_blocks():
    plan = plan_of({"runtime": "1.31.1", "batch": "1,2,4,8"}, fleet=[node("a", max_arms=3)])
    assert all(len(block.arms) <= 3 for block in plan.blocks)
    assert plan.cells == 4
