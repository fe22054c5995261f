"""Ends a supervisor's processes when the supervisor itself is killed and can no longer do so.

It reads process groups from its standard input, one a line ("+ID" started, "-ID" ended). At the end of the input,
which comes however the supervisor ends, every group still listed gets SIGTERM, and after GRACE_S seconds SIGKILL.
Standard library only, and started with `-I -S`, so that it costs a few milliseconds.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

GRACE_S = 8.0
TURN_S = 0.05


def main() -> None:
    """Read process groups from standard input until the supervisor is gone, then end those that are left."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    end_groups(read_open_groups(sys.stdin.readline))


def read_open_groups(readline: Callable[[], str]) -> set[int]:
    """Read lines until the input ends; return the ids of the groups that were started and not ended by then."""
    groups: set[int] = set()
    for line in iter(readline, ""):
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    return groups


def end_groups(groups: set[int]) -> None:
    """Send SIGTERM to every process group, and SIGKILL to those still there after GRACE_S seconds."""
    alive = {group for group in groups if _signal(group, signal.SIGTERM)}
    deadline = time.monotonic() + GRACE_S
    while alive and time.monotonic() < deadline:
        time.sleep(TURN_S)
        alive = {group for group in alive if _signal(group, 0)}
    for group in alive:
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
