"""Which level of confinement works on this machine, found by trying to break out of each."""

import functools
import os
import sys
import tempfile
from pathlib import Path

from farm.sandbox import interpreters
from farm.sandbox.policy import Level, Policy, SandboxError

_PROBE_S = 20.0
_BY_PREFERENCE: tuple[Level, ...] = ("landlock", "bubblewrap")
# Each line tries what must not work; the word is written only when all three failed.
_PROBE = """
import os, socket, sys
secret, outside = sys.argv[1:]
def refused(attempt):
    try:
        attempt()
    except OSError:
        return True
    return False
if all([
    refused(lambda: open(secret).read()),
    refused(lambda: open(outside, "w")),
    refused(lambda: socket.create_connection(("127.0.0.1", 9), 1)) and refused(lambda: socket.socket()),
]):
    os.write(int(os.environ["ONNXFARM_REPLY_FD"]), b"confined")
"""


@functools.cache
def available_level() -> Level:
    """The level to use on this machine: one that held in a real try, made once a process (about 0.05 s).

    Landlock comes first: nothing stands between us and the child, so that its times and memory are the kernel's own
    figures. bubblewrap serves kernels without Landlock.
    """
    if sys.platform != "linux":
        return "none"
    for level in _BY_PREFERENCE:
        if why_not(level) is None:
            return level
    return "none"


def why_not(level: Level) -> str | None:
    """None when a child at this level can neither read a secret, write outside, nor open a socket; else the reason."""
    from farm.sandbox import child  # the child asks this module for its level

    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.write_text("must not be read")
        work = Path(folder, "work")
        work.mkdir()
        python = os.path.abspath(sys.executable)
        policy = Policy(read_only=interpreters.paths(Path(python)), read_write=(work,), level=level)
        argv = [python, "-I", "-S", "-c", _PROBE, str(secret), str(Path(folder, "outside"))]
        try:
            ending = child.run_command(argv, policy=policy, timeout_s=_PROBE_S)
        except SandboxError as error:
            return str(error)
        return None if ending.reply == b"confined" else f"The probe was not confined. {ending.sentence()}"
