"""`fresh`: inputs change from inference to inference, on real ONNX Runtime, and a double that leaks by them alone."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.reports import RoundReport, Sample
from farm.rules.cells.scenario_metrics import DIFFERING, GROWTH
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import MODELS, Workbench, checks, of_kind
from worker.agent.installation.stages import stage_runner

MIB = 1 << 20
ENCODER = MODELS / "encoder_dyn.onnx"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    stage = tmp_path / "leaking"
    shutil.copytree(stage_runner(tmp_path / "stage"), stage)
    shutil.copyfile(Path(__file__).with_name("leaking.py"), stage / "__main__.py")
    return Workbench(tmp_path, stage=stage)


def sampled(bench: Workbench, *arms: ArmOrder, rounds: int = 1) -> list[dict[int, Sample]]:
    """The samples of each round, by arm."""
    with brief_windows():
        reports = bench.execute(arms, rounds=rounds)
    assert [found.reason for found in checks(reports).values()] == [None] * len(arms)
    measured = [report.samples for report in of_kind(reports, RoundReport)]
    assert all(place.sample is not None for places in measured for place in places), measured
    return [{place.arm: place.sample for place in places if place.sample is not None} for places in measured]


def encoder(bench: Workbench, number: int, *, scenario: str = "single", leak: str = "") -> ArmOrder:
    session = {"config": {"test.leak": leak}} if leak else {}
    return bench.arm(number, ENCODER, workload={"batch": 1, "scenario": scenario}, session=session)


def test_a_leak_that_comes_when_bytes_change_is_found_by_fresh_and_by_nothing_else(bench: Workbench) -> None:
    arms = [
        encoder(bench, 0, scenario="fresh"),
        encoder(bench, 1, scenario="fresh", leak="1"),
        encoder(bench, 2),
        encoder(bench, 3, leak="1"),
        bench.arm(4, ENCODER, workload={"batch": 1, "concurrency": 2}, session={"config": {"test.leak": "1"}}),
    ]
    (found,) = sampled(bench, *arms)
    assert found[1].metrics[GROWTH] == pytest.approx(MIB, rel=0.25)
    assert abs(found[0].metrics[GROWTH]) < 0.1 * MIB
    assert all(GROWTH not in found[arm].metrics for arm in (2, 3, 4))
    assert abs(found[3].peak_memory_bytes - found[2].peak_memory_bytes) < 16 * MIB
    assert [found[arm].metrics[DIFFERING] for arm in (0, 1)] == [0.0, 0.0]


def test_shapes_have_a_latency_each_and_memory_has_a_course(bench: Workbench) -> None:
    (found,) = sampled(bench, encoder(bench, 0, scenario="fresh:seq=4+64+random"))
    phases = {phase.name: phase.metrics for phase in found[0].phases}
    shapes = {name: told for name, told in phases.items() if name.startswith("seq=")}
    assert {"seq=4", "seq=64"} < set(shapes)
    assert len(shapes) > 3, "the random ones are drawn one by one"
    assert shapes["seq=64"]["p50_ms"] > shapes["seq=4"]["p50_ms"]
    assert sum(told["n"] for told in shapes.values()) == found[0].n
    course = [told for name, told in phases.items() if name.startswith("memory ")]
    assert len(course) == 8
    assert [told["inferences"] for told in course] == sorted(told["inferences"] for told in course)
    assert all(told["resident_bytes"] > MIB for told in course)


@pytest.fixture
def picky(tmp_path: Path) -> Path:
    """A model whose dimension is dynamic in name, and fits 16 alone."""
    bias = onnx.numpy_helper.from_array(np.ones(16, dtype=np.float32), "bias")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in ("x", "y"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "bias"], ["y"])], "picky", [x], [y], [bias])
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / "picky.onnx")
    np.savez(tmp_path / "picky.inputs.npz", x=np.arange(16, dtype=np.float32))
    return tmp_path / "picky.onnx"


def test_a_shape_that_the_model_refuses_ends_its_cell_in_one_sentence_and_no_other(bench: Workbench, picky: Path):
    refused = bench.arm(0, picky, workload={"batch": None, "scenario": "fresh:n=16+7"})
    with brief_windows():
        reports = bench.execute([refused, encoder(bench, 1, scenario="fresh")])
    (places,) = [report.samples for report in of_kind(reports, RoundReport)]
    by_arm = {place.arm: place for place in places}
    assert by_arm[1].sample is not None
    reason = by_arm[0].reason
    assert reason.code == "inference_failed"
    assert reason.text.startswith("The model refused set 2 of 8 (n=7): ")
