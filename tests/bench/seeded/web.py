"""The web process of a seeded farm, as the embedded farm starts it, and readers who are signed in."""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.processes import Process

PROJECT = Path(__file__).resolve().parents[3]
READY_S = 60.0


class Web:
    """`url`, and what the process and its children used so far."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def cpu_s(self) -> float:
        """Seconds of processor time of the server, its workers included."""
        parent = psutil.Process(self._process.child.pid)
        return sum(sum(one.cpu_times()[:2]) for one in [parent, *parent.children(recursive=True)])


@contextlib.contextmanager
def web(home: Path, *, database_url: str = "") -> Iterator[Web]:
    """The web process over the farm in this folder; it ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "ONNXFARM_HOME": str(home),
        "ONNXFARM_DATABASE_URL": database_url,
        "ONNXFARM_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ONNXFARM_LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "farm.config.server", "web", "--port", str(port)]
    with Process(command, env=environment, log=home / "web.log", cwd=PROJECT) as process:
        limit = time.monotonic() + READY_S
        while not _answers(port):
            if time.monotonic() > limit or process.child.poll() is not None:
                raise SystemExit(f"the web process did not come up: {process.log()[-1000:]}")
            time.sleep(0.1)
        yield Web(process, port)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def sessions(username: str, count: int) -> list[str]:
    """So many sessions of a user, each as a browser of their own would have."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from farm.accounts.models import User

    user, made = User.objects.get(username=username), []
    for _ in range(count):
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        made.append(session.session_key or "")
    return made
