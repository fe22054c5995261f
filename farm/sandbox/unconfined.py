"""Whether children of this process may run unconfined where no level of confinement works.

They may not, unless the process accepts it. A farm does so if its operator owns every model, an agent if it then takes
only its owner's models, and a command on the user's own file. Such a process is warned once, before its first
unconfined child.
"""

import threading
from collections.abc import Callable

from farm.sandbox.policy import SandboxError

_lock = threading.Lock()
_accepted: Callable[[str], None] | None = None
_was_reported = False


class NoSandboxError(SandboxError):
    """No level of confinement works here, and this process has not accepted to run children without one."""


def accept_unconfined(report: Callable[[str], None]) -> None:
    """Let children of this process run unconfined where no level of confinement works.

    `report` is called once, before the first such child, with the reason why no level works.
    """
    global _accepted, _was_reported
    with _lock:
        _accepted, _was_reported = report, False


def refuse_unconfined() -> None:
    """Take back what `accept_unconfined` allowed."""
    global _accepted
    with _lock:
        _accepted = None


def require_unconfined_accepted(reason: str) -> None:
    """Raise NoSandboxError with this reason unless this process accepts unconfined children.

    If it accepts them, the first call reports the reason.
    """
    global _was_reported
    with _lock:
        if _accepted is None:
            raise NoSandboxError(reason)
        report, is_first, _was_reported = _accepted, not _was_reported, True
    if is_first:
        report(reason)
