"""A farm on PostgreSQL with two web, two gateway and two prepare processes behind haproxy, each of any release."""

import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg

from farm.config.embedded import broker
from farm.config.embedded.plan import find_free_port
from tests.chaos.farm import LEASE_S, TICK_S, Part
from tests.chaos.releases import NoReleaseError, Release
from tests.postgres import Cluster
from tests.processes import wait_for

CONFIGURED: Final = Path(__file__).parents[2] / "deploy" / "containers" / "trying" / "haproxy.cfg"
SERVED: Final = ("web", "gateway")
DOUBLED: Final = ("web", "gateway", "prepare")
# what an orchestrator gives a process to end what it has begun
GRACE_S: Final = 30.0
DRAIN_S: Final = 1.5


class RollingFarm:
    """`start` of one release, then `switch` each process to another."""

    def __init__(self, folder: Path, *, agents: int) -> None:
        """Raises NoReleaseError without haproxy, NoPostgresError without PostgreSQL."""
        if shutil.which("haproxy") is None:
            raise NoReleaseError(
                "There is no haproxy here, behind which processes are changed: apt-get install haproxy."
            )
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir(parents=True)
        folder.chmod(0o711)
        self.cluster = Cluster(durable=True)
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ports = {f"{name}_{number}": find_free_port() for name in SERVED for number in (1, 2)}
        self.agents = [f"agent_{number}" for number in range(1, agents + 1)]
        self.parts: dict[str, Part] = {}
        self._codes: list[str] = []
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment = kept | {
            "DJANGO_SETTINGS_MODULE": "farm.config.settings",
            "ONNXFARM_HOME": str(self.home),
            "ONNXFARM_DATABASE_URL": self.cluster.url,
            "ONNXFARM_PUBLIC_URL": self.url,
            "ONNXFARM_LEASE_S": str(LEASE_S),
            "ONNXFARM_TICK_S": str(TICK_S),
            "ONNXFARM_WEB_WORKERS": "1",
            "ONNXFARM_GATEWAY_WORKERS": "1",
            "ONNXFARM_PREPARE_WORKERS": "2",
        }

    def open(self, release: Release) -> tuple[str, str]:
        """Tables and owner by that release; a sign-in link and a token."""
        self.cluster.make()
        self.cluster.stop()
        self._start("database", self.cluster.command, log=self.cluster.log, **self.cluster.process_options)
        self._start("broker", broker.make_command(self.home), env=self.environment)
        wait_for(lambda: any(path.is_socket() for path in self.home.iterdir()), what="the broker", seconds=20)
        wait_for(self._has_database, what="PostgreSQL", seconds=30)
        made = [self._opened(release) for _ in self.agents]
        self._codes = [one["code"] for one in made]
        return made[0]["link"], made[0]["token"]

    def start(self, release: Release) -> None:
        """Every process of that release, behind the proxy."""
        for name in self.processes:
            self._start_process(name, release)
        self._start_proxy()
        for name in self.ports:
            self._wait_until_it_listens(name)
        wait_for(self._socket.exists, what="the proxy", seconds=20)
        for name in self.agents:
            self._start_agent(name, release)

    @property
    def processes(self) -> list[str]:
        """In the order in which they are switched: nothing of the new release is asked for by the old."""
        return [*(f"{name}_{number}" for name in DOUBLED for number in (1, 2)), "ticks"]

    def switch(self, name: str, release: Release) -> float:
        """Takes a process out of the proxy, ends it, starts that release's in its place; the seconds it took."""
        began = time.monotonic()
        if name in self.ports:
            self._tell_proxy(f"set server {name[:-2]}/{name} state drain")
            time.sleep(DRAIN_S)
        self.parts[name].end(GRACE_S)
        if name in self.agents:
            self._start_agent(name, release)
        else:
            self._start_process(name, release)
        if name in self.ports:
            self._wait_until_it_listens(name)
            self._tell_proxy(f"set server {name[:-2]}/{name} state ready")
        return time.monotonic() - began

    def restart_ended(self) -> list[str]:
        """What a service manager does; gives the names of what had ended."""
        ended = [name for name, part in list(self.parts.items()) if part.has_ended]
        for name in ended:
            self.parts[name].start()
        return ended

    def stop(self) -> None:
        for part in reversed(self.parts.values()):
            part.kill()

    def remove(self) -> None:
        for folder in (self.folder, self.cluster.folder):
            shutil.rmtree(folder, ignore_errors=True)

    def last_words(self, lines: int = 12) -> str:
        """The end of every log."""
        logs = sorted(self.folder.glob("*.log"))
        words = {path.name: path.read_text(errors="replace").splitlines()[-lines:] for path in logs}
        return json.dumps(words, indent=1)

    def _has_database(self) -> bool:
        try:
            psycopg.connect(self.cluster.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def _opened(self, release: Release) -> dict[str, str]:
        said = release.run("manage.py", "open_farm", "--code", environment=self.environment)
        opened: dict[str, str] = json.loads(said.strip().splitlines()[-1])
        return opened

    def _start(self, name: str, argv: list[str], *, log: Path | None = None, **more: object) -> None:
        self.parts[name] = Part(name, argv, log=log or self.folder / f"{name}.log", **more)
        self.parts[name].start()

    def _start_process(self, name: str, release: Release) -> None:
        kind = name.partition("_")[0]
        own = {f"ONNXFARM_{kind.upper()}_PORT": str(self.ports[name])} if name in self.ports else {}
        self._start(name, release.process(kind), **release.options(self.environment | own))

    def _start_agent(self, name: str, release: Release) -> None:
        code = self._codes[self.agents.index(name)]
        words = ["-m", "tests.chaos.agent", str(self.folder / name), self.url, code, name]
        lock = {"ONNXFARM_HOST_LOCK": str(self.folder / f"{name}.lock")}
        self._start(name, [sys.executable, *words], **release.options(self.environment | lock))

    def _start_proxy(self) -> None:
        """With the rules that containers are tried with, at a port of this machine and to processes by their ports."""
        text = CONFIGURED.read_text()
        changes: dict[str, str | Callable[[re.Match[str]], str]] = {
            r"bind :443 ssl crt \S+": f"bind 127.0.0.1:{self.port}",
            r".*X-Forwarded-Proto.*\n": "",
            r" init-addr none resolvers names": "",
            r"resolvers names\n(  .*\n)+": "",
            r"(?m)^global\n": f"global\n  stats socket {self._socket} level admin\n",
            r".*server-template (\w+) .*\n": lambda found: self._servers(found[1]),
        }
        for pattern, change in changes.items():
            text, count = re.subn(pattern, change, text)
            assert count, f"{CONFIGURED.name} has nothing like {pattern} any more"
        path = self.folder / "haproxy.cfg"
        path.write_text(text)
        self._start("proxy", ["haproxy", "-f", str(path)])

    def _servers(self, kind: str) -> str:
        ours = [(name, port) for name, port in self.ports.items() if name.startswith(kind)]
        return "".join(f"  server {name} 127.0.0.1:{port} check\n" for name, port in ours)

    @property
    def _socket(self) -> Path:
        return self.folder / "haproxy.sock"

    def _tell_proxy(self, order: str) -> None:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._socket))
            line.sendall(f"{order}\n".encode())
            said = line.recv(1000).decode().strip()
        assert not said, f"haproxy: {order}: {said}"

    def _wait_until_it_listens(self, name: str) -> None:
        def listens() -> bool:
            with socket.socket() as line:
                return line.connect_ex(("127.0.0.1", self.ports[name])) == 0

        wait_for(listens, what=name, seconds=30)
