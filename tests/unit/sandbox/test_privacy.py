"""Homes of farms and nodes: other users of the machine read nothing in them."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from farm.sandbox.privacy import make_private
from onnxfarm.here.workbench import make_scratch_folder
from tests.conftest import PROJECT
from tests.processes import Process, wait_for

# in a process of its own: what it writes from then on is private too
WRITING = """
import json, sys
from pathlib import Path
from {module} import {function}
home = Path(sys.argv[1])
{call}
(home / "db.sqlite3").write_text("rows")
(home / "store").mkdir()
print(json.dumps({{path.name: path.stat().st_mode & 0o777 for path in (home, *home.iterdir())}}))
"""
STARTS = {
    "farm": {
        "module": "farm.config.embedded.plan",
        "function": "find_free_port, make_plan",
        "call": "make_plan(home=home, port=find_free_port())",
    },
    "node": {"module": "farm.sandbox.privacy", "function": "make_private", "call": "make_private(home)"},
}


@pytest.mark.parametrize("start", STARTS)
def test_another_user_of_the_machine_reads_nothing_of_a_home_that_was_open(start: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    script = WRITING.format(**STARTS[start])
    done = subprocess.run(
        [sys.executable, "-c", script, str(home)], capture_output=True, text=True, check=True, cwd=PROJECT, umask=0o022
    )
    modes = json.loads(done.stdout)
    assert (modes["home"], modes["db.sqlite3"], modes["store"]) == (0o700, 0o600, 0o700)
    assert f"Other users of this machine could read {home}" in done.stderr


def test_a_process_of_a_large_farm_makes_its_home_private_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    command = ["bash", "deploy/process", "broker"]
    environment = os.environ | {
        "ONNXFARM_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    with Process(command, env=environment, log=tmp_path / "broker.log", cwd=PROJECT) as process:
        wait_for(lambda: any(path.is_socket() for path in home.rglob("*")), what="the broker's socket", seconds=60)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert f"Other users of this machine could read {home}" in process.log()


def test_a_command_of_django_typed_by_hand_leaves_nothing_open(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    for folder in (home, store):
        folder.mkdir()
        folder.chmod(0o755)
    told = os.environ | {"ONNXFARM_HOME": str(home), "ONNXFARM_STORE_DIR": str(store), "ONNXFARM_DATABASE_URL": ""}
    words = [sys.executable, "manage.py", "migrate", "contenttypes"]
    told.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(words, env=told, capture_output=True, text=True, check=True, cwd=PROJECT, umask=0o022)
    open_to_others = [path.name for path in (store, home, *home.rglob("*")) if path.stat().st_mode & 0o077]
    assert (home / "db.sqlite3").exists()
    assert not open_to_others
    assert done.stderr.count("could read") == 2


def test_a_home_that_cannot_be_closed_is_told(caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0o022)
    try:
        make_private(Path("/proc/self/task"))  # which nobody may close, root included
    finally:
        os.umask(before)
    assert "Other users of this machine can read /proc/self/task, which stays open" in caplog.text


def test_what_measures_here_makes_a_home_of_its_own_and_leaves_a_shared_one(tmp_path: Path) -> None:
    new, shared = tmp_path / "new", tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    for home, mode in ((new, 0o700), (shared, 0o755)):
        with make_scratch_folder(home) as folder:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(home.stat().st_mode) == mode
