"""Ends a supervisor's processes if the supervisor itself is killed.

The guardian reads process groups from its standard input, one a line: "+ID" for started, "-ID" for ended. The input
ends when the supervisor ends, for whatever reason. Then every group that has not ended gets SIGTERM, and after GRACE_S
seconds SIGKILL. It uses only the standard library, and is started with `-I -S`, so that it starts in milliseconds.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

GRACE_S = 8.0
POLL_S = 0.05


def main() -> None:
    """Read process groups from standard input until the supervisor ends, then end those that are left."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    end_groups(read_open_groups(sys.stdin.readline))


def read_open_groups(readline: Callable[[], str]) -> set[int]:
    """Read lines until the input ends. Return the ids of the process groups that have started, but not ended."""
    groups: set[int] = set()
    for line in iter(readline, ""):
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    return groups


def end_groups(groups: set[int]) -> None:
    """Send SIGTERM to process groups, and SIGKILL to those that still exist after GRACE_S seconds."""
    alive = {group for group in groups if _signal(group, signal.SIGTERM)}
    deadline = time.monotonic() + GRACE_S
    while alive and time.monotonic() < deadline:
        time.sleep(POLL_S)
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
