"""Connections of a process that runs somebody else's HTTP client: names looked up once, judged, and pinned.

`Pins.pin_process` is for a process that does nothing else and cannot be undone. From then on

- each name is looked up once; what it leads to has to be allowed, and the same address is the answer ever after;
- a connection goes to such an address or does not come about, however the client found its address;
- no program is started, and nothing is listened to.
"""

import ipaddress
import socket
import sys
from collections.abc import Sequence

from farm.alerts.channels.addresses import Address, Answers, LookUp, resolve_host
from farm.alerts.channels.channel_kind import DeliveryProblem

# audit events of the interpreter that a sender of a notice has no need of
_NEVER = (
    *("socket.bind", "socket.sendto", "socket.sendmsg", "subprocess.Popen", "ctypes.dlopen"),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
)


class Pins:
    """The addresses that this process may connect to. `problem`: why the last name was refused or led nowhere."""

    def __init__(self, networks: Sequence[str] = (), *, lookup: LookUp | None = None) -> None:
        self._networks = networks
        self._lookup: LookUp = lookup or socket.getaddrinfo
        self._known: dict[str, Address] = {}
        self.problem: DeliveryProblem | None = None

    def pin_process(self) -> None:
        socket.getaddrinfo = self.getaddrinfo  # type: ignore[assignment]  # the answers as wide as they are read here
        sys.addaudithook(self.check_event)

    def getaddrinfo(self, host: bytes | str | None, port: int, *_: object, **__: object) -> Answers:
        """Answer as `socket.getaddrinfo` does, with the one pinned address. Raises socket.gaierror for a name that is
        refused or leads nowhere, and notes it as `problem`."""
        name = host.decode() if isinstance(host, bytes) else str(host or "")
        if name not in self._known:
            try:
                self._known[name] = resolve_host(name, port, networks=self._networks, lookup=self._lookup)
            except DeliveryProblem as problem:
                self.problem = problem
                raise socket.gaierror(socket.EAI_FAIL, str(problem)) from None
        address = self._known[name]
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        where = (str(address), port) if address.version == 4 else (str(address), port, 0, 0)
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where)]

    def check_event(self, event: str, details: tuple[object, ...]) -> None:
        """The audit hook of the process. Raises PermissionError for a program, a socket that listens, or a connection
        to an address that is not pinned."""
        if event in _NEVER:
            raise PermissionError(f"{event} is not for a process that sends one notice.")
        if event == "socket.connect" and not self._is_known(details[1]):
            raise PermissionError(f"{details[1]!r} was not looked up by name and judged.")

    def _is_known(self, where: object) -> bool:
        """`where`: host and port as a socket takes them, or the path of a socket of this machine."""
        if not isinstance(where, tuple) or not where:
            return False
        try:
            return ipaddress.ip_address(where[0]) in self._known.values()
        except ValueError:
            return False
