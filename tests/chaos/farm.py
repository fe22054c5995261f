"""A farm of real processes that may be killed, stopped and started again.

Database, broker, gateway, prepare, ticks (with the farm's own command lines) and agents.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

from farm.config import processes
from farm.config.embedded import broker
from farm.config.embedded.plan import find_free_port
from tests.chaos import namespace
from tests.chaos.clock import Clock
from tests.chaos.proxy import Proxy
from tests.postgres import Cluster

ROOT = Path(__file__).resolve().parents[2]
LEASE_S = 3.0
TICK_S = 1.0
# file systems that can be filled: an agent's folder, and the one with the farm's database
AGENT_MB = 4
FARM_MB = 384
PATIENCE_S = 60.0

T = TypeVar("T")


class Part:
    """One process and how to start it again.

    `is_away`: a fault keeps it down, nobody else is to start it. `more`: further keywords of Popen.
    """

    def __init__(self, name: str, argv: list[str], *, log: Path, **more: Any) -> None:
        self.name = name
        self._argv, self._log, self._more = argv, log, more
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.is_away = False

    def start(self) -> None:
        """Starts it, unless it runs."""
        with self._lock, self._log.open("ab") as log:
            self.is_away = False
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    self._argv, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, **self._more
                )

    def signal(self, number: int) -> None:
        """To the process and all that come from it, if it still runs. PostgreSQL's are in sessions of their own."""
        if self._process is None or self._process.poll() is not None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._process.pid)
            for process in [*parent.children(recursive=True), parent]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and waited for; it stays away until it is started again."""
        with self._lock:
            self.is_away = True
            self.signal(signal.SIGSTOP)  # or it might start another child meanwhile
            self.signal(signal.SIGKILL)
            if self._process is not None:
                self._process.wait()

    def end(self, seconds: float) -> None:
        """As a service manager ends it: asked first, killed when it has not ended by then. It stays away."""
        with self._lock:
            self.is_away = True
            if self._process is None or self._process.poll() is not None:
                return
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self.kill()

    @property
    def pid(self) -> int | None:
        """Of the process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return not self.is_away and self._process is not None and self._process.poll() is not None


class ChaosFarm:
    """The parts, in a folder of their own. `can_fill`: their disks are small file systems that can be filled."""

    def __init__(
        self,
        folder: Path,
        *,
        agents: int,
        is_postgres: bool,
        can_fill: bool = False,
        can_move_clock: bool = False,
        lease_s: float = LEASE_S,
        tick_s: float = TICK_S,
        gateways: int = 1,
    ) -> None:
        self.folder = folder
        self._gateways = gateways
        folder.chmod(0o711)  # the database's user reads the clock
        self.clock = Clock(folder / "clock") if can_move_clock else None
        self.gateway_port = find_free_port()
        self.proxy = Proxy(self.gateway_port)
        self.parts: dict[str, Part] = {}
        self.home = folder / "home"
        self._names = [f"agent-{number}" for number in range(agents)]
        moved = self.clock.environment if self.clock else {}
        self.cluster = Cluster(durable=True, environment=moved) if is_postgres else None
        self.disk = self.cluster.folder if self.cluster else self.home
        self._mounted: list[Path] = []
        if can_fill:
            self._mount(self.disk, megabytes=FARM_MB)
            for name in self._names:
                self._mount(folder / name, megabytes=AGENT_MB)
        self.home.mkdir(parents=True, exist_ok=True)
        # the home is a small file system that a fault fills: a reserve of half a gigabyte would leave no room at all
        small = {"ONNXFARM_DISK_RESERVE_BYTES": str(1 << 20)}
        timing = {"ONNXFARM_LEASE_S": str(lease_s), "ONNXFARM_TICK_S": str(tick_s)}
        self.environment = self._environment() | timing | small
        self._farm_environment = self.environment | moved

    def prepare(self) -> list[str]:
        """Makes tables, an owner and a code for each agent; gives the codes. Configures Django in this process too."""
        if self.cluster:
            self.cluster.make()
            self.cluster.stop()
            part = Part("database", self.cluster.command, log=self.cluster.log, **self.cluster.process_options)
            self.parts["database"] = part
            part.start()
        os.environ.update(self.environment)
        import django

        django.setup()
        from django.core.management import call_command

        from farm.accounts.models import Team
        from farm.accounts.services import create_owner
        from farm.fleet.services import invite

        patiently(lambda: call_command("migrate", verbosity=0))
        owner = create_owner()
        return [invite(team=Team.objects.get(), by=owner, auto_approve=True)[1] for _ in self._names]

    def start(self, codes: list[str]) -> None:
        python = sys.executable
        self._add("broker", broker.make_command(self.home), env=self._farm_environment)
        gateway = processes.GATEWAY.make_command(port=self.gateway_port, workers=self._gateways)
        self._add("gateway", gateway, env=self._farm_environment)
        self._add("prepare", processes.PREPARE.make_command(), env=self._farm_environment)
        self._add("ticks", processes.TICKS.make_command(), env=self._farm_environment)
        for name, code in zip(self._names, codes, strict=True):
            words = [str(self.folder / name), self.proxy.url, code, name]
            lock = {"ONNXFARM_HOST_LOCK": str(self.folder / f"{name}.lock")}
            self._add(name, [python, "-m", "tests.chaos.agent", *words], env=self.environment | lock)

    def stop(self) -> None:
        for part in reversed(self.parts.values()):
            part.kill()
        self.proxy.close()

    def remove(self) -> None:
        # a folder that something is mounted on cannot be removed: it would stay, empty, after every run
        while self._mounted:
            namespace.unmount(self._mounted.pop())
        for folder in (self.folder, *([self.cluster.folder] if self.cluster else [])):
            shutil.rmtree(folder, ignore_errors=True)

    def restart_ended(self) -> int:
        """What systemd would do: starts what has ended; gives how many."""
        ended = [part for part in list(self.parts.values()) if part.has_ended]
        for part in ended:
            part.start()
        return len(ended)

    def last_words(self, lines: int = 15) -> str:
        """The end of every log, for a run that did not end."""
        logs = [*self.folder.glob("*.log"), *([self.cluster.log] if self.cluster else [])]
        return json.dumps(
            {path.name: path.read_text(errors="replace").splitlines()[-lines:] for path in logs if path.exists()},
            indent=1,
        )

    def _add(self, name: str, argv: list[str], *, env: dict[str, str]) -> None:
        part = Part(name, argv, log=self.folder / f"{name}.log", env=env, cwd=ROOT)
        self.parts[name] = part
        part.start()

    def _mount(self, folder: Path, *, megabytes: int) -> None:
        namespace.mount(folder, megabytes=megabytes)
        self._mounted.append(folder)

    def _environment(self) -> dict[str, str]:
        # compiled modules are kept: what is killed starts again in a fraction of the time
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "farm.config.settings",
            "ONNXFARM_HOME": str(self.home),
            "ONNXFARM_DATABASE_URL": self.cluster.url if self.cluster else "",
            "ONNXFARM_GATEWAY_URL": self.proxy.url,
            "PYTHONPATH": str(ROOT),
        }


def patiently(ask: Callable[[], T]) -> T:
    """Asks the database again while it is away."""
    from django.db import InterfaceError, OperationalError, connection

    limit = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > limit:
                raise
            time.sleep(0.5)
