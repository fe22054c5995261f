"""Runs a command or a function of ours in a confined child process, with limits.

The child has its own session and sees only what its policy names. It replies by writing bytes to a private pipe, whose
descriptor is in the environment variable ONNXFARM_REPLY_FD.
"""

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from farm.sandbox import confinement, forks, interpreters, launch, parent
from farm.sandbox.ending import Ending
from farm.sandbox.forkserver import Order
from farm.sandbox.policy import Policy
from farm.sandbox.watch import Limits

_PACKAGE = Path(__file__).resolve().parents[1]


def run_command(
    argv: Sequence[str], *, policy: Policy, timeout_s: float, **options: Unpack[parent.LaunchOptions]
) -> Ending:
    """Run `argv` (its first word an absolute path) in a confined child and wait at most `timeout_s` seconds for it.

    Return how the child ended; no exception is raised for a command that fails or takes too long. Raises SandboxError
    where the child cannot be started or confined, and NoSandboxError where no level of confinement works here and this
    process does not accept unconfined children.
    """
    if policy.level is None:
        policy = replace(policy, level=confinement.require_level())
    return parent.run_confined(argv, policy=policy, timeout_s=timeout_s, **options)


def run_function(
    name: str,
    payload: object,
    *,
    policy: Policy,
    timeout_s: float,
    max_reply_bytes: int = parent.MAX_REPLY_BYTES,
    preloaded: Sequence[str] = (),
) -> Ending:
    """Call `name` (`module:function`) with the payload, a JSON value, in a confined child of this interpreter.

    The reply of the returned ending is the function's result as JSON. An exception in the function ends the child with
    exit code 1, and its traceback is on stderr. `preloaded` names modules that a fork server keeps imported, for
    functions that are called often; for `module:function` the server also calls that function before its first fork.
    Without `preloaded`, at other levels than Landlock, and where the server is gone, the child is a fresh interpreter.
    Raises SandboxError where the child cannot be started or confined.
    """
    ours = (_PACKAGE, *interpreters.list_interpreter_paths(Path(sys.executable)))
    allowed = replace(policy, read_only=(*policy.read_only, *ours), listed=(*policy.listed, _PACKAGE.parent))
    env = {**parent.make_environment(policy), "PYTHONPATH": str(_PACKAGE.parent)}
    level = policy.level or confinement.require_level()
    if preloaded and level == "landlock":
        limits = parent.make_watch_limits(policy, level=level, timeout_s=timeout_s, max_reply_bytes=max_reply_bytes)
        with contextlib.suppress(forks.ServerGoneError):
            server = forks.servers.get_or_start(preloaded, env={**env, "HOME": "/", "TMPDIR": "/"})
            confining = launch.format_launcher_orders(allowed, level, starter=server.pid)
            order = Order(orders=confining, function=name, env=env, cwd=str(parent.choose_working_folder(policy)))
            return _run_in_fork(order, payload, server=server, limits=limits)
    return run_command(
        [sys.executable, "-P", "-m", "farm.sandbox.entry", name],
        policy=allowed,
        timeout_s=timeout_s,
        stdin=json.dumps(payload).encode(),
        env=env,
        max_reply_bytes=max_reply_bytes,
    )


def _run_in_fork(order: Order, payload: object, *, server: forks.ForkServer, limits: Limits) -> Ending:
    """Run the order in a fork of the server. Discards the server and raises ServerGoneError where it has ended."""
    try:
        return parent.watch_child(
            lambda stdin, reply: server.start(order, stdin=stdin, reply=reply),
            stdin=json.dumps(payload).encode(),
            limits=limits,
        )
    except forks.ServerGoneError:
        forks.servers.discard(server)
        raise
