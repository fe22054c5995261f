"""A farm that watches an index of its own: with a webhook's receiver and a mail server, all on this machine.

Everything lies in one folder, which outlives the processes: a script that ran out of time goes on where it was.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from farm.config.embedded.plan import find_free_port, make_plan
from farm.config.embedded.processes import EmbeddedFarm
from tests.acceptance.conftest import LiveFarm, accepted
from tests.acceptance.release_index import ReleaseIndex
from tests.acceptance.smtp_sink import SmtpSink
from tests.integration.alerts.receiver import Receiver, receiving

DISTRIBUTION = "onnxruntime"
POLL_S = 5.0
TURN_S = 2.0
ADDRESS = "team@example.org"
# pip and uv see nothing but our own index
OTHER_SOURCES = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "UV_FIND_LINKS", "UV_INDEX", "UV_INDEX_URL")

T = TypeVar("T")


class NotYetError(Exception):
    """The time of this call is over; the next one goes on."""


@dataclass
class Scene:
    """A running farm with what it is watched by. `kept`: what outlives this process."""

    folder: Path
    farm: LiveFarm
    index: ReleaseIndex
    receiver: Receiver
    sink: SmtpSink
    kept: dict[str, Any]
    deadline: float
    # whether a process that ends ends the story
    must_stay_up: bool = True
    began: float = field(default_factory=time.monotonic)

    def save(self) -> None:
        """Writes what is kept."""
        self.kept["offered"] = self.index.offered
        draft = self.folder / "kept.json.part"
        draft.write_text(json.dumps(self.kept, indent=1))
        draft.rename(self.folder / "kept.json")

    def say(self, text: str) -> None:
        """A line with the time of this call, in seconds."""
        print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def until(self, ask: Callable[[], T | None]) -> T:
        """Asks again until there is an answer. Raises NotYetError when the time is over."""
        while (answer := ask()) is None:
            if time.monotonic() > self.deadline:
                raise NotYetError
            if self.must_stay_up:
                self.farm.processes.supervisor.raise_if_ended()
            self.collect()
            time.sleep(TURN_S)
        self.collect()
        return answer

    def collect(self) -> None:
        """Keeps what was received: each webhook with whether its signature was right when it came, each mail."""
        hooks, mails = self.kept["hooks"], self.kept["mails"]
        with self.receiver.lock:
            seen, self.receiver.seen = self.receiver.seen, []
        for headers, body in seen:
            hooks.append({"id": headers["webhook-id"], "at": now(), **self.receiver.payload_of(headers, body)})
        with self.sink.lock:
            mails += [{"id": one["Message-ID"], "to": one["To"], "subject": one["Subject"]} for one in self.sink.seen]
            self.sink.seen.clear()
        if seen:
            self.save()

    def get(self, path: str) -> Any:
        """What the farm answers under /api/v1."""
        return accepted_json(self.farm, "GET", path)

    def post(self, path: str, **body: Any) -> Any:
        """Orders something from the farm."""
        return accepted(self.farm.api("POST", path, json=body))

    def channels(self) -> list[int]:
        """A webhook and a mail address; made at the first call."""
        if "channels" not in self.kept:
            hook = self.post("/channels", name="hook", kind="webhook", target=self.receiver.url)
            mail = self.post("/channels", name="mail", kind="mail", target=ADDRESS)
            self.kept["channels"] = [hook["id"], mail["id"]]
            self.save()
        found: list[int] = self.kept["channels"]
        self.receiver.secret = self.get(f"/channels/{found[0]}/secret")["secret"]
        return found

    def model(self, path: Path) -> str:
        """Uploads a model under its file's name, once; the name."""
        if path.stem not in self.kept["models"]:
            with path.open("rb") as file:
                version = accepted(self.farm.api("POST", "/uploads", files={"files": (path.name, file)}))
            number = version["id"]
            while version["state"] not in ("ready", "rejected"):
                time.sleep(TURN_S)
                version = self.get(f"/versions/{number}")
            assert version["state"] == "ready", version
            self.kept["models"][path.stem] = number
            self.save()
        return path.stem

    def watch(self, name: str, **order: Any) -> int:
        """A watch of this name, made at the first call."""
        if name not in self.kept["watches"]:
            made = self.post("/watches", name=name, channels=self.channels(), **order)
            self.kept["watches"][name] = made["id"]
            self.save()
        number: int = self.kept["watches"][name]
        return number

    def offer(self, *versions: str) -> None:
        """These releases appear on the index."""
        self.index.offer(DISTRIBUTION, versions)
        self.save()
        self.say(f"{', '.join(versions)} on the index")


def accepted_json(farm: LiveFarm, method: str, path: str) -> Any:
    answer = farm.api(method, path)
    assert answer.is_success, answer.text
    return answer.json()


def now() -> str:
    """This moment as the farm writes them."""
    return datetime.now(UTC).isoformat()


def seconds_between(start: str, end: str) -> float:
    """From one moment to another, both as the farm writes them."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


@contextlib.contextmanager
def opened(folder: Path, *, wheels: Path, first: list[str], minutes: float) -> Iterator[Scene]:
    """The farm of a folder, started; ended with the block. `first`: releases on the index from the beginning."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = _kept(folder, first)
    kept["calls"] = kept.get("calls", 0) + 1
    deadline = time.monotonic() + 60.0 * minutes
    with (
        ReleaseIndex(wheels, port=kept["ports"][0], offered=kept["offered"]) as index,
        receiving(port=kept["ports"][1]) as receiver,
        SmtpSink(port=kept["ports"][2]) as sink,
    ):
        _set_environment(folder, index=index, sink=sink)
        plan = replace(make_plan(home=folder / "farm", port=find_free_port()), gateway_port=find_free_port())
        processes = EmbeddedFarm(plan)
        scene = None
        try:
            with processes:
                farm = LiveFarm(plan, processes.start(), processes)
                scene = Scene(folder, farm, index, receiver, sink, kept, deadline)
                yield scene
        finally:
            # also what came while the farm ended: it is sent, and no later call receives it again
            if scene is not None:
                scene.collect()
                scene.save()


def _kept(folder: Path, first: list[str]) -> dict[str, Any]:
    path = folder / "kept.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    ports = [find_free_port() for _ in range(3)]
    known: dict[str, Any] = {"models": {}, "watches": {}, "hooks": [], "mails": [], "times": {}}
    return {"ports": ports, "offered": {DISTRIBUTION: list(first)}, **known}


def _set_environment(folder: Path, *, index: ReleaseIndex, sink: SmtpSink) -> None:
    for name in OTHER_SOURCES:
        os.environ.pop(name, None)
    # other farms and benches of this machine do not hold ours up, nor we theirs
    os.environ.setdefault("ONNXFARM_HOST_LOCK", str(folder / "lock"))
    os.environ |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.url,
        "UV_NO_CONFIG": "1",
        "UV_DEFAULT_INDEX": index.url,
        "UV_CACHE_DIR": str(folder / "uv"),
        "ONNXFARM_INDEX_POLL_S": str(POLL_S),
        "ONNXFARM_WEBHOOK_NETWORKS": "127.0.0.1/32",
        "ONNXFARM_MAIL_URL": sink.url,
    }
