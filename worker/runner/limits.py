"""Sets a hard limit on this process's address space, where a cell asks for it."""

import resource
import sys

from worker.runner import faults, memory

_MIB = 1 << 20


def limit_memory(mib: int) -> None:
    """Limit the process to `mib` MiB of address space from now on; 0 sets no limit.

    Raises Refusal where the runtime alone has taken more already, or this system has no such limit.
    """
    if not mib:
        return
    taken = memory.read_address_space_bytes()
    if taken is None:
        raise faults.Refusal(
            "not_supported",
            f"a memory limit counts addresses, which {sys.platform} does not tell of a process: measure on Linux, or "
            "leave memory-limit-mb out",
        )
    if taken >= mib * _MIB:
        raise faults.Refusal(
            "out_of_memory",
            f"the memory limit of {mib:,} MiB is under what the runtime itself takes: {-(-taken // _MIB):,} MiB of "
            "addresses, before a model is loaded; set memory-limit-mb above that",
        )
    resource.setrlimit(resource.RLIMIT_AS, (mib * _MIB, mib * _MIB))


def explain_with_limit(refusal: faults.Refusal, mib: int) -> faults.Refusal:
    """Return the refusal, with the memory limit in its text where memory ran out under one of `mib` MiB."""
    if not mib or refusal.code != "out_of_memory" or "memory limit" in refusal.text:
        return refusal
    size = refusal.text.partition(";")[0]
    text = f"under the memory limit of {mib:,} MiB {size}; raise memory-limit-mb, or give the cell a smaller batch"
    return faults.Refusal(refusal.code, text, **refusal.facts)
