"""A runner that crashes, hangs, floods, is killed or answers garbage ends its cell with a reason and harms no other."""

import time
from types import SimpleNamespace

import pytest

from farm.contract.blocks import ArmOrder
from farm.contract.reasons import CellStatus, ReasonCode
from farm.contract.reports import Reply, Report, RoundReport
from tests.integration.worker.making import MODELS, Workbench, checks, end, of_kind, traces

pytestmark = pytest.mark.usefixtures("short_windows")

MODEL = MODELS / "relu_op21_ir10.onnx"


@pytest.fixture
def bench(misbehaving_bench: Workbench) -> Workbench:
    return misbehaving_bench


def misbehaving(bench: Workbench, number: int, how: str) -> ArmOrder:
    return bench.arm(number, MODEL, session={"config": {"test.misbehave": how}})


def run(bench: Workbench, how: str, *, rounds: int = 1, **order: object) -> list[Report]:
    """A block of a good arm, one that misbehaves, and another good one."""
    arms = [bench.arm(0, MODEL), misbehaving(bench, 1, how), bench.arm(2, MODEL)]
    return bench.execute(arms, rounds=rounds, **order)


def assert_others_are_unharmed(reports: list[Report], *, rounds: int = 1) -> None:
    assert [checks(reports)[arm].reason for arm in (0, 2)] == [None, None]
    assert [traces(reports)[arm].reason for arm in (0, 2)] == [None, None]
    measured = of_kind(reports, RoundReport)
    assert len(measured) == rounds
    for one in measured:
        assert {sample.arm for sample in one.samples if sample.sample is not None} >= {0, 2}
    assert end(reports).reason is None


def test_a_runner_that_crashes_in_its_check_ends_its_cell_with_the_signals_name(bench: Workbench) -> None:
    reports = run(bench, "check:crash")
    reason = checks(reports)[1].reason
    assert (reason.code, reason.status) == (ReasonCode.CRASHED, CellStatus.CRASHED)
    assert "SIGSEGV" in reason.text
    assert 1 not in traces(reports)
    assert_others_are_unharmed(reports)


def test_a_runner_that_crashes_in_a_round_loses_its_place_in_the_next_ones(bench: Workbench) -> None:
    reports = run(bench, "sample:abort", rounds=2)
    first, second = of_kind(reports, RoundReport)
    assert "SIGABRT" in next(sample for sample in first.samples if sample.arm == 1).reason.text
    assert {sample.arm for sample in second.samples} == {0, 2}
    assert_others_are_unharmed(reports, rounds=2)


def test_a_runner_that_is_killed_says_by_which_signal(bench: Workbench) -> None:
    assert "SIGKILL" in checks(run(bench, "check:killed"))[1].reason.text


def test_a_runner_that_hangs_is_ended_at_its_limit(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    hurried: list[float] = []

    def monotonic() -> float:
        """An hour is over once the runner hangs: the others have theirs, however slow the machine is."""
        if not hurried and list(bench.environment.work_dir.rglob("hangs")):
            hurried.append(3600.0)
        return time.monotonic() + sum(hurried)

    monkeypatch.setattr("farm.sandbox.watch.time", SimpleNamespace(monotonic=monotonic))
    reports = run(bench, "check:hang", runner_timeout_s=600.0)
    reason = checks(reports)[1].reason
    assert (reason.code, reason.status) == (ReasonCode.TIMEOUT, CellStatus.TIMEOUT)
    assert "its limit is 600 s" in reason.text
    assert_others_are_unharmed(reports)


@pytest.mark.parametrize("how", ["check:flood", "check:chatter"])
def test_a_runner_that_floods_its_pipe_or_its_log_is_ended(bench: Workbench, how: str) -> None:
    reports = run(bench, how)
    assert checks(reports)[1].reason.code == ReasonCode.FLOODED
    assert_others_are_unharmed(reports)


@pytest.mark.parametrize("how", ["always:garbage", "check:silence", "check:lies"])
def test_a_runner_that_answers_garbage_ends_its_cell_as_garbled(bench: Workbench, how: str) -> None:
    reports = run(bench, how)
    assert checks(reports)[1].reason.code == ReasonCode.GARBLED
    assert_others_are_unharmed(reports)


def test_a_sample_of_garbage_is_no_measurement(bench: Workbench) -> None:
    reports = run(bench, "sample:lies")
    sample = next(one for one in of_kind(reports, RoundReport)[0].samples if one.arm == 1)
    assert sample.sample is None
    assert sample.reason.code == ReasonCode.GARBLED
    assert_others_are_unharmed(reports)


def test_a_trace_that_fails_leaves_its_cell_measured_without_placement(bench: Workbench) -> None:
    reports = run(bench, "trace:lies")
    assert traces(reports)[1].reason is not None
    assert {sample.arm for sample in of_kind(reports, RoundReport)[0].samples if sample.sample} == {0, 1, 2}


def test_a_runner_that_takes_too_much_memory_is_ended(bench: Workbench) -> None:
    reports = run(bench, "check:greed", memory_bytes=512 << 20)
    assert checks(reports)[1].reason.code == ReasonCode.OUT_OF_MEMORY
    assert_others_are_unharmed(reports)


def test_a_runner_that_gives_up_keeps_its_last_words(bench: Workbench) -> None:
    reason = checks(run(bench, "check:exit"))[1].reason
    assert reason.code == ReasonCode.CRASHED
    assert "the runner gave up" in reason.text


def test_with_fail_fast_the_first_failure_ends_the_block(bench: Workbench) -> None:
    reports = run(bench, "check:crash", fail_fast=True)
    assert end(reports).reason.code == ReasonCode.FAIL_FAST
    assert of_kind(reports, RoundReport) == []


def test_a_cancelled_block_ends_the_runner_that_hangs(bench: Workbench) -> None:
    seen: list[int] = []

    def is_cancelled() -> bool:
        seen.append(1)
        return len(seen) > 12

    reports = bench.execute([misbehaving(bench, 0, "check:hang")], is_cancelled=is_cancelled)
    assert end(reports).reason.code == ReasonCode.CANCELLED
    assert end(reports).wall_s < 60


def test_a_block_that_takes_too_long_ends_with_its_limit(bench: Workbench) -> None:
    reports = bench.execute([bench.arm(0, MODEL)], rounds=8, block_timeout_s=0.01)
    assert end(reports).reason.code == ReasonCode.TIMEOUT


def test_nothing_of_a_block_is_left_on_disk(bench: Workbench) -> None:
    run(bench, "check:crash")
    assert list(bench.environment.work_dir.iterdir()) == []


def test_a_block_that_takes_too_long_ends_with_the_rounds_that_it_has(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_s: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + sum(late_s), monotonic_ns=time.monotonic_ns)
    monkeypatch.setattr("worker.agent.execution.time", clock)

    def answer(message: Report) -> Reply:
        if isinstance(message, RoundReport):
            late_s.append(10_000.0)
        return Reply()

    reports = bench.execute([bench.arm(0, MODEL, session={"threads": 2})], rounds=8, answer=answer)
    assert end(reports).reason is None
    assert len(of_kind(reports, RoundReport)) == 1
