"""Checks that scores and caches of a generation fit into free memory, before they are allocated."""

import re
import resource

import numpy as np

from worker.runner import faults, memory
from worker.runner.scenarios.decoder_ports import Decoder


def check_memory(decoder: Decoder, *, prompt: int, new: int, batch: int) -> None:
    """Raises Refusal where a generation of `new` tokens would need more memory for scores and caches than is free.

    Nothing is refused where the free memory is not known.
    """
    needed, free = estimate_bytes(decoder, prompt=prompt, new=new, batch=batch), read_free_bytes()
    if free is not None and needed > free:
        rows = f"{batch} prompts" if batch > 1 else "a prompt"
        text = (
            f"{rows} of {prompt:,} tokens and {new:,} more take {_format_size(needed)} for scores and caches, and "
            f"{_format_size(free)} are free: ask for fewer, or give the node more memory"
        )
        raise faults.Refusal("out_of_memory", text)


def estimate_bytes(decoder: Decoder, *, prompt: int, new: int, batch: int) -> int:
    """Estimate the bytes of a generation: the scores of the prompt and of one token, and two buffers a cache."""
    scores = (prompt + 1) * decoder.vocabulary * np.dtype(decoder.scores.dtype).itemsize
    bytes_per_token = 0
    for port, _ in decoder.caches:
        # one axis more before the heads where a port holds keys and values together
        *front, heads, _, width = port.shape
        parts = 2 if len(front) == 2 else 1
        bytes_per_token += parts * int(str(heads)) * int(str(width)) * np.dtype(port.dtype).itemsize
    return int(batch * (scores + 2 * (prompt + new) * bytes_per_token))


def read_free_bytes() -> int | None:
    """Read how many bytes this process may still take, by the machine's free memory and the process's own limit.

    None where neither is known.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = memory.read_address_space_bytes()
    below_limit = limit - taken if limit != resource.RLIM_INFINITY and taken is not None else None
    limits = [size for size in (below_limit, _read_available_bytes()) if size is not None]
    return min(limits, default=None)


def _read_available_bytes() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as file:
            match = re.search(r"^MemAvailable:\s+(\d+) kB", file.read(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def _format_size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
