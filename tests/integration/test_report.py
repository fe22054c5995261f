"""A report's own script, run as a stranger would run one of its processes, on the ONNX Runtime that is here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from farm.rules.changes import repeat_script
from tests.conftest import MODELS

ORDER = {
    "model": "relu_op13_ir7.onnx",
    "runtimes": {"old": "onnxruntime==1.31.1", "new": "onnxruntime==1.31.1"},
    "providers": [["CPUExecutionProvider", {}]],
    "threads": 1,
    "inter_op_threads": 1,
    "execution_mode": "ORT_SEQUENTIAL",
    "optimization": "ORT_ENABLE_ALL",
    "arena": True,
    "memory_pattern": True,
    "disabled_optimizers": ["ConstantFolding"],
    "config": {"session.intra_op.allow_spinning": "0"},
    "measured": "x1.000",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked report whose environments are the one that runs the tests."""
    (tmp_path / "model").mkdir()
    shutil.copy(MODELS / "relu_op13_ir7.onnx", tmp_path / "model")
    import onnxruntime as ort

    session = ort.InferenceSession(str(MODELS / "relu_op13_ir7.onnx"), providers=["CPUExecutionProvider"])
    (port,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 2 for size in port.shape]
    np.savez(tmp_path / "inputs.npz", **{port.name: np.ones(shape, np.float32), "unused": np.ones(1)})
    shutil.copy(repeat_script.__file__, tmp_path / "repeat.py")
    (tmp_path / "repeat.json").write_text(json.dumps(ORDER))
    for side in repeat_script.SIDES:
        place = tmp_path / f".venv-{side}"
        (place / "bin").mkdir(parents=True)
        (place / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (place / "bin" / "python").chmod(0o755)
        (place / "complete").touch()
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "repeat.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)


@pytest.mark.slow
def test_it_measures_both_sides_and_prints_the_ratio(folder: Path) -> None:
    done = run(folder, "--rounds", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["round 1", "round 2"]
    assert lines[2].startswith("onnxruntime==1.31.1 / onnxruntime==1.31.1: x")
    assert lines[3] == "measured before: x1.000"
    assert [line.partition(": ")[2] for line in lines[4:]] == ["apart by 0 at most, its largest value is 1"]


def test_outputs_that_are_apart_are_told_by_name_and_size(folder: Path) -> None:
    before, after = np.array([1.0, np.nan, -4.0]), np.array([1.0, np.nan, -3.5])
    names = np.array(["y", "same", "shape", "empty"])
    np.savez(folder / ".outputs-old.npz", before, before, before, np.ones(0), names=names)
    np.savez(folder / ".outputs-new.npz", after, before, np.ones(2), np.ones(0), names=names)
    done = run(folder, "--outputs")
    assert done.stdout.splitlines() == [
        "output y: apart by 0.5 at most, its largest value is 4",
        "output same: apart by 0 at most, its largest value is 4",
        "output shape: the shape is (2,), before (3,)",
        "output empty: apart by 0 at most, its largest value is 0",
    ]


def test_a_model_that_does_not_load_ends_with_the_runtimes_words(folder: Path) -> None:
    (folder / "model" / "relu_op13_ir7.onnx").write_bytes(b"no model")
    done = run(folder, "--rounds", "1")
    assert done.returncode == 1
    assert "onnxruntime==1.31.1 failed:" in done.stderr


def test_no_rounds_are_refused(folder: Path) -> None:
    assert "at least 1" in run(folder, "--rounds", "0").stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--extra-index-url https://evil.example/simple", "is not a package with one exact version"),
        ("numpy @ https://evil.example/numpy.whl", "is not a package with one exact version"),
        ("-r other.txt", "is not a package with one exact version"),
        ("# onnxruntime==1.31.1", "it names no published ONNX Runtime"),
    ],
)
def test_a_lock_with_more_than_pinned_packages_is_not_given_to_pip(folder: Path, line: str, said: str) -> None:
    shutil.rmtree(folder / ".venv-old")
    (folder / "lock-old.txt").write_text(f"numpy==2.4.6\n{line}\n")
    done = run(folder, "--rounds", "1")
    assert done.returncode == 1
    assert said in done.stderr
    # it is refused before anything is made
    assert not (folder / ".venv-old").exists()
