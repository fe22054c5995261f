"""The golden self-test on the ONNX Runtime beside this agent, and on one that is broken."""

from dataclasses import replace
from pathlib import Path

import pytest

from worker.agent.abilities import probes, selftest
from worker.agent.installation import stages


@pytest.mark.slow
def test_this_machine_passes_and_is_timed(tmp_path: Path) -> None:
    tested = selftest.run_on_agent_runtime(tmp_path)
    assert tested.passed, tested.sentence
    assert tested.p50_ms is not None
    assert tested.p50_ms > 0
    assert tested.max_abs is not None
    assert tested.max_abs < 1e-4
    assert tested.launches >= 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_wrong_answer_fails_with_how_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = selftest._compute_right_answer
    monkeypatch.setattr(selftest, "_compute_right_answer", lambda inputs, weights: right(inputs, weights) + 1)
    tested = selftest.run_on_agent_runtime(tmp_path)
    assert not tested.passed
    assert "The golden model is wrong in 8192 of 8192 values." in tested.sentence


def test_a_runtime_that_does_not_start_fails_in_words(tmp_path: Path) -> None:
    installed = probes.find_agent_runtime()
    assert installed is not None
    empty = tmp_path / "empty"
    (empty / "bin").mkdir(parents=True)
    (empty / "bin" / "python").write_text("#!/bin/sh\nexit 7\n")
    (empty / "bin" / "python").chmod(0o755)
    stage = stages.stage_runner(tmp_path / "stage")
    broken = replace(installed, folder=empty)
    tested = selftest.run(broken, stage=stage, folder=tmp_path / "golden", timeout_s=100, is_cancelled=lambda: False)
    assert not tested.passed
    assert tested.sentence.startswith("The golden model does not run: ")
