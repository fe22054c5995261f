"""A node's folder that may not be written, as a container's volume of another user's is."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from onnxfarm.main import app


@pytest.mark.parametrize("words", [["enroll", "https://farm.example", "--token", "ofe_x"], ["start"]])
def test_a_folder_that_may_not_be_written_is_told_in_one_sentence(tmp_path: Path, words: list[str]) -> None:
    (volume := tmp_path / "volume").write_text("a file where a folder should be")
    done = CliRunner().invoke(app, ["node", *words, "--home", str(volume / "node")])
    assert done.exit_code == 3
    assert done.stderr == (
        f"onnxfarm: this user may not write in {volume}/node, where the node keeps its key and its runtimes: make that "
        "folder or volume its own (the image's user is 10001), or name another with --home.\n"
    )
