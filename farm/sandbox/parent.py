"""The parent's side of a confined child: starts it at the level of its policy, feeds it, and watches it to its end."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from farm.sandbox import launch
from farm.sandbox.child_process import Child, SpawnedChild
from farm.sandbox.ending import Ending
from farm.sandbox.launcher import EXIT_NOT_CONFINED
from farm.sandbox.policy import Level, Policy, SandboxError
from farm.sandbox.watch import Limits, RunningChild, Watch

REPLY_FD = "ONNXFARM_REPLY_FD"
# how long a reply may be unless `max_reply_bytes` says otherwise
MAX_REPLY_BYTES = 8 << 20


class LaunchOptions(TypedDict, total=False):
    """The options of one launch, in addition to its policy."""

    stdin: bytes
    # the child's whole environment: nothing is inherited, so that the child gets no secret of ours
    env: Mapping[str, str]
    cwd: Path
    max_reply_bytes: int
    # called with the running child, whose `kill` may be called from another thread
    on_started: Callable[[RunningChild], None]


def run_confined(argv: Sequence[str], *, policy: Policy, timeout_s: float, **options: Unpack[LaunchOptions]) -> Ending:
    """Run a command in a confined child, at the level that the policy names, and return how the child ended.

    The child is killed after `timeout_s` seconds. Raises SandboxError where it cannot be started or confined, and
    ValueError for a policy without a level.
    """
    level = policy.level
    if level is None:
        raise ValueError("The policy names no level: farm.sandbox.child chooses one.")
    cwd = options.get("cwd") or choose_working_folder(policy)
    words = launch.make_confined_command(argv, policy=policy, level=level, cwd=cwd)
    variables = options.get("env", make_environment(policy))

    def start(stdin: int, reply: int) -> Child:
        process = subprocess.Popen(
            words,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**variables, REPLY_FD: str(reply)},
            cwd=cwd,
            start_new_session=True,
            pass_fds=(reply,),
        )
        return SpawnedChild(process)

    max_reply_bytes = options.get("max_reply_bytes", MAX_REPLY_BYTES)
    limits = make_watch_limits(policy, level=level, timeout_s=timeout_s, max_reply_bytes=max_reply_bytes)
    return watch_child(start, stdin=options.get("stdin", b""), limits=limits, on_started=options.get("on_started"))


def watch_child(
    start: Callable[[int, int], Child],
    *,
    stdin: bytes,
    limits: Limits,
    on_started: Callable[[RunningChild], None] | None = None,
) -> Ending:
    """Call `start` with the descriptors of the child's stdin and reply, then wait for the end of that child.

    `stdin` is the whole content of its standard input. Raises SandboxError where the child cannot be started or
    confined.
    """
    with contextlib.ExitStack() as stack:
        stdin_file = stack.enter_context(tempfile.TemporaryFile())
        stdin_file.write(stdin)
        stdin_file.seek(0)
        reply_end, child_end = os.pipe()
        reply = stack.enter_context(os.fdopen(reply_end, "rb", buffering=0))
        try:
            process = start(stdin_file.fileno(), child_end)
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}.") from error
        finally:
            os.close(child_end)
        ending = Watch(process, reply=reply, limits=limits).wait_for_end(on_started)
    if ending.exit_code == EXIT_NOT_CONFINED and "sandbox could not be closed" in ending.stderr_tail:
        raise SandboxError(ending.stderr_tail.strip())
    return ending


def choose_working_folder(policy: Policy) -> Path:
    return policy.read_write[0] if policy.read_write else Path("/")


def make_environment(policy: Policy) -> dict[str, str]:
    """Make the whole environment of a child. Its home and its temporary folder are the first folder that it may write
    in, or else `/`."""
    home = str(policy.read_write[0]) if policy.read_write else "/"
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        "PYTHONDONTWRITEBYTECODE": "1",
        # ONNX Runtime's telemetry would start a thread and try the network
        "ORT_DISABLE_TELEMETRY": "1",
    }


def make_watch_limits(policy: Policy, *, level: Level, timeout_s: float, max_reply_bytes: int) -> Limits:
    """Collect what the watch enforces, from the policy, its level, and the limits of one launch."""
    return Limits(
        wall_s=timeout_s,
        cpu_s=policy.cpu_s,
        memory_bytes=policy.memory_bytes,
        address_space_bytes=policy.address_space_bytes,
        reply_bytes=max_reply_bytes,
        is_group=policy.processes or level == "bubblewrap",
        is_wrapped=level == "bubblewrap",
    )
