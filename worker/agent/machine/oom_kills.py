"""Finds out whether the kernel or somebody else killed a process, by the kernel's own count of out-of-memory kills."""

import re
import signal
from dataclasses import replace
from pathlib import Path

from farm.sandbox.ending import Ending

VMSTAT = Path("/proc/vmstat")


def count_oom_kills(vmstat: Path = VMSTAT) -> int | None:
    """Read how many processes the kernel has killed for lack of memory since boot; None where it does not tell."""
    try:
        match = re.search(r"^oom_kill (\d+)$", vmstat.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) if match else None


def correct_ending(ending: Ending, *, before: int | None, after: int | None) -> Ending:
    """Turn an out-of-memory ending into a crash, if the kernel killed no process meanwhile.

    Only an ending by SIGKILL whose cause was a guess is corrected. `before` and `after` are the kernel's counts around
    the process. If they are not known, the ending stays as it is.
    """
    is_guess = ending.kind == "out_of_memory" and ending.signal == signal.SIGKILL and "system killed it" in ending.limit
    if is_guess and before is not None and before == after:
        return replace(ending, kind="crashed", limit="")
    return ending
