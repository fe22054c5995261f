"""`--allow-package` of bench: without it, another package is refused before anything is installed, by exit code 2."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onnxfarm.commands.bench_options import apply_settings, read_matrix
from onnxfarm.main import app
from onnxfarm.problems import Usage

MODEL = Path(__file__).resolve().parents[2] / "models" / "relu_op13_ir7.onnx"


@pytest.mark.parametrize(
    "ort", ["evil-package==1.31.1", "evil-package == 1.31.1", "onnxruntime@https://evil.example/a.whl"]
)
def test_bench_installs_no_other_package_and_says_what_to_do(ort: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", str(MODEL), "--ort", ort, "--home", str(tmp_path / "home")])
    assert done.exit_code == 2
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", ["conformance", "gate", "bisect", "sweep"])
def test_no_other_command_takes_another_package_either(command: str, tmp_path: Path) -> None:
    words = {
        "conformance": ["--ort", "evil-package==1.31.1"],
        "gate": [str(MODEL), "--baseline", "1.29.0", "--candidate", "evil-package==1.31.1"],
        "bisect": [str(MODEL), "--good", "evil-package==1.29.0", "--bad", "evil-package==1.31.1"],
        "sweep": [str(MODEL), "--distribution", "evil-package"],
    }[command]
    done = CliRunner().invoke(app, [command, *words, "--home", str(tmp_path / "home")])
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "home" / "runtimes").exists()


def test_an_allowed_package_stays_allowed_through_the_settings_of_the_command_line() -> None:
    declared = read_matrix(None, {"runtime": "my-ort==0.3"}, packages=["My_Ort"])
    assert apply_settings(declared, sustained=2.0).allowed == {"my-ort"}
    with pytest.raises(Usage, match="--allow-package"):
        read_matrix(None, {"runtime": "my-ort==0.3"})
    with pytest.raises(Usage, match="not the name"):
        read_matrix(None, {"runtime": "1.31.1"}, packages=["https://evil.example/a.whl"])


def test_a_service_that_starts_a_node_keeps_what_its_owner_allows(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["node", "install-service", "--print", "--home", str(tmp_path), "--allow-package", "my-ort"]
    )
    assert '"--allow-package=my-ort"' in done.output or "--allow-package=my-ort" in done.output
