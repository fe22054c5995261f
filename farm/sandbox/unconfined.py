"""Whether children of this process may run where no level of confinement holds.

They may not, unless the process says so: a farm whose operator owns every model, an agent, which then takes its owner's
models only, a command on a file of one's own. Whoever says so is told, once, when it first comes to that.
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
    """From now on children of this process run without walls where none can be had; `tell` is given why, once."""
    global _accepted, _was_reported
    with _lock:
        _accepted, _was_reported = report, False


def refuse_unconfined() -> None:
    """Takes that back."""
    global _accepted
    with _lock:
        _accepted = None


def continue_unconfined(sentence: str) -> None:
    """Goes on without walls, `sentence` says why; who accepted it is told. Raises NoSandboxError where nobody did."""
    global _was_reported
    with _lock:
        if _accepted is None:
            raise NoSandboxError(sentence)
        report, _was_reported, before = _accepted, True, _was_reported
    if not before:
        report(sentence)
