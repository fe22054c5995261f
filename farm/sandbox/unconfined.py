"""Whether children of this process may run where no level of confinement holds.

They may not, unless the process says so: a farm whose operator owns every model, an agent, which then takes its owner's
models only, or a command on the user's own file. The process that says so is warned once, before the first such child.
"""

import threading
from collections.abc import Callable

from farm.sandbox.policy import SandboxError

_lock = threading.Lock()
_accepted: Callable[[str], None] | None = None
_was_reported = False


class NoSandboxError(SandboxError):
    """No level of confinement holds, and this process has not accepted to go on without."""


def accept_unconfined(report: Callable[[str], None]) -> None:
    """Let children of this process run unconfined where no level holds.

    `report` is called once, before the first such child, with the reason why no level holds.
    """
    global _accepted, _was_reported
    with _lock:
        _accepted, _was_reported = report, False


def refuse_unconfined() -> None:
    """Take back what `accept_unconfined` allowed."""
    global _accepted
    with _lock:
        _accepted = None


def require_unconfined_accepted(sentence: str) -> None:
    """Report the reason `sentence`, but only once. Raises NoSandboxError where `accept_unconfined` was not called."""
    global _was_reported
    with _lock:
        if _accepted is None:
            raise NoSandboxError(sentence)
        report, is_first, _was_reported = _accepted, not _was_reported, True
    if is_first:
        report(sentence)
