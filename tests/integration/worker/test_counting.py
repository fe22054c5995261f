"""Instructions of an inference, from the launcher that opens the counter to the sample, with real runners."""

from pathlib import Path

import pytest

from farm.contract.reports import RoundReport, Sample
from tests.bench.blocks import shortened_windows
from tests.integration.worker.making import MODELS, Workbench, of_kind
from worker.agent.measurement import runner_process

MODEL = MODELS / "relu_op21_ir10.onnx"


def sample_of(folder: Path, *, threads: int) -> Sample:
    bench = Workbench(folder)
    with shortened_windows():
        reports = bench.execute([bench.arm(0, MODEL, session={"threads": threads})])
    (measured,) = of_kind(reports, RoundReport)
    sample = measured.samples[0].sample
    assert sample is not None
    return sample


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the thread in place of its instructions: software counts it, so that every machine does."""
    monkeypatch.setattr(runner_process, "COUNTS", "task-clock")


@pytest.mark.usefixtures("counted")
def test_what_is_counted_of_an_inference_stands_in_its_sample(tmp_path: Path) -> None:
    sample = sample_of(tmp_path, threads=1)
    assert sample.cpu_p50_ms is not None
    # both are of the same loop; this clock leaves the kernel's part in
    assert 0.5 <= sample.metrics["instructions"] / (1e6 * sample.cpu_p50_ms) <= 2.0


@pytest.mark.usefixtures("counted")
def test_several_threads_are_not_counted(tmp_path: Path) -> None:
    """Those that wait for work spin, as long as the others take: their instructions say nothing of the work."""
    assert "instructions" not in sample_of(tmp_path, threads=2).metrics


def test_where_no_counter_can_be_opened_a_sample_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_COUNTER_FD", "0")
    assert sample_of(tmp_path, threads=1).metrics.get("instructions", 101.0) > 100
