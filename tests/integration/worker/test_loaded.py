"""`load` on real ONNX Runtime: arrivals of its own, in one stream or several, and rates that a block searches once."""

import re
from pathlib import Path

import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.document_cells import Figure
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import RoundReport
from farm.rules.cells import scenarios
from farm.rules.cells.scenario_metrics import DIFFERING, GOODPUT, MAX_RATE
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import MODELS, Workbench, end, of_kind
from tests.integration.worker.test_fresh import bench as bench  # a staged runner with doubles
from tests.integration.worker.test_fresh import sampled

ENCODER = MODELS / "encoder_dyn.onnx"


def loaded(bench: Workbench, number: int, scenario: str, *, how: str = "patient") -> ArmOrder:
    return bench.arm(
        number, ENCODER, workload={"batch": 1, "scenario": scenario}, session={"config": {f"test.{how}": "1"}}
    )


def reason_beside_a_good_arm(bench: Workbench, one: ArmOrder) -> Reason:
    """Why the arm was not measured in a round in which the other was."""
    with brief_windows():
        reports = bench.execute([one, loaded(bench, 1, "load:rate=400:bound=50ms")])
    (places,) = [report.samples for report in of_kind(reports, RoundReport)]
    by_arm = {place.arm: place for place in places}
    assert by_arm[1].sample is not None
    assert end(reports).reason is None
    reason = by_arm[0].reason
    assert reason is not None
    return reason


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


@pytest.mark.parametrize("scenario", ["load:rate=400:bound=50ms", "load:bound=50ms", "load:rate=400:streams=2"])
def test_a_launch_that_dies_under_load_ends_its_cell_and_no_other(bench: Workbench, scenario: str) -> None:
    reason = reason_beside_a_good_arm(bench, loaded(bench, 0, scenario, how="dies"))
    assert reason.code == ReasonCode.CRASHED
    assert "SIGSEGV" in reason.text


def test_a_generator_that_starves_ends_its_cell_in_one_sentence_and_no_other(bench: Workbench) -> None:
    reason = reason_beside_a_good_arm(bench, loaded(bench, 0, "load:rate=100", how="starved"))
    assert reason.code == ReasonCode.NOT_SUPPORTED
    # two milliseconds by its own doing, and more where the machine is busy
    late = re.match(r"Generator late: at 100 per s streams that waited began ([\d.]+) ms after", reason.text)
    assert float(late[1]) >= 2.0
    assert reason.text.count(". ") == 0


def test_a_rate_that_no_machine_holds_is_measured_as_not_held(bench: Workbench) -> None:
    (found,) = sampled(bench, loaded(bench, 0, "load:rate=1000000"))
    told = {name: Figure(value=value) for name, value in found[0].metrics.items()}
    said = scenarios.parse("load:rate=1000000").describe_result(told, p99_ms=None)
    assert said.startswith("1e+06 per s are not held: ")
