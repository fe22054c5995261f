"""A new hardware owner's way, from the README alone: another user of this machine joins, measures, is drained, revoked.

    python -m tests.acceptance.new_owner        # as root: it makes a user and removes it again

Starts a farm without a node, makes a user with a home of its own, and types what the README and docs/operations.md say,
as that user for the machine and as the farm's owner for the rest. One JSON line with the seconds of each step; exit 1
when a step did not do what the documents say.
"""

import json
import os
import platform
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import ROOT, LiveFarm, live_farm

USER = "onnxfarm-trial"
# where packages come from, and whose certificates are trusted: of the machine, not of us
OF_THE_MACHINE = ("PIP_", "UV_", "SSL_CERT")
INDEXES = (".config/pip/pip.conf", ".config/uv/uv.toml")
MATRIX = {
    "budget": "quick",
    "matrix": {"runtime": ["1.31.1"], "provider": ["cpu"], "batch": [1], "threads": [1], "hardware": ["garage"]},
}


class Trial:
    """The steps with their seconds, and what was typed."""

    def __init__(self, farm: LiveFarm, home: Path) -> None:
        self.farm = farm
        self.home = home
        self.seconds: dict[str, float] = {}
        self.typed: list[str] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name}: {self.seconds[name]} s", file=sys.stderr)

    def as_owner(self, *words: str) -> str:
        """A command of the farm's owner."""
        self.typed.append("onnxfarm " + " ".join(words))
        return self.farm.command(*words).stdout

    def argv(self, command: str) -> list[str]:
        """A shell line of the new user, with nothing of ours in its environment but where packages come from."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(OF_THE_MACHINE)}
        kept |= {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        kept["ONNXFARM_HOST_LOCK"] = str(self.home / "lock")
        said = [f"{name}={value}" for name, value in kept.items()]
        return ["runuser", "-u", USER, "--", "env", "-i", *said, "bash", "-c", f"cd {self.home} && {command}"]

    def as_user(self, command: str) -> str:
        self.typed.append(command)
        done = subprocess.run(self.argv(command), capture_output=True, text=True, check=False, timeout=900)
        if done.returncode:
            raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout[-800:]} {done.stderr[-1500:]}")
        return done.stdout

    def node(self) -> dict[str, Any]:
        """The one node of the farm."""
        nodes = self.farm.api("GET", "/nodes").json()
        return dict(nodes[0]) if nodes else {}


def run(trial: Trial) -> dict[str, Any]:
    """The whole way; raises SystemExit with a sentence where it does not go on."""
    with trial.step("install"):
        trial.as_user("python3 -m venv venv && venv/bin/pip install -q './checkout[node]'")
    with trial.step("invite"):
        command = trial.as_owner("node", "invite").splitlines()[0]
    with trial.step("enroll, with its self-test"):
        said = trial.as_user(f"venv/bin/{command} --name garage-1")
    fingerprint = next(line.partition(" ")[2] for line in said.splitlines() if line.startswith("Fingerprint:"))
    pending = trial.node()
    _must(pending["health"] == "pending" and pending["self_test"]["passed"], f"it waits with its self-test: {pending}")
    trial.typed.append("venv/bin/onnxfarm node start &")
    log = (trial.home / "start.log").open("wb")
    agent = subprocess.Popen(
        trial.argv("exec venv/bin/onnxfarm node start"), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    log.close()
    try:
        return _work(trial, agent, fingerprint)
    finally:
        if agent.poll() is None:
            os.killpg(agent.pid, signal.SIGTERM)
            agent.wait(30)


def _work(trial: Trial, agent: "subprocess.Popen[bytes]", fingerprint: str) -> dict[str, Any]:
    farm = trial.farm
    with trial.step("approve, until it is ready"):
        trial.as_owner("node", "approve", "garage-1", "--fingerprint", fingerprint)
        _wait(lambda: "cpu" in trial.node()["tags"], "the node has proven its tags", 180)
    answer = farm.api("PATCH", f"/nodes/{trial.node()['id']}", json={"tags": ["garage"]})
    _must(answer.is_success, f"its owner gives it a tag: {answer.text}")
    _wait(lambda: trial.node()["state"] == "online", "the node is online", 30)
    with trial.step("a run by tag, runtime installed on the way"):
        document = farm.submit(ROOT / "tests/models/cnn_dyn.onnx", MATRIX, within_s=400)
    cells = document["cells"]
    _must({cell["status"] for cell in cells} == {"done"}, f"every cell is done: {[c['status'] for c in cells]}")
    _must({cell["node"] for cell in cells} == {"garage-1"}, "the new node measured them")
    with trial.step("drain"):
        trial.as_owner("node", "drain", "garage-1")
        version = farm.api("GET", "/runs").json()[0]["version_id"]
        answer = farm.api("POST", "/runs", json={"version": version, "matrix": MATRIX})
        after_drain = answer.json().get("detail", "")
        if answer.is_success:
            time.sleep(8)
            blocks = farm.api("GET", f"/runs/{answer.json()['id']}").json()["progress"]["blocks"]
            _must(not blocks.get("leased") and not blocks.get("done"), f"a drained node takes no block: {blocks}")
            after_drain = f"a run by its tag waits: {blocks}"
    with trial.step("revoke, until its agent has stopped"):
        trial.as_owner("node", "revoke", "garage-1")
        # a heartbeat while it measures; an idle node's long poll is answered at once
        _wait(lambda: agent.poll() is not None, "the agent stops", 30)
    _must(agent.returncode == 3, f"it stops with exit code 3, not {agent.returncode}")
    said = trial.node()["self_test"]["sentence"]
    return {"cells": len(cells), "self_test": said, "after_drain": after_drain}


def _must(holds: bool, sentence: str) -> None:
    if not holds:
        raise SystemExit(f"It does not hold that {sentence}")


def _wait(holds: Callable[[], bool], what: str, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        _must(time.monotonic() < limit, f"{what} within {seconds:.0f} s")
        time.sleep(0.3)


@contextmanager
def new_user() -> Iterator[Path]:
    """Somebody who has a home folder, a checkout, and the package index of this machine."""
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", USER], check=True)
    home = Path(pwd.getpwnam(USER).pw_dir)
    try:
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        (home / "checkout").mkdir()
        subprocess.run(["tar", "-x", "-C", str(home / "checkout")], input=packed, check=True)
        for name in INDEXES:
            if (Path.home() / name).exists():
                (home / name).parent.mkdir(parents=True)
                shutil.copy(Path.home() / name, home / name)
        subprocess.run(["chown", "-R", USER, str(home)], check=True)
        yield home
    finally:
        subprocess.run(["userdel", "--remove", USER], check=False, capture_output=True)


def main() -> None:
    # the user is removed, whatever ends the trial
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="onnxfarm-trial-") as folder, new_user() as home:
        os.environ["ONNXFARM_HOST_LOCK"] = str(Path(folder) / "lock")
        for farm in live_farm(Path(folder) / "home", with_node=False):
            trial = Trial(farm, home)
            found = run(trial)
            figures = {
                "trial": "a new hardware owner, from the README",
                "minutes": round(sum(trial.seconds.values()) / 60, 1),
                "seconds": trial.seconds,
                **found,
                "typed": trial.typed,
                "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            }
            print(json.dumps(figures, ensure_ascii=False))


if __name__ == "__main__":
    main()
