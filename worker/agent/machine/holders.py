"""Who measures on this machine now: the process that holds the host's lock, as the kernel tells it, in a sentence."""

import os
import time
from datetime import datetime
from pathlib import Path

import psutil

LOCKS = Path("/proc/locks")


def sentence(descriptor: int, *, locks: Path = LOCKS) -> str:
    """Who holds the lock of this open file, since when, and what one can do."""
    holder = _holder(descriptor, locks=locks)
    if holder is None:
        return (
            "Another program is measuring on this machine. Measurements take turns: this one begins when that one ends."
        )
    if holder.pid == os.getpid():
        return "This node is testing what else its machine can run, which takes a minute at most."
    since = datetime.fromtimestamp(_since(descriptor, holder)).astimezone()
    return (
        f"{_name(holder)} (process {holder.pid}) has been measuring on this machine since {since:%H:%M:%S}. "
        f"Measurements take turns: this one begins when that one ends, or when you end it with `kill {holder.pid}`."
    )


def _holder(descriptor: int, *, locks: Path) -> psutil.Process | None:
    """None where the kernel does not tell, as outside Linux and for processes of another container."""
    # by its inode alone: layered file systems have other device numbers here and there
    inode = str(os.fstat(descriptor).st_ino)
    try:
        for line in locks.read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF; a line of somebody who waits has "->" after its number
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return psutil.Process(int(words[4]))
    except (OSError, ValueError, psutil.Error):
        return None
    return None


def _since(descriptor: int, holder: psutil.Process) -> float:
    """Whoever takes the lock touches its file; of another user's file the start of the process is all that is known."""
    touched, started = os.fstat(descriptor).st_mtime, holder.create_time()
    return touched if started <= touched <= time.time() else started


def _name(holder: psutil.Process) -> str:
    """What people know it by; not its arguments, which may hold what is nobody's business."""
    try:
        words = [os.path.basename(word) for word in holder.cmdline()]
    except psutil.Error:
        words = []
    if "worker.node" in words or ("onnxfarm" in words and "node" in words):
        return "An agent of a farm"
    for command in ("bench", "gate", "sweep", "bisect", "evaluate", "diverge", "conformance"):
        if command in words:
            return f"`onnxfarm {command}`"
    return "Another program"
