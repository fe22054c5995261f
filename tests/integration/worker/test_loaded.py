"""`load` on real ONNX Runtime: arrivals of its own, in one stream or several, and rates that a block searches once."""

from pathlib import Path

import pytest

from farm.contract.blocks import ArmOrder
from farm.rules.cells.metrics import DIFFERING, GOODPUT, MAX_RATE
from tests.integration.worker.making import MODELS, Workbench
from tests.integration.worker.test_fresh import bench as bench  # a staged runner with doubles
from tests.integration.worker.test_fresh import sampled

ENCODER = MODELS / "encoder_dyn.onnx"


def loaded(bench: Workbench, number: int, scenario: str) -> ArmOrder:
    return bench.arm(
        number, ENCODER, workload={"batch": 1, "scenario": scenario}, session={"config": {"test.patient": "1"}}
    )


@pytest.mark.parametrize("sessions", ["shared", "each"])
def test_every_answer_of_streams_at_work_at_once_is_the_one_given_alone(bench: Workbench, sessions: str) -> None:
    (found,) = sampled(bench, loaded(bench, 0, f"load:rate=400:bound=50ms:streams=2:sessions={sessions}"))
    sample = found[0]
    assert sample.n == 100
    assert sample.metrics[DIFFERING] == 0.0
    assert 0 < sample.metrics[GOODPUT] < 800
    (phase,) = sample.phases
    assert (phase.name, phase.metrics["n"]) == ("400 per s", 100.0)
    assert sample.p50_ms == pytest.approx(phase.metrics["p50_ms"])
    assert phase.metrics["p99_ms"] >= phase.metrics["p50_ms"] >= sample.min_ms


def test_rates_are_searched_once_a_block_and_are_the_same_for_both_arms(bench: Workbench, tmp_path: Path) -> None:
    rounds = sampled(bench, loaded(bench, 0, "load:bound=400ms"), loaded(bench, 1, "load:bound=400ms"), rounds=2)
    curves = [[phase.name for phase in sample.phases] for taken in rounds for sample in taken.values()]
    assert len(curves) == 4
    assert curves == [curves[0]] * 4
    assert len(curves[0]) == 6
    for taken in rounds:
        for sample in taken.values():
            assert sample.metrics.get(MAX_RATE, 1.0) > 0
