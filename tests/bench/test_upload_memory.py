"""The published figure of docs/uploads.md, at a size that a test can take."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("upload_memory.py")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one farm, whose tables are made once; each upload has a web server of its own."""
    return tmp_path_factory.mktemp("farm")


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--raw"], ["--cuts", "5"]])
def test_a_large_upload_costs_the_server_no_memory_of_its_size(home: Path, options: list[str]) -> None:
    argv = [sys.executable, str(SCRIPT), "--gib", "0.1", "--home", str(home), *options]
    figures = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
    assert figures["answer"]["status"] == 202
    assert figures["peak_mb"] < 170
    assert figures["peak_mb"] - figures["peak_mb_before"] < 20
