"""What children of the fork server are asked to do."""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

_seen: list[int] = []


def echo(payload: Any) -> Any:
    return payload


def slow_echo(payload: Any) -> Any:
    time.sleep(1.5)
    return payload


def remember(payload: Any) -> int:
    """How often it was called in this process."""
    _seen.append(1)
    return len(_seen)


def facts(payload: Any) -> dict[str, Any]:
    with open("/proc/self/status", encoding="ascii") as status:
        capabilities = next(line.split()[1] for line in status if line.startswith("CapEff"))
    return {
        "parent": os.getppid(),
        "is_leader": os.getsid(0) == os.getpid(),
        "environment": dict(os.environ),
        "capabilities": capabilities,
        # one more than there are, which is the listing's own
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
    }


def escape(payload: list[Any]) -> dict[str, str]:
    """What each attempt came to."""
    secret, new, server = payload

    def tried(attempt: Callable[[], object]) -> str:
        try:
            attempt()
        except OSError:
            return "refused"
        return "done"

    return {
        "read": tried(lambda: open(secret).close()),
        "write": tried(lambda: open(new, "w").close()),
        "socket": tried(socket.socket),
        "fork": tried(os.fork),
        "signal": tried(lambda: os.kill(server, 0)),
        "memory of its parent": tried(lambda: open(f"/proc/{server}/mem", "rb").close()),
        "environment of its parent": tried(lambda: open(f"/proc/{server}/environ", "rb").close()),
    }


def sleep(payload: Any) -> None:
    time.sleep(60)


def late_parent(payload: Any) -> int:
    time.sleep(payload)
    return os.getppid()


def spin(payload: Any) -> None:
    while True:
        pass


def swell(payload: Any) -> int:
    kept = [bytearray(64 << 20) for _ in range(20)]
    time.sleep(5)
    return len(kept)


def crash(payload: Any) -> None:
    ctypes.string_at(1)


def leave(payload: Any) -> None:
    print("last words", file=sys.stderr)
    sys.exit(3)


def complain(payload: Any) -> None:
    raise ValueError("last words")
