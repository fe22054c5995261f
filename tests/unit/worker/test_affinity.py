"""The core that the one-thread processes of a block are bound to."""

import os
from pathlib import Path

import psutil
import pytest

from worker.agent.machine.affinity import choose_core


def test_the_least_busy_of_the_fastest_cores_is_chosen_and_one_without_a_reading_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    speeds = {0: 100, 1: 200, 2: 200, 9: 200}
    for core, speed in speeds.items():
        (tmp_path / f"cpu{core}").mkdir()
        (tmp_path / f"cpu{core}" / "cpu_capacity").write_text(str(speed))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(speeds))
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval, percpu: [0.0, 90.0, 40.0])
    assert choose_core(cpus=tmp_path) == 2
