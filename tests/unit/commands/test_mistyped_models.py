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


@pytest.mark.parametrize("command", ["bench", "plan", "submit"])
@pytest.mark.parametrize("source", ["absent.pt2", "weights.pt"])
def test_a_program_that_is_none_is_refused_in_one_sentence(command: str, source: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not looked at")
    (tmp_path / "weights.pt").write_bytes(b"pickled")
    words = [command, str(tmp_path / "model.onnx"), "--source", str(tmp_path / source), *WORDS[command].split()]
    result = CliRunner().invoke(app, [*words, *(["--home", str(tmp_path / "home")] if command == "bench" else [])])
    assert result.exit_code == 2, result.output
    assert f"{source} is not a file that ends in .pt2: give what torch.export.save wrote." in result.stderr
