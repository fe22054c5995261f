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

from farm.sandbox import confinement, interpreters, launch
from farm.sandbox.endings import Ending
from farm.sandbox.launcher import EXIT_NOT_CONFINED
from farm.sandbox.policy import Level, Policy, SandboxError
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
    Raises SandboxError when the child could not be started or confined; whatever the child does is an Ending.
    """
    level = policy.level or confinement.available_level()
    where = cwd or (policy.read_write[0] if policy.read_write else Path("/"))
    words = launch.command(argv, policy=policy, level=level, cwd=where)
    with contextlib.ExitStack() as stack:
        given = stack.enter_context(tempfile.TemporaryFile())
        given.write(stdin)
        given.seek(0)
        reply_end, child_end = os.pipe()
        reply = stack.enter_context(os.fdopen(reply_end, "rb", buffering=0))
        try:
            process = subprocess.Popen(
                words,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**(_environment(policy) if env is None else env), REPLY_FD: str(child_end)},
                cwd=where,
                start_new_session=True,
                pass_fds=(child_end,),
            )
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}.") from error
        finally:
            os.close(child_end)
        watch = Watch(
            process, reply=reply, limits=_limits(policy, level=level, timeout_s=timeout_s, reply=max_reply_bytes)
        )
        ending = watch.until_it_ends(on_started)
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
) -> Ending:
    """Calls `module:function` with the payload (JSON-able) in a child of this interpreter; the reply is its JSON.

    An exception in the function ends the child with exit code 1 and its traceback on stderr.
    """
    ours = (_PACKAGE, *interpreters.paths(Path(sys.executable)))
    allowed = replace(policy, read_only=(*policy.read_only, *ours), listed=(*policy.listed, _PACKAGE.parent))
    return run_command(
        [sys.executable, "-P", "-m", "farm.sandbox.entry", name],
        policy=allowed,
        timeout_s=timeout_s,
        stdin=json.dumps(payload).encode(),
        env={**_environment(policy), "PYTHONPATH": str(_PACKAGE.parent)},
        max_reply_bytes=max_reply_bytes,
    )


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
