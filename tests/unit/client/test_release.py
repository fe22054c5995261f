"""The command says which release it is, installed or not."""

import re
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from onnxfarm.main import app

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_a_checkout_says_its_release() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert said.exit_code == 0
    version = tomllib.loads(PROJECT.read_text())["project"]["version"]
    assert re.fullmatch(rf"onnxfarm {re.escape(version)}( \(checkout\))?\n", said.output)
