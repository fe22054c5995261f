"""Who uses a farm from outside while it is changed: a person who reads its pages, and a program that starts runs."""

import contextlib
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.processes import wait_for

API: Final = "/api/v1"
# pages that the release before has too: both serve while the processes are switched
PAGES: Final = (
    *("/", "/runs/", "/runs/1/", "/models/", "/models/1/", "/fleet/", "/fleet/1/", "/alerts/", "/watches/"),
    *("/settings/", "/docs/", f"{API}/runs", f"{API}/runs/1", f"{API}/models", f"{API}/nodes"),
)
TURN_S: Final = 0.05
# two cells and their comparison
MATRIX: Final = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}}


class Reader(threading.Thread):
    """Signed in by a link, reads one page after another until `stop`."""

    def __init__(self, url: str, link: str) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self._person = httpx2.Client(base_url=url, follow_redirects=True, timeout=60)
        self.statuses: Counter[int] = Counter()
        self.problems: list[str] = []
        self.slowest_s = 0.0
        page = self._person.get(link)
        [word] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[:1]
        self._person.post(link, data={"csrfmiddlewaretoken": word}, headers={"Referer": link}).raise_for_status()

    def run(self) -> None:
        while not self._over.is_set():
            self.read_all()

    def read_all(self) -> None:
        """Each page once."""
        for path in PAGES:
            began = time.monotonic()
            try:
                status = self._person.get(path).status_code
            except httpx2.HTTPError as problem:
                self.problems.append(f"{path}: {problem!r}")
                continue
            finally:
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            self.statuses[status] += 1
            if status != 200:
                self.problems.append(f"{path}: {status}")
            if self._over.wait(TURN_S):
                return

    def stop(self) -> None:
        self._over.set()
        self.join(90)


class Program:
    """Uploads, starts runs and asks how they are, by a token. What it may not repeat, it asks once."""

    def __init__(self, url: str, token: str) -> None:
        self._farm = httpx2.Client(base_url=url + API, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.started = 0
        self._ended: set[int] = set()

    def upload(self, path: Path) -> int:
        """The number of the version, once the farm's prepare worker has inspected it."""
        sent = self._json("POST", "/uploads", files={"files": (path.name, path.read_bytes())})

        def state() -> str:
            return str(self._json("GET", f"/versions/{sent['id']}")["state"])

        wait_for(lambda: state() not in ("pending", "inspecting"), what="the inspection", seconds=60)
        assert state() == "ready", state()
        return int(sent["id"])

    def start(self, version: int) -> int:
        """The number of a new run."""
        run = int(self._json("POST", "/runs", json={"version": version, "matrix": MATRIX})["id"])
        self.started += 1
        return run

    def has_ended(self, run: int) -> bool:
        if run not in self._ended and self._json("GET", f"/runs/{run}")["state"] == "finished":
            self._ended.add(run)
        return run in self._ended

    def is_answered(self) -> bool:
        """Whether the farm is there at all."""
        with contextlib.suppress(httpx2.HTTPError):
            return self._farm.get("/me").status_code == 200
        return False

    def nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._json("GET", "/nodes")
        return found

    def _json(self, method: str, path: str, **more: Any) -> Any:
        answer = self._farm.request(method, path, **more)
        assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()
