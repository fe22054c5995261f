"""A mistyped path of a model is found before anything is installed, made or asked for."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app

WORDS = {
    "bench": "--ort 1.31.1",
    "gate": "--baseline 1.29.0 --candidate 1.31.1",
    "sweep": "--ort 1.29.0,1.31.1",
    "bisect": "--good 1.29.0 --bad 1.31.1",
    "evaluate": "--data data.npz",
    "diverge": "--ort 1.29.0,1.31.1",
    "inspect": "",
    "submit": "",
    "plan": "",
}


@pytest.mark.parametrize("command", sorted(WORDS))
def test_a_mistyped_model_is_found_before_anything_is_installed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("ONNXFARM_SERVER", "ONNXFARM_TOKEN", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    result = CliRunner().invoke(app, [command, str(tmp_path / "absnet.onnx"), *WORDS[command].split()])
    assert result.exit_code == 2, result.output
    assert "absnet.onnx is not a file: give an .onnx" in result.stderr
    ours = [path for path in home.rglob("*") if "onnxfarm" in str(path.relative_to(home))]
    assert [path for path in ours if path.is_file()] == []
