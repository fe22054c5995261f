"""A farm of real processes that may be killed, stopped and started again: broker, gateway, tick, agents."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from farm.config.embedded import broker
from farm.config.embedded.plan import free_port
from tests.chaos.proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
LEASE_S = 3.0
TICK_S = 0.5


class Part:
    """One process and how to start it again. `is_wanted`: whoever watches starts it when it has ended."""

    def __init__(self, name: str, argv: list[str], *, log: Path, env: dict[str, str]) -> None:
        self.name = name
        self._argv, self._log, self._env = argv, log, env
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.lock = threading.Lock()

    def start(self) -> None:
        with self.lock, self._log.open("ab") as log:
            self.starts += 1
            self._process = subprocess.Popen(
                self._argv, env=self._env, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def signal(self, number: int) -> None:
        """To the whole group of the process, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """kill -9, and waited for."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None


class ChaosFarm:
    """The parts, in a folder of their own. `database_url` empty: SQLite in that folder."""

    def __init__(self, folder: Path, *, agents: int, database_url: str = "") -> None:
        self.folder = folder
        self.gateway_port = free_port()
        self.proxy = Proxy(self.gateway_port)
        self.environment = self._environment(database_url)
        self.parts: dict[str, Part] = {}
        self._agents = agents

    def prepare(self) -> list[str]:
        """Makes tables, an owner and a code for each agent; gives the codes. Configures Django in this process too."""
        os.environ.update(self.environment)
        import django

        django.setup()
        from django.core.management import call_command

        from farm.accounts.models import Team
        from farm.accounts.services import create_owner
        from farm.fleet.services import invite

        call_command("migrate", verbosity=0)
        owner = create_owner()
        return [invite(team=Team.objects.get(), by=owner, auto_approve=True)[1] for _ in range(self._agents)]

    def start(self, codes: list[str]) -> None:
        python, home = sys.executable, self.folder / "home"
        self._add("broker", broker.command(home))
        address = ["--host", "127.0.0.1", "--port", str(self.gateway_port), "--no-access-log"]
        self._add("gateway", [python, "-m", "uvicorn", "farm.config.asgi:application", *address])
        beat = ["--beat", "--schedule", str(home / "beat"), "--pool", "threads", "--concurrency", "2", "-Q", "prepare"]
        quiet = ["--without-gossip", "--without-mingle", "--loglevel", "INFO"]
        self._add("tick", [python, "-m", "celery", "-A", "farm.config.celery", "worker", *beat, *quiet])
        for number, code in enumerate(codes):
            name = f"agent-{number}"
            words = [str(self.folder / name), self.proxy.url, code, name]
            self._add(
                name, [python, "-m", "tests.chaos.agent", *words], ONNXFARM_HOST_LOCK=str(self.folder / f"{name}.lock")
            )

    def stop(self) -> None:
        for part in self.parts.values():
            part.kill()
        self.proxy.close()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart_ended(self) -> int:
        """What systemd would do: starts what has ended; gives how many."""
        ended = [part for part in self.parts.values() if part.has_ended]
        for part in ended:
            part.start()
        return len(ended)

    def _add(self, name: str, argv: list[str], **more: str) -> None:
        part = Part(name, argv, log=self.folder / f"{name}.log", env=self.environment | more)
        self.parts[name] = part
        part.start()

    def _environment(self, database_url: str) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(parents=True)
        return dict(os.environ) | {
            "DJANGO_SETTINGS_MODULE": "farm.config.settings",
            "ONNXFARM_HOME": str(home),
            "ONNXFARM_DATABASE_URL": database_url,
            "ONNXFARM_LEASE_S": str(LEASE_S),
            "ONNXFARM_TICK_S": str(TICK_S),
            "ONNXFARM_GATEWAY_URL": self.proxy.url,
            "PYTHONPATH": str(ROOT),
        }


def last_words(folder: Path, lines: int = 15) -> str:
    """The end of every log, for a run that did not end."""
    return json.dumps(
        {path.name: path.read_text(errors="replace").splitlines()[-lines:] for path in folder.glob("*.log")}
    )
