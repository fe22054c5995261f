"""Sets a hard limit on this process's address space, where a cell asks for it."""

import resource
import sys

from worker.runner import faults, memory

_MIB = 1 << 20


def limit_memory(mib: int) -> None:
    """Limit the process to `mib` MiB of address space from now on; 0 sets no limit.

    Raises Refusal where the process already uses as much, or where this system does not tell how much it uses.
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


def add_limit_to_text(refusal: faults.Refusal, mib: int) -> faults.Refusal:
    """Name the memory limit of `mib` MiB in the text of an out_of_memory refusal; return any other refusal as it is.

    0 is no limit. A text that names the limit already is not changed.
    """
    if not mib or refusal.code != "out_of_memory" or "memory limit" in refusal.text:
        return refusal
    size = refusal.text.partition(";")[0]
    text = f"under the memory limit of {mib:,} MiB {size}; raise memory-limit-mb, or give the cell a smaller batch"
    return faults.Refusal(refusal.code, text, **refusal.facts)
