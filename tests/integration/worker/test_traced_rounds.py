"""Rounds whose launches trace a few inferences after their windows, with real runners in the sandbox."""

from typing import Any

import pytest

from farm.contract.reports import ArmSample, Report, RoundReport, Sample, TraceReport
from farm.rules.tracing.round_times import list_own_nodes
from tests.integration.worker.making import MODELS, Workbench, end, of_kind
from worker.agent.measurement import samples as sampling

pytestmark = pytest.mark.usefixtures("short_windows")

MODEL = MODELS / "relu_op21_ir10.onnx"


def taken(reports: list[Report]) -> list[Sample]:
    (measured,) = of_kind(reports, RoundReport)
    places: tuple[ArmSample, ...] = measured.samples
    return [one.sample for one in places if one.sample is not None]


def executed(bench: Workbench, count: int = 2, *, is_tracing_rounds: bool = True, **cell: Any) -> list[Report]:
    arms = [bench.arm(number, MODEL, **cell) for number in range(count)]
    return bench.execute(arms, is_tracing_rounds=is_tracing_rounds)


def test_every_launch_tells_the_times_of_the_nodes_that_the_first_trace_names(bench: Workbench) -> None:
    reports = executed(bench)
    first = of_kind(reports, TraceReport)[0]
    for sample in taken(reports):
        assert len(sample.nodes_us) == len(list_own_nodes(first)) > 0
        assert sum(sample.nodes_us) > 0
        assert sample.turns > 0
        assert sample.phases_ms["trace"] > 0
        # what session creation and first inference are judged by where the machine is busy
        assert min(sample.phases_ms[f"{name}_cpu"] for name in ("session", "first")) > 0
    assert end(reports).reason is None


def test_an_arm_that_measures_alone_is_traced_too(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MEMORY_SHARE", 1e-6)
    for sample in taken(executed(bench)):
        assert (sample.turns, bool(sample.nodes_us)) == (0, True)


def test_a_block_that_is_not_asked_to_traces_no_round(bench: Workbench) -> None:
    reports = executed(bench, is_tracing_rounds=False)
    assert [sample.nodes_us for sample in taken(reports)] == [(), ()]
    assert all("trace" not in sample.phases_ms for sample in taken(reports))
    assert not any(operator.reads for trace in of_kind(reports, TraceReport) for operator in trace.operators)


def test_sessions_side_by_side_are_not_traced(bench: Workbench) -> None:
    samples = taken(executed(bench, workload={"batch": 1, "concurrency": 2}))
    assert [sample.nodes_us for sample in samples] == [(), ()]


def test_a_trace_tells_which_nodes_an_operator_reads_from(bench: Workbench) -> None:
    arms = [bench.arm(0, MODELS / "encoder_dyn.onnx")]
    first = of_kind(bench.execute(arms, is_tracing_rounds=True), TraceReport)[0]
    assert any(operator.reads for operator in first.operators)
