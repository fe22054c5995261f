"""Engine against engine on real runtimes: the outputs of a block's arms against each other."""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Runtime, SessionSettings, Workload
from farm.contract.divergence import DivergenceOrder, DivergenceReport
from farm.contract.reasons import ReasonCode
from farm.contract.reports import EndReport, EnginesReport, Reply, Report
from tests.integration.worker.making import MODELS, Workbench, checks, of_kind

QDQ = MODELS / "qdq_bias.onnx"
pytestmark = pytest.mark.slow


def checked(bench: Workbench, arms: Sequence[ArmOrder]) -> list[Report]:
    """The check phase alone."""
    seen: list[Report] = []

    def answer(message: Report) -> Reply:
        seen.append(message)
        return Reply()

    bench.execute(arms, answer=answer, is_cancelled=lambda: bool(of_kind(seen, EnginesReport)))
    return seen


def test_a_change_by_one_quantum_between_two_releases_is_seen(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    runtimes = ("onnxruntime==1.20.1", "onnxruntime==1.21.1", "onnxruntime==1.21.1")
    arms = [bench.arm(number, QDQ, runtime=runtime) for number, runtime in enumerate(runtimes)]
    found = checked(bench, arms)
    (report,) = of_kind(found, EnginesReport)
    assert report.reason is None
    beyond = {(pair.one, pair.other): sum(output.violations for output in pair.outputs) for pair in report.pairs}
    assert set(beyond) == {(0, 1), (0, 2), (1, 2)}
    assert beyond[0, 1] == beyond[0, 2] > 0
    assert beyond[1, 2] == 0
    # what the newer release's fusions move shows against itself without optimisations, too
    levels = {arm: sum(output.violations for output in check.unoptimised) for arm, check in checks(found).items()}
    assert levels[0] == 0
    assert levels[1] > 0


def test_arms_with_other_inputs_are_not_held_against_each_other(tmp_path: Path) -> None:
    bench, other = Workbench(tmp_path), tmp_path / "other.npz"
    with np.load(QDQ.with_name("qdq_bias.inputs.npz")) as given:
        np.savez(other, x=given["x"][:1])
    arms = [
        bench.arm(0, QDQ, workload=Workload(batch=4)),
        bench.arm(1, QDQ, inputs=other, workload=Workload(batch=1)),
        bench.arm(2, QDQ, session=SessionSettings(optimization="disable"), workload=Workload(batch=4)),
    ]
    found = checked(bench, arms)
    (report,) = of_kind(found, EnginesReport)
    assert [(pair.one, pair.other) for pair in report.pairs] == [(0, 2)]
    # without optimisations there is nothing to compare with
    assert checks(found)[2].unoptimised == ()
    assert checks(found)[0].batch_row_max_abs is not None


def test_a_node_that_is_asked_where_two_arms_part_names_the_node_and_measures_nothing(tmp_path: Path) -> None:
    bench, parts = Workbench(tmp_path), dict[int, bytes]()

    def store(arm: int, packed: Path) -> str:
        parts[arm] = packed.read_bytes()
        return hashlib.sha256(parts[arm]).hexdigest()

    bench.environment = replace(bench.environment, store_part=store)
    runtimes = ("onnxruntime==1.20.1", "onnxruntime==1.21.1")
    arms = [bench.arm(number, QDQ, runtime=runtime) for number, runtime in enumerate(runtimes)]
    questions = (DivergenceOrder(arm=1, against=0), DivergenceOrder(arm=0))
    found = bench.execute(arms, divergences=questions)
    assert [report.kind for report in found] == ["facts", "diverge", "diverge", "end"]
    differs, agrees = of_kind(found, DivergenceReport)
    assert differs.reason is None
    assert differs.document.found.part.shows_it
    assert "conv" in differs.document.found.part.nodes
    assert differs.part_sha256 == hashlib.sha256(parts[1]).hexdigest()
    with zipfile.ZipFile(io.BytesIO(parts[1])) as archive:
        assert set(archive.namelist()) == {"divergence.json", "inputs.npz", "qdq_bias.onnx", "reference.npz"}
    # 1.20.1 adds the bias in float, as the CPU without optimisations does
    assert agrees.document.found is None
    assert DivergenceReport.model_validate_json(differs.model_dump_json()) == differs


def test_a_side_that_cannot_be_asked_says_why(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    arm = bench.arm(0, MODELS / "relu_op26_ir13.onnx", inputs=MODELS / "relu_op25_ir13.inputs.npz")
    old = arm.model_copy(
        update={"cell": arm.cell.model_copy(update={"runtime": Runtime(distribution="onnxruntime", version="1.20.1")})}
    )
    (report,) = of_kind(bench.execute([old], divergences=(DivergenceOrder(arm=0),)), DivergenceReport)
    assert report.document is None
    assert report.reason.code in (ReasonCode.OPSET_TOO_NEW, ReasonCode.IR_TOO_NEW)


def test_an_agent_that_was_started_without_a_search_says_so_instead_of_nothing(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.environment = replace(bench.environment, search=None)
    found = bench.execute([bench.arm(0, QDQ)], divergences=(DivergenceOrder(arm=0),))
    (ended,) = of_kind(found, EndReport)
    assert ended.reason.code is ReasonCode.NOT_SUPPORTED
    assert "started without a search" in ended.reason.text
