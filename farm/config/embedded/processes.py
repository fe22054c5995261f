"""Starts a whole farm on this machine: a broker on a Unix socket, the farm's processes, and a node."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from urllib import error, request

from farm.config import environment
from farm.config.embedded import broker
from farm.config.embedded.plan import Plan, Tls
from farm.config.embedded.supervisor import ProcessEndedError, Started, Supervisor
from farm.config.embedded.tls import ANYWHERE
from farm.config.processes import GATEWAY, PREPARE, TICKS, WEB, Server

# on a busy machine the node alone has needed 98 s
READY_S = 300.0
# shorter than behind a proxy, because somebody waits at a terminal
STOP_REQUESTS_S = 1
POLL_S = 0.05
PRINT_EVERY_S = 4.0
STARTUP_STEPS = {
    "database": "making the database",
    "web": "starting the pages",
    "gateway": "starting the nodes' gateway",
    "node": "starting the node, which tests itself and what this machine can do",
}

# the node's program, by name: the farm never imports a node
AGENT = "worker.node"
CODE_VARIABLE = "ONNXFARM_NODE_TOKEN"


@dataclass(frozen=True)
class Opened:
    """How to reach a farm that is up: its addresses for people and for nodes, a one-time sign-in link, and a token.

    The link and the token are the owner's. `has_runs`: runs were submitted before the farm was started.
    """

    url: str
    gateway_url: str
    link: str
    token: str
    has_runs: bool = False


class EmbeddedFarm:
    """The processes of a plan. All of them end with `stop`, and also if this process ends.

    `ready_s`: how many seconds each process, except the node, may take to start. `seconds`: after how many seconds each
    was up, by name.
    """

    def __init__(self, plan: Plan, *, ready_s: float = READY_S) -> None:
        self.plan = plan
        self._ready_s = ready_s
        self.supervisor = Supervisor(plan.home / "logs", environment=plan.environment)
        self.seconds: dict[str, float] = {}
        self._waiting = name_startup_steps(plan.home)
        self._began = time.monotonic()
        self._report: Callable[[str], None] = lambda text: None

    def __enter__(self) -> EmbeddedFarm:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(
        self,
        *,
        report: Callable[[str], None] = lambda text: None,
        on_pages: Callable[[Opened], None] = lambda opened: None,
    ) -> Opened:
        """Start all processes, wait until they are ready, and return how to reach the farm.

        `on_pages` is called when the pages answer, before the node is ready. `report` is called every PRINT_EVERY_S
        seconds with a text that names the step and its seconds so far. The farm's addresses are stored in its folder.
        Processes that were started stay up if this raises, until `stop`.

        Raises NotPossibleError if there is no broker, and ProcessEndedError if a process ends or takes too long; only
        the node may take any time.
        """
        self._report = report
        self.start_broker()
        open_farm = [sys.executable, "-m", "django", "open_farm", *self._make_code_option()]
        opening = self.supervisor.start("opening", open_farm, ends_by_itself=True)
        # these import their modules while the tables are made
        self.start_web()
        self.start_gateway()
        if self.plan.tls is not None:
            self.start_tls_servers(self.plan.tls)

        # wait for the tables, the owner and the sign-in link
        self._wait_until("database", lambda: not opening.is_running)
        self.supervisor.wait_until_done(opening, timeout_s=self._ready_s)
        answer = json.loads(opening.log.read_text().strip().splitlines()[-1])
        # its output has secrets
        opening.log.unlink()
        opened = Opened(self.plan.pages_url, self.plan.gateway_url, answer["link"], answer["token"], answer["has_runs"])
        environment.save_addresses(self.plan.home, public_url=self.plan.pages_url, gateway_url=self.plan.nodes_url)

        # then start the node and wait for the pages; only then start the processes that only models need
        if self.plan.node_home is not None:
            self.start_node(self.plan.node_home, answer["code"])
        self._wait_until("web", lambda: _answers(f"{self.plan.url}{WEB.ready_path}"))
        on_pages(opened)
        self.start_prepare()
        self.start_ticks()
        self._wait_until("gateway", lambda: _answers(f"{self.plan.gateway_url}{GATEWAY.ready_path}"))
        if self.plan.node_home is not None:
            self.wait_for_node(self.plan.node_home)
        return opened

    def start_broker(self) -> Started:
        return self.supervisor.start("broker", broker.make_command(self.plan.home))

    def start_web(self) -> Started:
        return self._serve(WEB, self.plan.port)

    def start_tls_servers(self, tls: Tls) -> None:
        self._serve(WEB, tls.port, tls=tls)
        self._serve(GATEWAY, tls.gateway_port, tls=tls)

    def start_gateway(self) -> Started:
        return self._serve(GATEWAY, self.plan.gateway_port)

    def start_prepare(self) -> Started:
        return self.supervisor.start(PREPARE.name, PREPARE.make_command())

    def start_ticks(self) -> Started:
        return self.supervisor.start(TICKS.name, TICKS.make_command())

    def start_node(self, home: Path, code: str | None = None) -> Started:
        """Start the agent of the node in the folder `home`. With an enrolment code, it joins the farm first.

        It does not wait until the node is ready; see `wait_for_node`.
        """
        (home / "ready").unlink(missing_ok=True)
        argv = [sys.executable, "-m", AGENT, "--home", str(home), "--url", self.plan.gateway_url]
        return self.supervisor.start("node", argv, environment={CODE_VARIABLE: code} if code else {})

    def wait_for_node(self, home: Path) -> None:
        self._wait_until("node", (home / "ready").exists, limit_s=inf)

    def stop(self) -> None:
        self.supervisor.stop()

    def _make_code_option(self) -> list[str]:
        node = self.plan.node_home
        return ["--code"] if node is not None and not (node / "node.json").exists() else []

    def _serve(self, server: Server, port: int, *, tls: Tls | None = None) -> Started:
        if tls is None:
            return self.supervisor.start(server.name, server.make_command(port=port, stop_within_s=STOP_REQUESTS_S))
        command = server.make_command(host=ANYWHERE, port=port, stop_within_s=STOP_REQUESTS_S)
        files = ["--cert", str(tls.cert), "--key", str(tls.key)]
        return self.supervisor.start(f"{server.name}-tls", [*command, *files])

    def _wait_until(self, name: str, is_ready: Callable[[], bool], *, limit_s: float | None = None) -> None:
        limit_s = self._ready_s if limit_s is None else limit_s
        began = printed = time.monotonic()
        while not is_ready():
            self.supervisor.raise_if_ended()
            if time.monotonic() - printed > PRINT_EVERY_S:
                printed = time.monotonic()
                self._report(f"{self._waiting[name]}, for {printed - began:.0f} s")
            if time.monotonic() - began > limit_s:
                logs = self.plan.home / "logs"
                raise ProcessEndedError(f"The {name} process was not ready after {limit_s:.0f} s; see {logs}.")
            time.sleep(POLL_S)
        self._note_time(name)

    def _note_time(self, name: str) -> None:
        self.seconds[name] = round(time.monotonic() - self._began, 2)


def name_startup_steps(home: Path) -> dict[str, str]:
    """Return what each step of starting a farm does, in words, by the step's name."""
    was_up = (home / environment.ADDRESSES_FILE).exists()
    return STARTUP_STEPS | {"database": "migrating the database"} if was_up else STARTUP_STEPS


class _NoRedirects(request.HTTPRedirectHandler):
    """Follows no redirects: those of a farm behind a proxy go to https://, which may not be reachable from here."""

    def redirect_request(self, *_: object) -> None:
        return None


def _answers(url: str) -> bool:
    """Say whether an HTTP server answers at this address, with any status."""
    try:
        with request.build_opener(_NoRedirects).open(url, timeout=5):
            return True
    except error.HTTPError:
        return True
    except OSError:
        return False
