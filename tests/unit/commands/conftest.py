"""A command as users call it: arguments in, exit code, stdout and stderr out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from farm.rules.runtimes.listings import Listing
from onnxfarm.here import release_index
from onnxfarm.main import app

Call = Callable[..., Result]
Write = Callable[[str, object], str]


@pytest.fixture
def call() -> Call:
    """Runs `onnxfarm` with these arguments."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file, as it is given or as JSON, and returns its path."""

    def written(name: str, content: object) -> str:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return written


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the package index offers of every distribution, nothing at first; pip asks a real one in integration."""
    monkeypatch.setenv("ONNXFARM_HOME", str(tmp_path / "home"))
    offered: list[str] = []
    monkeypatch.setattr(release_index, "fetch_listing", lambda distribution: Listing(tuple(offered)))
    return offered


def refused(result: Result) -> str:
    """The one sentence of a usage error: exit code 2, nothing on stdout, no traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("onnxfarm: ")
    return lines[0]
