"""Explains how a process of `onnxfarm gate` ended, for pipelines and for the pytest plugin.

It imports the standard library alone, because every pytest in an environment with onnxfarm imports it.
"""

import signal

PASSED, FAILED, TIMED_OUT, INTERNAL = 0, 1, 4, 70
CANCELLED = frozenset(128 + number for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", 1)))
SAYS_NOTHING = "nothing is said of the model"


def compute_exit_code(status: int, *, is_judged: bool) -> int:
    """Return the exit code of a gate process that ended with `status`, which is negative if a signal killed it.

    A kill by signal N becomes 128 + N, as in a shell. FAILED without a verdict becomes INTERNAL: then the gate broke,
    and the model was not judged. Every other status is kept.
    """
    if status < 0:
        return 128 - status
    return INTERNAL if status == FAILED and not is_judged else status


def is_broken(code: int) -> bool:
    """Say whether the gate itself failed: it crashed, or was killed by a signal that does not cancel."""
    return code == INTERNAL or (code > 128 and code not in CANCELLED)


def explain_end(code: int, last_line: str) -> str:
    """Say why a gate process judged nothing. `last_line` is the last line that it printed.

    That line is the answer where the gate was neither cancelled nor broken.
    """
    if code in CANCELLED:
        return f"Cancelled before the end: {SAYS_NOTHING}."
    if is_broken(code):
        signals = {entry.value: entry.name for entry in signal.Signals}
        ended_by = signals.get(code - 128, f"signal {code - 128}")
        reason = last_line if code == INTERNAL else f"it was ended by {ended_by}"
        return f"The gate itself failed: {reason.rstrip('.') or 'it printed nothing'}; {SAYS_NOTHING}."
    return last_line
