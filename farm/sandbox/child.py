"""Runs a command or a function of ours in a confined, limited, killable child.

The child has its own session, sees only what its policy names, and answers on a private pipe: it writes bytes to the
descriptor whose number stands in the environment variable ONNXFARM_REPLY_FD.
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


def run_command(argv: Sequence[str], *, policy: Policy, timeout_s: float, **given: Unpack[parent.Given]) -> Ending:
    """Runs `argv` (its first word an absolute path) and waits for its end, at most `timeout_s` seconds.

    Raises SandboxError when the child could not be started or confined, NoSandboxError where nothing can confine it and
    this process has not accepted that; whatever the child does is an Ending.
    """
    return parent.run_confined(argv, policy=_levelled(policy), timeout_s=timeout_s, **given)


def run_function(
    name: str,
    payload: object,
    *,
    policy: Policy,
    timeout_s: float,
    max_reply_bytes: int = parent.REPLY_BYTES,
    imported: Sequence[str] = (),
) -> Ending:
    """Calls `module:function` with the payload (JSON-able) in a child of this interpreter; the reply is its JSON.

    `imported`: modules that a fork server of this process keeps imported, for functions that are called often, each
    with `:function` where there is more to do before the first fork; where no server can be had (another level than
    Landlock) each child is a fresh interpreter. An exception in the function ends the child with exit code 1 and its
    traceback on stderr.
    """
    ours = (_PACKAGE, *interpreters.interpreter_paths(Path(sys.executable)))
    allowed = replace(policy, read_only=(*policy.read_only, *ours), listed=(*policy.listed, _PACKAGE.parent))
    env = {**parent.make_environment(policy), "PYTHONPATH": str(_PACKAGE.parent)}
    level = policy.level or confinement.require_level()
    if imported and level == "landlock":
        limits = parent.make_limits(policy, level=level, timeout_s=timeout_s, reply=max_reply_bytes)
        with contextlib.suppress(forks.ServerGoneError):
            server = forks.servers.of(imported, env={**env, "HOME": "/", "TMPDIR": "/"})
            confining = launch.write_launcher_orders(allowed, level, starter=server.pid)
            order = Order(orders=confining, function=name, env=env, cwd=str(parent.folder(policy)))
            return _forked(order, payload, server=server, limits=limits)
    return run_command(
        [sys.executable, "-P", "-m", "farm.sandbox.entry", name],
        policy=allowed,
        timeout_s=timeout_s,
        stdin=json.dumps(payload).encode(),
        env=env,
        max_reply_bytes=max_reply_bytes,
    )


def _forked(order: Order, payload: object, *, server: forks.ForkServer, limits: Limits) -> Ending:
    """The same in a fork of the server that has the modules. Raises ServerGoneError where it is gone."""
    try:
        return parent.watch_child(
            lambda given, reply: server.start(order, stdin=given, reply=reply),
            stdin=json.dumps(payload).encode(),
            limits=limits,
        )
    except forks.ServerGoneError:
        forks.servers.forget(server)
        raise


def _levelled(policy: Policy) -> Policy:
    """The policy with a level: its own, or the one to use on this machine. Raises NoSandboxError."""
    return policy if policy.level is not None else replace(policy, level=confinement.require_level())
