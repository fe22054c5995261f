"""Whether children of this process may run where no level of confinement holds.

They may not, unless the process says so: a farm whose operator owns every model, an agent, which then takes its owner's
models only, a command on a file of one's own. Whoever says so is told, once, when it first comes to that.
"""

import threading
from collections.abc import Callable

from farm.sandbox.policy import Level, SandboxError

_lock = threading.Lock()
_accepted: Callable[[str], None] | None = None
_was_told = False


class NoSandboxError(SandboxError):
    """No level of confinement holds, and this process has not accepted to go on without."""


def accept(tell: Callable[[str], None]) -> None:
    """From now on children of this process run without walls where none can be had; `tell` is given why, once."""
    global _accepted, _was_told
    with _lock:
        _accepted, _was_told = tell, False


def refuse() -> None:
    """Takes that back."""
    global _accepted
    with _lock:
        _accepted = None


def level_to_use() -> Level:
    """The strongest level that holds here; "none" only where that was accepted. Raises NoSandboxError."""
    from farm.sandbox import confinement  # the probe runs a child, which asks here

    level = confinement.available_level()
    if level == "none":
        _go_on(confinement.sentence())
    return level


def _go_on(sentence: str) -> None:
    global _was_told
    with _lock:
        if _accepted is None:
            raise NoSandboxError(sentence)
        tell, _was_told, told = _accepted, True, _was_told
    if not told:
        tell(sentence)
