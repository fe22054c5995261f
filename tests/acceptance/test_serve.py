"""`onnxfarm serve`: a farm that answers, measures nothing, and ends with its command."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib import request

import pytest

from farm.config.embedded.plan import free_port
from tests.conftest import PROJECT
from tests.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_farm_comes_up_for_its_owner_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    home, port, said = tmp_path / "farm", free_port(), tmp_path / "said"
    words = ["serve", "--home", str(home), "--port", str(port), "--no-node"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ONNXFARM_")}
    with said.open("wb") as errors:
        serving = subprocess.Popen(
            [sys.executable, "-m", "onnxfarm.main", *words],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(PROJECT)},
            stderr=errors,
        )
    try:
        wait_for(lambda: "stays up" in said.read_text(), what="the farm", seconds=120)
        link = re.search(r"Sign in, once, with (\S+)", said.read_text())
        assert link is not None
        with request.urlopen(link[1]) as page:
            assert "<button" in page.read().decode()
        token = (home / "token").read_text().strip()
        command = [
            sys.executable,
            "-m",
            "onnxfarm.main",
            "farm",
            "users",
            "list",
            "--server",
            f"http://127.0.0.1:{port}",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(PROJECT), "ONNXFARM_TOKEN": token},
        )
        assert (done.returncode, "owner" in done.stdout) == (0, True), done.stderr
    finally:
        serving.send_signal(signal.SIGINT)
    assert serving.wait(60) == 0
    assert not (home / "node").exists()


def test_a_port_that_is_taken_is_told_in_words(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "onnxfarm.main", "serve", "--home", str(tmp_path), "--port", port]
        done = subprocess.run(words, capture_output=True, text=True, cwd=PROJECT)
    assert (done.returncode, f"Port {port} is taken" in done.stderr) == (3, True)
