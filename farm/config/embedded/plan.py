"""Plans where an embedded farm runs: its folder and ports; checks that this machine has room for it."""

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
    """The farm cannot start here; the message says why and what to do."""


@dataclass(frozen=True)
class Tls:
    """A certificate with its key, and the ports for pages and for nodes that serve it to other machines."""

    cert: Path
    key: Path
    port: int
    gateway_port: int


@dataclass(frozen=True)
class Plan:
    """What to start and where."""

    home: Path
    port: int
    gateway_port: int
    # None: no node is started on this machine
    node_home: Path | None = None
    # addresses for people and for nodes where a proxy or `tls` stands in front; where they are empty, people and nodes
    # use `url` and `gateway_url`, at which the processes listen
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
        """The environment variables of every process of the farm: this process's own, with the plan's over them."""
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
        is_behind_proxy = {"ONNXFARM_BEHIND_PROXY": "1"} if has_proxy else {}
        return is_behind_proxy | dict(os.environ) | variables


def make_plan(*, home: Path, port: int, with_node: bool = True) -> Plan:
    """Check this machine and plan a farm in `home`, whose pages are at `port`. Makes the folder; starts nothing.

    Raises NotPossibleError where the port is taken, the disk is full, the folder cannot be written, or an address in
    the environment is none.
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
        # the farm of this folder, if one runs, says so itself
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
    """Hold a lock on the home folder within this context. Raises NotPossibleError where another farm holds it."""
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
    """Read an address from the environment, empty where it is not set. Raises NotPossibleError for another text."""
    address = os.environ.get(name, "").rstrip("/")
    if address and not _is_address(address):
        raise NotPossibleError(f"{name} is {address!r}: write an address like https://farm.example, or unset it.")
    return address


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        # a bracket that is not closed, as in http://[::1
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def is_port_free(port: int) -> bool:
    """Say whether nobody listens on this port of this machine's loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def find_free_port(*, near: int | None = None) -> int:
    """Return a port of the loopback address that nobody listens on: the one after `near` if that is free, else any.

    It is not reserved.
    """
    if near is not None and near < 65_535 and is_port_free(near + 1):
        return near + 1
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
