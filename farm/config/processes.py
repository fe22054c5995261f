"""The table of the farm's processes: command, port, memory, and how long each gets to end.

The embedded farm starts them from here. So does `deploy/process NAME`, which containers and systemd units call.
tests/unit/test_processes.py compares compose, Kubernetes, systemd, the proxy and docs/ with this table.

`prepare` and `ticks` are two processes, because tasks of minutes would block the ticks if both shared threads. Inside
`ticks`, no kind of task can take all threads: each tick runs once at a time (farm.base.ticks), and the numbers of
blocks that are settled (farm.runs.tasks) and messages that are sent (farm.alerts.tasks) at once are limited.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from farm.contract.version import DELIVERY_QUEUE, PREPARE_QUEUE, SETTLE_QUEUE, TICK_QUEUE

HOST = "127.0.0.1"
GIB = 1024**3
# how long a process may run after SIGTERM before it is killed; unfinished tasks are done again
STOP_S = 30
# how much of that time open requests may take
STOP_REQUESTS_S = 2
# how long a proxy may still send requests to a server that will be stopped
LEAVE_S = 5
# the environment of processes that only a proxy with TLS can reach, after `migrate`
BEHIND_PROXY = {"ONNXFARM_BEHIND_PROXY": "1", "ONNXFARM_COLLECTED_STATIC": "1", "FORWARDED_ALLOW_IPS": "*"}
EXIT_USAGE, EXIT_INFRASTRUCTURE = 2, 3


@dataclass(frozen=True)
class Server:
    """An HTTP server of the farm. `is_single`: at most one of it may run."""

    name: str
    port: int
    port_variable: str
    workers_variable: str
    # the process is ready as soon as this path gives any answer
    ready_path: str
    workers: int = 2
    memory_bytes: int = 2 * GIB
    is_single: bool = False

    def make_command(
        self, *, host: str = HOST, port: int = 0, workers: int = 1, stop_within_s: int = STOP_REQUESTS_S
    ) -> list[str]:
        """Make the command line of the server. `port` 0: the server's default.

        `stop_within_s`: how long open requests may take after SIGTERM.
        """
        listen = ["--host", host, "--port", str(port or self.port), "--workers", str(workers)]
        stop = ["--stop-within", str(stop_within_s)]
        return [sys.executable, "-m", "farm.config.server", self.name, *listen, *stop]

    def make_deployed_command(self, environment: Mapping[str, str]) -> list[str]:
        """Make the command line with host, port and workers from environment variables, or else from this table.

        Exits with status 2 for a port or a number of workers that is no number.
        """
        return self.make_command(
            host=environment.get("ONNXFARM_LISTEN") or HOST,
            port=_read_number(environment, self.port_variable) or self.port,
            workers=_read_number(environment, self.workers_variable) or self.workers,
        )


@dataclass(frozen=True)
class Worker:
    """A Celery worker that runs tasks of `queues` in `threads` threads. `is_single`: at most one of it may run."""

    name: str
    queues: tuple[str, ...]
    threads: int
    threads_variable: str = ""
    options: tuple[str, ...] = ()
    memory_bytes: int = 2 * GIB
    is_single: bool = False

    def make_command(self, *, threads: int = 0) -> list[str]:
        """Make the command line of the Celery worker. `threads` 0: those of this table."""
        celery = [sys.executable, "-m", "celery", "-A", "farm.config.celery"]
        name = ["--hostname", f"{self.name}@%h"]
        consume = ["--queues", ",".join(self.queues), "--concurrency", str(threads or self.threads)]
        fixed = ["--pool", "threads", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
        return [*celery, "worker", *name, *consume, *fixed, *self.options]

    def make_deployed_command(self, environment: Mapping[str, str]) -> list[str]:
        return self.make_command(threads=_read_number(environment, self.threads_variable))


@dataclass(frozen=True)
class Image:
    """A third-party server that the farm needs: its container image, port, command and health check."""

    name: str
    image: str
    port: int
    words: tuple[str, ...]
    health: tuple[str, ...]


WEB = Server("web", 8000, "ONNXFARM_WEB_PORT", "ONNXFARM_WEB_WORKERS", ready_path="/api/v1/models")
GATEWAY = Server(
    "gateway", 8001, "ONNXFARM_GATEWAY_PORT", "ONNXFARM_GATEWAY_WORKERS", ready_path="/api/node/v1/messages"
)
# runs the tasks of minutes: inspections, variants, references, outlines; settles blocks while a thread is free. There
# may be several of it
PREPARE = Worker("prepare", (PREPARE_QUEUE, SETTLE_QUEUE), 4, "ONNXFARM_PREPARE_WORKERS", memory_bytes=8 * GIB)
# runs beat and the ticks, settles blocks, and sends messages to channels. It has a thread for each tick of
# CELERY_BEAT_SCHEDULE, AT_ONCE of farm.runs.tasks and of farm.alerts.tasks, and one for a tick that hangs. A second one
# would be useless, but harmless
TICKS = Worker("ticks", (TICK_QUEUE, SETTLE_QUEUE, DELIVERY_QUEUE), 15, options=("--ticking",), is_single=True)
RUNNING = (WEB, GATEWAY, PREPARE, TICKS)

# the broker stores nothing: the database is the outbox
NO_PERSISTENCE = ("--save", "", "--appendonly", "no")
BROKER = Image("broker", "valkey/valkey:8", 6379, ("valkey-server", *NO_PERSISTENCE), ("valkey-cli", "ping"))
DATABASE = Image("database", "postgres:17", 5432, (), ("pg_isready", "-U", "farm"))
# runs before the processes of a new release; its migrations fit the code that still runs
MIGRATE = "migrate"
NAMES = (MIGRATE, BROKER.name, *(process.name for process in RUNNING))


def main() -> None:
    """Replace this process by the one named on the command line, one of NAMES.

    The farm's folder is made first. `migrate` also runs collectstatic; CalledProcessError is raised if it fails. Exits
    with 2 for another name or a wrong number in the environment, and with 3 if the farm's folder cannot be written.
    """
    name = " ".join(sys.argv[1:])
    if name not in NAMES:
        _exit(EXIT_USAGE, f"name one of {', '.join(NAMES)}; not '{name}'.")
    _make_home(Path(os.environ.get("ONNXFARM_HOME") or "var"))
    django = [sys.executable, "-m", "django"]
    if name == MIGRATE:
        subprocess.run([*django, "migrate", "--no-input"], check=True)
        command = [*django, "collectstatic", "--no-input", "--verbosity", "0"]
    elif name == BROKER.name:
        # on a Unix socket in ONNXFARM_HOME, where the settings look for it unless ONNXFARM_BROKER_URL names another
        command = [sys.executable, "-m", "farm.config.embedded.broker"]
    else:
        [process] = [process for process in RUNNING if process.name == name]
        command = process.make_deployed_command(os.environ)
    os.execv(command[0], command)


def _make_home(home: Path) -> None:
    """Make the farm's folder. Exits with status 3 if it cannot be written, such as a volume of another user."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_writable = os.access(home, os.W_OK)
    except OSError:
        is_writable = False
    if not is_writable:
        uid, gid = os.getuid(), os.getgid()
        _exit(
            EXIT_INFRASTRUCTURE,
            f"user {uid} may not write in {home}, where the farm keeps its files: "
            f"chown -R {uid}:{gid} that folder or volume.",
        )


def _read_number(environment: Mapping[str, str], name: str) -> int:
    """Read a number from the environment; 0 if it is not set. Exits with status 2 for other text."""
    text = environment.get(name) or "0"
    if not text.isdecimal():
        _exit(EXIT_USAGE, f"{name} is {text!r}: write a number such as 4, or unset it.")
    return int(text)


def _exit(code: int, text: str) -> NoReturn:
    print(f"onnxfarm: {text}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
