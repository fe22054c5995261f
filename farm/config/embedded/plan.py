"""Plans an embedded farm: its folder, ports and addresses. Checks that it can run on this machine."""

import contextlib
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from farm.config.processes import HOST
from farm.rules.wording.numbers import size
from farm.sandbox.privacy import make_private

ROOT = Path(__file__).resolve().parents[3]
MIN_FREE_BYTES = 1024**3


class NotPossibleError(RuntimeError):
    """The farm cannot start on this machine. The message says why, and what to do."""


@dataclass(frozen=True)
class Tls:
    """A certificate with its key, and the HTTPS ports: `port` for pages, `gateway_port` for nodes."""

    cert: Path
    key: Path
    port: int
    gateway_port: int


@dataclass(frozen=True)
class Plan:
    """Where an embedded farm runs. `port`: of its pages; `gateway_port`: for nodes; both on the loopback address.

    The processes listen at `url` and `gateway_url`. People use `pages_url` and nodes `nodes_url`, which may be the
    addresses of a proxy.
    """

    home: Path
    port: int
    gateway_port: int
    # None: no node is started on this machine
    node_home: Path | None = None
    # the addresses for people and for nodes if a proxy or `tls` is in front; if they are empty, people and nodes use
    # `url` and `gateway_url`, where the processes listen
    public_url: str = ""
    public_gateway_url: str = ""
    tls: Tls | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pages_url(self) -> str:
        return self.public_url or self.url

    @property
    def gateway_url(self) -> str:
        return f"http://{HOST}:{self.gateway_port}"

    @property
    def nodes_url(self) -> str:
        return self.public_gateway_url or self.public_url or self.gateway_url

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of every process of the farm: those of this process, overridden by the plan's.

        Where a proxy serves https://, ONNXFARM_BEHIND_PROXY is 1 unless this process sets it.
        """
        variables = {
            "ONNXFARM_HOME": str(self.home),
            "ONNXFARM_PUBLIC_URL": self.pages_url,
            "ONNXFARM_GATEWAY_URL": self.nodes_url,
            "DJANGO_SETTINGS_MODULE": "farm.config.settings",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONUNBUFFERED": "1",
        }
        # the farm listens on the loopback interface: without its own TLS, a proxy on this machine serves https://
        has_proxy = self.tls is None and self.pages_url.startswith("https://")
        defaults = {"ONNXFARM_BEHIND_PROXY": "1"} if has_proxy else {}
        return defaults | dict(os.environ) | variables


def make_plan(*, home: Path, port: int, with_node: bool = True) -> Plan:
    """Plan a farm in the folder `home`, whose pages are served at `port`. It makes the folder, and starts nothing.

    The folder is closed to other users. The gateway gets the port after `port`, or any free one; the node's folder is
    `home`/node, None without a node. Raises NotPossibleError if the port is taken (also by a farm of this folder), the
    disk has less than MIN_FREE_BYTES, the folder cannot be written, or an address in the environment is invalid.
    """
    home = home.resolve()
    try:
        make_private(home)
        (home / ".writable").touch()
        (home / ".writable").unlink()
    except OSError as problem:
        raise NotPossibleError(
            f"The farm's folder {home} cannot be written ({problem.strerror}); name another in ONNXFARM_HOME."
        ) from problem
    free = shutil.disk_usage(home).free
    if free < MIN_FREE_BYTES:
        raise NotPossibleError(
            f"Only {size(free)} are free where {home} lies; a farm needs {size(MIN_FREE_BYTES)} for "
            f"runtimes and models. Make room, or name a folder on another disk in ONNXFARM_HOME."
        )
    if not is_port_free(port):
        # if the farm of this folder runs already, say that instead
        with lock_home(home):
            pass
        raise NotPossibleError(f"Port {port} is taken by another program; choose another with --port N.")
    return Plan(
        home,
        port,
        find_free_port(near=port),
        home / "node" if with_node else None,
        public_url=_read_address("ONNXFARM_PUBLIC_URL"),
        public_gateway_url=_read_address("ONNXFARM_GATEWAY_URL"),
    )


@contextlib.contextmanager
def lock_home(home: Path) -> Iterator[None]:
    """Hold a lock on the home folder inside the `with`. Raises NotPossibleError if another farm holds it."""
    with (home / "running").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise NotPossibleError(
                f"A farm runs from {home} already (process {file.read().strip() or 'unknown'}); stop it, or name "
                f"another folder in ONNXFARM_HOME."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _read_address(name: str) -> str:
    """Read an address from the environment; empty if it is not set. Raises NotPossibleError for other text."""
    address = os.environ.get(name, "").rstrip("/")
    if address and not _is_address(address):
        raise NotPossibleError(f"{name} is {address!r}: write an address like https://farm.example, or unset it.")
    return address


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        # urlsplit refuses addresses such as http://[::1
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def is_port_free(port: int) -> bool:
    """Say whether a server can listen on this port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def find_free_port(*, near: int | None = None) -> int:
    """Return a free port of the loopback address: the one after `near` if possible, else any. It is not reserved."""
    if near is not None and near < 65_535 and is_port_free(near + 1):
        return near + 1
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
