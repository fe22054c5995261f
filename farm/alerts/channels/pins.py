"""Limits the connections of a process that runs somebody else's HTTP client.

`Pins.pin_process` cannot be undone, so it is for a process that does nothing else. From then on

- each name is looked up once; its address has to be allowed, and is the answer to every later lookup;
- connections go to such addresses only, however the client came by an address;
- the process starts no program and listens on no socket.
"""

import ipaddress
import socket
import sys
from collections.abc import Sequence

from farm.alerts.channels.addresses import Address, Answers, LookUp, resolve_host
from farm.alerts.channels.channel_kind import DeliveryProblem

# audit events of the interpreter that sending a notice does not need
_NEVER = (
    *("socket.bind", "socket.sendto", "socket.sendmsg", "subprocess.Popen", "ctypes.dlopen"),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
)


class Pins:
    """The addresses that this process may connect to.

    `problem` is the reason why the last refused name was refused or not found; None before any was. `pin_process`
    replaces `socket.getaddrinfo` and adds an audit hook, both for the rest of the process.
    """

    def __init__(self, networks: Sequence[str] = (), *, lookup: LookUp | None = None) -> None:
        self._networks = networks
        self._lookup: LookUp = lookup or socket.getaddrinfo
        self._pinned: dict[str, Address] = {}
        self.problem: DeliveryProblem | None = None

    def pin_process(self) -> None:
        socket.getaddrinfo = self.getaddrinfo  # type: ignore[assignment]  # the answers as wide as they are read here
        sys.addaudithook(self.check_event)

    def getaddrinfo(self, host: bytes | str | None, port: int, *_: object, **__: object) -> Answers:
        """Answer as `socket.getaddrinfo` does, with the one pinned address.

        Raises socket.gaierror for a name that is refused or not found, and stores the reason as `problem`.
        """
        name = host.decode() if isinstance(host, bytes) else str(host or "")
        if name not in self._pinned:
            try:
                self._pinned[name] = resolve_host(name, port, networks=self._networks, lookup=self._lookup)
            except DeliveryProblem as problem:
                self.problem = problem
                raise socket.gaierror(socket.EAI_FAIL, str(problem)) from None
        address = self._pinned[name]
        if address.version == 4:
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port))]
        return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port, 0, 0))]

    def check_event(self, event: str, details: tuple[object, ...]) -> None:
        """Refuse what the process may not do; the interpreter calls it with each audit event.

        Raises PermissionError for a program, a socket that listens, or a connection to an address that is not pinned.
        """
        if event in _NEVER:
            raise PermissionError(f"{event} is not for a process that sends one notice.")
        if event == "socket.connect" and not self._is_pinned(details[1]):
            raise PermissionError(f"{details[1]!r} was not looked up by name and judged.")

    def _is_pinned(self, socket_address: object) -> bool:
        """Say whether the address is pinned; it is a tuple that begins with the host, or the path of a local socket."""
        if not isinstance(socket_address, tuple) or not socket_address:
            return False
        try:
            return ipaddress.ip_address(socket_address[0]) in self._pinned.values()
        except ValueError:
            return False
