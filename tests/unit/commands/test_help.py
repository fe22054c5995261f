"""What `--help` says: the default of every option that has one."""

import re

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app

DEFAULTS = {
    "--provider": "cpu",
    "--threads": "1",
    "--precision": "fp32",
    "--budget": "quick",
    "--seed": "0",
}


@pytest.mark.parametrize("command", ["bench", "gate", "bisect", "sweep"])
def test_help_shows_the_defaults(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    said = CliRunner().invoke(app, [command, "--help"]).output
    for option, default in DEFAULTS.items():
        line = next(line for line in said.splitlines() if re.search(rf"{option} ", line))
        assert re.search(rf"\[default: \(?{re.escape(default)}", line), line
