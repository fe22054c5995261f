"""Other runners on this machine: measurements that do not share this agent's lock."""

import os
import re

import psutil

# what worker.agent.kit.stages names the folder that a runner is started from
_STAGE = re.compile(r"^runner-[0-9a-f]{16}$")
# stands around a runner with the runner's own arguments
_WRAPPERS = ("bwrap",)


def other_runners() -> int | None:
    """How many runners work here, whoever started them; None where processes cannot be listed.

    Asked for before a block's first launch, none of them is the block's own.
    """
    try:
        processes = list(psutil.process_iter(["cmdline"]))
    except (OSError, psutil.Error):
        return None
    return sum(is_runner(process.info["cmdline"] or ()) for process in processes)


def is_runner(argv: "list[str] | tuple[str, ...]") -> bool:
    """Whether a process with these arguments measures: an interpreter started on a staged runner."""
    if not argv or os.path.basename(argv[0]) in _WRAPPERS:
        return False
    return any(_STAGE.match(os.path.basename(argument)) for argument in argv[1:])
