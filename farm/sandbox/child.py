"""Runs a command or a function of ours in a confined, limited, killable child.

The child has its own session, sees only what its policy names, and answers on a private pipe: it writes bytes to the
descriptor whose number stands in the environment variable ONNXFARM_REPLY_FD.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from farm.sandbox import forks, interpreters, launch, unconfined
from farm.sandbox.endings import Ending
from farm.sandbox.launcher import EXIT_NOT_CONFINED
from farm.sandbox.policy import Level, Policy, SandboxError
from farm.sandbox.started import Child, Spawned
from farm.sandbox.watch import Limits, Running, Watch

REPLY_FD = "ONNXFARM_REPLY_FD"
_PACKAGE = Path(__file__).resolve().parents[1]


def run_command(
    argv: Sequence[str],
    *,
    policy: Policy,
    timeout_s: float,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    max_reply_bytes: int = 8 << 20,
    on_started: Callable[[Running], None] | None = None,
) -> Ending:
    """Runs `argv` (its first word an absolute path) and waits for its end, at most `timeout_s` seconds.

    `env` is the child's whole environment; nothing is inherited, so that no secret of ours is. `on_started` is given
    the running child, whose `kill` may be called from another thread.
    Raises SandboxError when the child could not be started or confined, NoSandboxError where nothing can confine it and
    this process has not accepted that; whatever the child does is an Ending.
    """
    level = policy.level or unconfined.level_to_use()
    where = cwd or _folder(policy)
    words = launch.command(argv, policy=policy, level=level, cwd=where)
    variables = _environment(policy) if env is None else env

    def start(given: int, reply: int) -> Child:
        process = subprocess.Popen(
            words,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**variables, REPLY_FD: str(reply)},
            cwd=where,
            start_new_session=True,
            pass_fds=(reply,),
        )
        return Spawned(process)

    limits = _limits(policy, level=level, timeout_s=timeout_s, reply=max_reply_bytes)
    return _watched(start, stdin=stdin, limits=limits, on_started=on_started)


def _watched(
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


def run_function(
    name: str,
    payload: Any,
    *,
    policy: Policy,
    timeout_s: float,
    max_reply_bytes: int = 8 << 20,
    imported: Sequence[str] = (),
) -> Ending:
    """Calls `module:function` with the payload (JSON-able) in a child of this interpreter; the reply is its JSON.

    `imported`: modules that a fork server of this process keeps imported, for functions that are called often, each
    with `:function` where there is more to do before the first fork; where no server can be had (another level than
    Landlock) each child is a fresh interpreter. An exception in the function ends the child with exit code 1 and its
    traceback on stderr.
    """
    ours = (_PACKAGE, *interpreters.paths(Path(sys.executable)))
    allowed = replace(policy, read_only=(*policy.read_only, *ours), listed=(*policy.listed, _PACKAGE.parent))
    env = {**_environment(policy), "PYTHONPATH": str(_PACKAGE.parent)}
    level = policy.level or unconfined.level_to_use()
    if imported and level == "landlock":
        limits = _limits(policy, level=level, timeout_s=timeout_s, reply=max_reply_bytes)
        with contextlib.suppress(forks.ServerGone):
            server = forks.servers.of(imported, env={**env, "HOME": "/", "TMPDIR": "/"})
            confining = launch.orders(allowed, level, starter=server.pid)
            order = {"orders": confining, "function": name, "env": env, "cwd": str(_folder(policy))}
            return _forked(order, payload, server=server, limits=limits)
    return run_command(
        [sys.executable, "-P", "-m", "farm.sandbox.entry", name],
        policy=allowed,
        timeout_s=timeout_s,
        stdin=json.dumps(payload).encode(),
        env=env,
        max_reply_bytes=max_reply_bytes,
    )


def _forked(order: dict[str, Any], payload: Any, *, server: forks.ForkServer, limits: Limits) -> Ending:
    """The same in a fork of the server that has the modules. Raises ServerGone when it is gone, for whatever reason."""
    try:
        return _watched(
            lambda given, reply: server.start(order, stdin=given, reply=reply),
            stdin=json.dumps(payload).encode(),
            limits=limits,
        )
    except forks.ServerGone:
        forks.servers.forget(server)
        raise


def _folder(policy: Policy) -> Path:
    return policy.read_write[0] if policy.read_write else Path("/")


def _environment(policy: Policy) -> dict[str, str]:
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


def _limits(policy: Policy, *, level: Level, timeout_s: float, reply: int) -> Limits:
    return Limits(
        wall_s=timeout_s,
        cpu_s=policy.cpu_s,
        memory_bytes=policy.memory_bytes,
        address_space_bytes=policy.address_space_bytes,
        reply_bytes=reply,
        is_family=policy.processes or level == "bubblewrap",
        is_wrapped=level == "bubblewrap",
    )
