"""A node's folder that may not be written, as a container's volume of another user's is."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app
from worker.agent.abilities import selftest
from worker.agent.connection import enrolment


@pytest.mark.parametrize("words", [["enroll", "https://farm.example", "--token", "ofe_x"], ["start"]])
@pytest.mark.parametrize("home", ["volume/node", "../here/volume/node", "{folder}/volume/node"])
def test_a_folder_is_taken_as_it_is_from_here_and_told_where_it_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], home: str
) -> None:
    """Relative, its children would look for it where they work."""
    (here := tmp_path.resolve() / "here").mkdir()
    monkeypatch.chdir(here)
    (volume := here / "volume").write_text("a file where a folder should be")
    done = CliRunner().invoke(app, ["node", *words, "--home", home.format(folder=here)])
    assert done.exit_code == 3
    assert done.stderr == (
        f"onnxfarm: this user may not write in {volume}/node, where the node keeps its key and its runtimes: make that "
        "folder or volume its own (the image's user is 10001), or name another with --home.\n"
    )


@pytest.mark.parametrize("health", ["pending", "active"])
def test_a_node_in_a_folder_of_its_own_is_started_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, health: str
) -> None:
    """It said `onnxfarm node start` alone, which looks for a node elsewhere."""
    identity = SimpleNamespace(name="lab", url="https://farm.example", fingerprint="f")
    monkeypatch.setattr(enrolment, "enrol", lambda *_, **__: (identity, SimpleNamespace(health=health)))
    monkeypatch.setattr(selftest, "run_on_agent_runtime", lambda _: None)
    words = ["node", "enroll", "https://farm.example", "--token", "ofe_x", "--name", "lab"]
    folder = tmp_path / "my node"
    told = CliRunner().invoke(app, [*words, "--home", str(folder)]).stdout
    assert told.endswith(f": onnxfarm node start --home '{folder}'\n")
    monkeypatch.setenv("ONNXFARM_NODE_HOME", str(folder))
    assert CliRunner().invoke(app, words).stdout.endswith(": onnxfarm node start\n")
