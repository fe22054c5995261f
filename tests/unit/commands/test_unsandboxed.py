"""A command on a file of one's own, on a machine where no sandbox holds: it warns and goes on."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app
from tests.unwalled import no_walls

__all__ = ["no_walls"]
MODEL = Path(__file__).parents[2] / "models" / "relu_op13_ir7.onnx"


@pytest.mark.usefixtures("no_walls")
def test_inspect_warns_once_that_the_model_runs_with_all_rights_and_goes_on() -> None:
    done = CliRunner().invoke(app, ["inspect", str(MODEL)])
    assert done.exit_code == 0, done.output
    assert done.stderr.count("Warning: models run with all your rights. No sandbox holds on this machine") == 1
    assert "relu_op13_ir7.onnx:" in done.stdout
