"""Explains how a process of `onnxfarm gate` ended, for pipelines and for the pytest plugin.

This module imports only the standard library, because every pytest in an environment with onnxfarm imports it.
"""

import signal

PASSED, FAILED, TIMED_OUT, INTERNAL = 0, 1, 4, 70
CANCELLED = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", 1)))
NOT_JUDGED = "nothing is said of the model"
# what fails a gate unless --fail-on says otherwise
DEFAULT_CHECKS = "slower,lower,parity,placement,failed"


def compute_exit_code(status: int, *, is_judged: bool) -> int:
    """Compute a gate's exit code from the return code of its process, which is -N after signal N.

    Signal N becomes 128 + N, as in a shell. FAILED becomes INTERNAL unless the gate wrote a verdict (`is_judged`),
    because a traceback also ends Python with 1. Every other status is returned as it is.
    """
    if status < 0:
        return 128 - status
    return INTERNAL if status == FAILED and not is_judged else status


def is_broken(code: int) -> bool:
    """Say whether the gate itself failed: it crashed, or a signal other than those that cancel a job killed it."""
    return code == INTERNAL or (code > 128 and code not in CANCELLED)


def explain_end(code: int, last_line: str) -> str:
    """Return a sentence about why a gate with this exit code judged nothing. `last_line`: the last line it printed.

    A gate that was neither cancelled nor broken prints its reason last, so the line itself is returned.
    """
    if code in CANCELLED:
        return f"Cancelled before the end: {NOT_JUDGED}."
    if is_broken(code):
        signals = {entry.value: entry.name for entry in signal.Signals}
        ended_by = signals.get(code - 128, f"signal {code - 128}")
        reason = last_line if code == INTERNAL else f"it was ended by {ended_by}"
        return f"The gate itself failed: {reason.rstrip('.') or 'it printed nothing'}; {NOT_JUDGED}."
    return last_line
