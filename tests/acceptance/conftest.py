"""A whole farm as a user starts it: real processes on free ports, with an agent that measures on this machine."""

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from farm.config.embedded.plan import Plan, find_free_port, make_plan
from farm.config.embedded.processes import EmbeddedFarm, Opened
from tests.databases import copy_migrated
from tests.integration.worker.making import share_runtimes

ROOT = Path(__file__).resolve().parents[2]
# a line for each poll would bury what a failed test has to say
logging.getLogger("httpx2").setLevel(logging.WARNING)


@dataclass(frozen=True)
class LiveFarm:
    """A running farm: `url` for browsers and the API, `token` of its owner, `plan.home` with its files and logs."""

    plan: Plan
    opened: Opened
    processes: EmbeddedFarm

    @property
    def url(self) -> str:
        return self.opened.url

    @property
    def token(self) -> str:
        return self.opened.token

    def manage(self, *words: str) -> str:
        """Output of a manage.py command of this farm."""
        argv = [sys.executable, str(ROOT / "manage.py"), *words]
        return subprocess.run(argv, env=self.plan.environment, check=True, capture_output=True, text=True).stdout

    def sign_in_link(self) -> str:
        """A fresh one-time link for the owner."""
        return self.manage("sign_in_link").strip().splitlines()[-1]

    def sign_in(self, browser: httpx2.Client) -> None:
        """Opens a fresh link and presses its button, as a browser without JavaScript does."""
        page = browser.get(self.sign_in_link())
        assert page.is_success
        [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]
        sent = {"csrfmiddlewaretoken": token}
        assert browser.post(page.url, data=sent, headers={"Referer": str(page.url)}).is_success

    def api(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """A request to /api/v1 with the owner's token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.request(method, f"{self.url}/api/v1{path}", headers=headers, timeout=60, **options)

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The `onnxfarm` command, with this farm as its server."""
        environment = self.plan.environment | {"ONNXFARM_SERVER": self.url, "ONNXFARM_TOKEN": self.token}
        argv = [sys.executable, "-m", "onnxfarm.main", *words]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    def submit(self, model: Path, matrix: dict[str, Any], *, within_s: float = 240.0) -> dict[str, Any]:
        """Uploads, starts and waits; the bench document of the finished run."""
        return self.document_of(self.start_run(model, matrix), within_s=within_s)

    def go_on(self, run: str, *, rounds: int, within_s: float = 240.0) -> dict[str, Any]:
        """Measures more rounds of a finished run and waits; its document then."""
        accepted(self.api("POST", f"/runs/{run}/more", json={"rounds": rounds}))
        return self.document_of(run, within_s=within_s)

    def document_of(self, run: str, *, within_s: float) -> dict[str, Any]:
        """Waits until the run is finished; its bench document."""
        deadline = time.monotonic() + within_s
        while (known := self.api("GET", f"/runs/{run}").json())["state"] != "finished":
            assert time.monotonic() < deadline, f"run {run} did not finish: {known}"
            time.sleep(0.5)
        document: dict[str, Any] = self.api("GET", f"/runs/{run}/results").json()
        return document

    def upload(self, model: Path) -> dict[str, Any]:
        """Uploads a model and waits for its inspection; the version."""
        with model.open("rb") as file:
            version = accepted(self.api("POST", "/uploads", files={"files": (model.name, file)}))
        deadline = time.monotonic() + 60
        while version["state"] not in ("ready", "rejected"):
            assert time.monotonic() < deadline, version
            time.sleep(0.2)
            version = self.api("GET", f"/versions/{version['id']}").json()
        assert version["state"] == "ready", version
        return version

    def start_run(self, model: Path, matrix: dict[str, Any]) -> str:
        """Uploads a model, waits for its inspection and starts a run; its id."""
        version = self.upload(model)
        run = accepted(self.api("POST", "/runs", json={"version": version["id"], "matrix": matrix}))
        return str(run["id"])


def accepted(response: httpx2.Response) -> dict[str, Any]:
    assert response.is_success, response.text
    body: dict[str, Any] = json.loads(response.content)
    return body


@pytest.fixture(scope="package")
def farm() -> Iterator[LiveFarm]:
    """One farm for all tests of these folders, who name their own models and runs; its ticks end with them."""
    with tempfile.TemporaryDirectory(prefix="onnxfarm-acceptance-") as folder:
        # other farms and benches of this machine do not hold ours up, nor we theirs
        os.environ.setdefault("ONNXFARM_HOST_LOCK", str(Path(folder) / "lock"))
        home = Path(folder) / "home"
        share_runtimes(home / "node")
        yield from live_farm(home)


def live_farm(home: Path, *, with_node: bool = True) -> Iterator[LiveFarm]:
    """A farm of one's own, for tests that break it. One that migrates is test_quickstart's and test_serve's."""
    if not (database := home / "db.sqlite3").exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy_migrated(database)
    plan = make_plan(home=home, port=find_free_port(), with_node=with_node)
    plan = replace(plan, gateway_port=find_free_port())
    with EmbeddedFarm(plan) as processes:
        yield LiveFarm(plan, processes.start(), processes)
