"""The parent's side of a confined child: started at the level that its policy names, fed, and watched to its end."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from farm.sandbox import launch
from farm.sandbox.child_process import Child, Spawned
from farm.sandbox.ending import Ending
from farm.sandbox.launcher import EXIT_NOT_CONFINED
from farm.sandbox.policy import Level, Policy, SandboxError
from farm.sandbox.watch import Limits, Running, Watch

REPLY_FD = "ONNXFARM_REPLY_FD"
# of a reply, unless more is asked for
REPLY_BYTES = 8 << 20


class Given(TypedDict, total=False):
    """What a command may be given beside its policy.

    `env` is the child's whole environment; nothing is inherited, so that no secret of ours is. `on_started` is given
    the running child, whose `kill` may be called from another thread.
    """

    stdin: bytes
    env: Mapping[str, str]
    cwd: Path
    max_reply_bytes: int
    on_started: Callable[[Running], None]


def run_confined(argv: Sequence[str], *, policy: Policy, timeout_s: float, **given: Unpack[Given]) -> Ending:
    """As `farm.sandbox.child.run_command`, for a policy whose level is decided. Raises SandboxError."""
    level = policy.level
    if level is None:
        raise ValueError("The policy names no level: farm.sandbox.child chooses one.")
    where = given.get("cwd") or folder(policy)
    words = launch.make_confined_command(argv, policy=policy, level=level, cwd=where)
    variables = given.get("env", make_environment(policy))

    def start(stdin: int, reply: int) -> Child:
        process = subprocess.Popen(
            words,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**variables, REPLY_FD: str(reply)},
            cwd=where,
            start_new_session=True,
            pass_fds=(reply,),
        )
        return Spawned(process)

    held = make_limits(policy, level=level, timeout_s=timeout_s, reply=given.get("max_reply_bytes", REPLY_BYTES))
    return watch_child(start, stdin=given.get("stdin", b""), limits=held, on_started=given.get("on_started"))


def watch_child(
    start: Callable[[int, int], Child],
    *,
    stdin: bytes,
    limits: Limits,
    on_started: Callable[[Running], None] | None = None,
) -> Ending:
    """Starts a child, given the descriptors of its stdin and of its reply, and waits for its end."""
    with contextlib.ExitStack() as stack:
        given = stack.enter_context(tempfile.TemporaryFile())
        given.write(stdin)
        given.seek(0)
        reply_end, child_end = os.pipe()
        reply = stack.enter_context(os.fdopen(reply_end, "rb", buffering=0))
        try:
            process = start(given.fileno(), child_end)
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}.") from error
        finally:
            os.close(child_end)
        ending = Watch(process, reply=reply, limits=limits).until_it_ends(on_started)
    if ending.exit_code == EXIT_NOT_CONFINED and "sandbox could not be closed" in ending.stderr_tail:
        raise SandboxError(ending.stderr_tail.strip())
    return ending


def folder(policy: Policy) -> Path:
    return policy.read_write[0] if policy.read_write else Path("/")


def make_environment(policy: Policy) -> dict[str, str]:
    home = str(policy.read_write[0]) if policy.read_write else "/"
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        "PYTHONDONTWRITEBYTECODE": "1",
        # a wheel must neither start a thread of its own nor try the network
        "ORT_DISABLE_TELEMETRY": "1",
    }


def make_limits(policy: Policy, *, level: Level, timeout_s: float, reply: int) -> Limits:
    return Limits(
        wall_s=timeout_s,
        cpu_s=policy.cpu_s,
        memory_bytes=policy.memory_bytes,
        address_space_bytes=policy.address_space_bytes,
        reply_bytes=reply,
        is_group=policy.processes or level == "bubblewrap",
        is_wrapped=level == "bubblewrap",
    )
