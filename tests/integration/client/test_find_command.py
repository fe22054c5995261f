"""`onnxfarm find` against a farm over real HTTP; a made-up node measures whenever the client sleeps."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from farm.accounts.models import Team, User
from onnxfarm.remote import find, operations
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client
from tests.integration.alerts.driving import Lab, offer
from tests.integration.alerts.test_finds import SPACE, p50_ms
from tests.integration.dashboard.rows import make_node, make_version

Command = Callable[..., Result]


@pytest.fixture
def lab(team: Team, owner: User, farm: Client, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Its model is taken for uploaded and inspected."""
    version = make_version(team, owner)
    offer("1.31.1")
    monkeypatch.setattr(find, "upload_and_inspect", lambda *_, **__: farm.call(operations.VERSION, version=version.pk))
    return Lab(make_node(team, owner), p50_ms=p50_ms)


def test_a_farm_races_on_each_kind_of_hardware(
    onnxfarm: Command, account: Account, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: lab.live())
    out = tmp_path / "found.json"
    words = ("find", tmp_path / "m.onnx", "--over", json.dumps(SPACE), "--json", out)
    result = onnxfarm(*words, "--nodes", "cpu, x86")
    assert result.exit_code == 0, result.output
    assert [each["answer"][0]["label"] for each in json.loads(out.read_text())] == ["1 thread", "1 thread"]
    assert "on all hardware" in result.stderr
    result = onnxfarm(*words, "--server", account.server, "--max-p50", "0.1ms")
    assert result.exit_code == 1, result.output
    assert "Nothing within 0.1 ms: the fastest accurate one" in json.loads(out.read_text())["sentence"]


def test_ctrl_c_cancels_the_search_and_shows_the_best_so_far(
    onnxfarm: Command, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", pressed)
    result = onnxfarm("find", tmp_path / "m.onnx", "--over", json.dumps(SPACE), "--nodes", "cpu")
    assert result.exit_code == 130, result.output
    assert "Not decided: nothing was measured to its end." in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--save", "folder"], "leave them out on a farm"),
        (["--over", '{"threads": 1}'], "nothing to find"),
        (["--min-accuracy", "97%", "--evaluation", "e.npz"], "labelled data"),
    ],
)
def test_what_a_farm_cannot_find_ends_with_2(
    words: list[str], said: str, onnxfarm: Command, lab: Lab, tmp_path: Path
) -> None:
    result = onnxfarm("find", tmp_path / "m.onnx", "--nodes", "cpu", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
