"""A device that the processor simulates: what is refused, what is not compared, and what is said first."""

import pytest

from farm.contract.cells import Runtime
from farm.contract.document_cells import Cell, Parity
from farm.rules.planning.plans import NodeOffer
from farm.rules.presenting import hardware, sentences, simulated
from tests.documents import make_cell, make_document
from tests.unit.rules.making import make_block, make_check, make_model, make_rounds, only_refusal, plan_of
from tests.unit.rules.test_judging import SLOWER, fed

QNN = "QNNExecutionProvider"
HERE = NodeOffer(id="here", tags=frozenset({"x86"}))
ASKED = {"runtime": "onnxruntime-qnn==2.7.0", "provider": "qnn"}


def cell(name: str = "c1", **changes: object) -> Cell:
    known: dict[str, object] = {
        "model": "m", "opset": 17, "runtime": "onnxruntime-qnn==2.7.0", "provider": QNN, "precision": "int8-qdq",
        "hardware": "qnn-simulated", "p50_ms": 190.0, "parity": Parity(verdict="pass"), "simulated": True,
        "executed": {QNN: {"QNN_1": 1, "QNN_2": 1}, "CPUExecutionProvider": {"Softmax": 1, "QuantizeLinear": 1}},
    }  # fmt: skip
    return make_cell(name, **{**known, **changes})


def test_a_machine_that_can_only_simulate_the_device_gives_its_cells_a_tag_of_their_own():
    plan = plan_of({**ASKED, "precision": "int8-qdq"}, machine=HERE)
    assert plan.blocks[0].arms[0].spec.hardware == "qnn-simulated"
    other = plan_of({**ASKED, "precision": "int8-qdq"}, machine=NodeOffer(id="phone", tags=frozenset({"arm"})))
    assert other.blocks[0].arms[0].spec.hardware == "qnn"


def test_a_farm_simulates_only_where_the_matrix_asks_for_it():
    node = NodeOffer(
        id="a", tags=frozenset({"cpu", "x86", "qnn-simulated"}), providers=frozenset({QNN, "CPUExecutionProvider"})
    )
    asked = {**ASKED, "precision": "int8-qdq"}
    assert plan_of({**asked, "hardware": "qnn-simulated"}, fleet=[node]).blocks
    refused = only_refusal(plan_of(asked, fleet=[node])).text
    assert refused.endswith("`hardware: [qnn-simulated]` takes a simulator, for placement and parity alone.")


def test_fp32_on_a_simulator_is_refused_with_what_it_would_take():
    assert only_refusal(plan_of(ASKED, machine=HERE)).text == (
        "The simulator of QNNExecutionProvider computes fp32 as it stands and the device computes FP16 in its place, "
        "so that outputs would not be the device's: ask for `precision: int8-qdq` or `fp16`, or upload a quantised "
        "model."
    )


def test_a_quantised_model_is_measured_on_a_simulator_as_it_is():
    assert plan_of(ASKED, machine=HERE, model=make_model(is_quantised=True)).blocks


def test_latencies_of_a_simulator_are_compared_with_nothing():
    judge, _ = fed(make_block(), [make_check(0), make_check(1, is_simulated=True), *make_rounds(8, SLOWER)])
    (judged,) = judge.comparisons()
    assert judged.verdict == "not comparable"
    assert judged.reason.startswith("c2 ran on a simulator of ")
    assert hardware.find_fault(cell()) == "untimed"
    assert hardware.find_fault(cell(simulated=False)) is None


def test_placement_and_parity_of_a_simulated_cell_are_said_first():
    said = sentences.describe_run(make_document(cell()))
    assert said.startswith(
        "c1 (QNN, int8-qdq, batch 1, 1 thread) ran on a simulator of QNN: it took 2 parts of the graph; "
        "QuantizeLinear, Softmax stay on the CPU; its outputs agree with the reference."
    )
    assert "compared with nothing" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"executed": {}}, "its placement was not traced"),
        ({"executed": {QNN: {"QNN_1": 1}}}, "it took 1 part of the graph, and nothing stays on the CPU"),
        ({"executed": {"CPUExecutionProvider": {"Conv": 3}}}, "it took nothing of the graph; Conv stays on the CPU"),
        (
            {"executed": {"CPUExecutionProvider": dict.fromkeys("ABCDEFG", 1)}},
            "A, B, C, D, E and 2 other operators stay",
        ),
        ({"parity": Parity(verdict="fail")}, "its outputs differ from the reference"),
        ({"parity": Parity()}, "its outputs were not compared"),
    ],
)
def test_what_is_not_known_of_a_simulated_cell_is_said_too(changes: dict[str, object], words: str):
    assert words in simulated.describe_simulated(make_document(cell(**changes)))


def test_further_simulated_cells_are_counted_and_others_say_nothing():
    assert "1 further cell likewise" in simulated.describe_simulated(
        make_document(cell(), cell("c2"), cell("c3", simulated=False))
    )
    assert simulated.describe_simulated(make_document(cell(simulated=False))) == ""


def test_a_runtime_without_a_simulator_has_the_usual_tag():
    plan = plan_of({"runtime": "1.31.1", "provider": "cpu"}, machine=HERE)
    spec = plan.blocks[0].arms[0].spec
    assert (spec.hardware, spec.runtime) == ("cpu", Runtime(distribution="onnxruntime", version="1.31.1"))
