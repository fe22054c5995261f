"""Rounds whose arms take turns, with real runners in the sandbox."""

import os

import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.reasons import ReasonCode
from farm.contract.reports import ArmSample, Report, RoundReport
from tests.integration.worker.making import MODELS, Workbench, end, of_kind
from worker.agent.measurement import samples as sampling

MODEL = MODELS / "relu_op21_ir10.onnx"
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes: arms measure alone")


@pytest.fixture
def bench(misbehaving_bench: Workbench) -> Workbench:
    return misbehaving_bench


def misbehaving(bench: Workbench, how: str) -> ArmOrder:
    return bench.arm(1, MODEL, session={"config": {"test.misbehave": how}})


def samples(reports: list[Report]) -> dict[int, ArmSample]:
    (measured,) = of_kind(reports, RoundReport)
    return {one.arm: one for one in measured.samples}


def test_arms_of_a_round_measure_in_parts_and_count_only_their_own_time(bench: Workbench) -> None:
    # two threads: one that was disturbed would be measured again, perhaps with nobody to take turns with
    arms = [bench.arm(number, MODEL, session={"threads": 2}) for number in range(3)]
    for one in samples(bench.execute(arms)).values():
        assert one.sample is not None
        # 0.3 s in turns of 20 ms, fewer and longer ones where the machine is busy
        assert 2 <= one.sample.turns <= 18
        phases = one.sample.phases_ms
        assert phases["window"] >= 270
        # the others' warm-up and turns
        assert phases["others"] >= 0.9 * phases["window"]
        assert one.sample.throughput is not None
        assert one.sample.throughput <= 1000 / one.sample.min_ms


@pytest.mark.usefixtures("short_windows")
@pytest.mark.parametrize(
    ("how", "code"),
    [("turn:crash", ReasonCode.CRASHED), ("turn:hang", ReasonCode.TIMEOUT), ("turn:endless", ReasonCode.TIMEOUT)],
)
def test_one_that_misbehaves_in_its_turn_ends_its_own_sample_alone(bench: Workbench, how: str, code: ReasonCode):
    arms = [bench.arm(0, MODEL), misbehaving(bench, how), bench.arm(2, MODEL)]
    reports = bench.execute(arms, runner_timeout_s=5.0)
    taken = samples(reports)
    assert taken[1].reason is not None
    assert taken[1].reason.code == code
    for number in (0, 2):
        assert taken[number].sample.turns > 0
    assert end(reports).reason is None


@pytest.mark.usefixtures("short_windows")
def test_arms_without_room_for_all_measure_alone(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MEMORY_SHARE", 1e-6)
    for one in samples(bench.execute([bench.arm(number, MODEL) for number in range(2)])).values():
        assert one.sample is not None
        assert one.sample.turns == 0
        assert "others" not in one.sample.phases_ms


@pytest.mark.usefixtures("short_windows")
def test_sessions_side_by_side_measure_alone(bench: Workbench) -> None:
    arms = [bench.arm(number, MODEL, workload={"batch": 1, "concurrency": 2}) for number in range(2)]
    assert {one.sample.turns for one in samples(bench.execute(arms)).values() if one.sample} == {0}


@pytest.mark.usefixtures("short_windows")
def test_a_cancelled_round_ends_every_process_that_waits(bench: Workbench) -> None:
    looks = iter(range(10_000))
    arms = [bench.arm(0, MODEL), misbehaving(bench, "turn:hang"), bench.arm(2, MODEL)]
    # the checks and traces of three arms are over by then; the watch asks four times a second
    reports = bench.execute(arms, is_cancelled=lambda: next(looks) > 60, runner_timeout_s=600.0)
    assert end(reports).reason.code == ReasonCode.CANCELLED
    assert end(reports).wall_s < 120
