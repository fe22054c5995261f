"""Checks that scores and caches of a generation fit into free memory, before they are allocated."""

import re
import resource

import numpy as np

from worker.runner import faults, memory
from worker.runner.scenarios.decoder_ports import Decoder, compute_cache_shape


def refuse_if_too_large(decoder: Decoder, *, prompt: int, new: int, batch: int) -> None:
    """Raise Refusal where a generation needs more memory for its scores and caches than is free.

    `prompt` and `new` are the tokens of each of the `batch` sequences. Nothing is refused where the free memory is not
    known.
    """
    needed, free = estimate_generation_bytes(decoder, prompt=prompt, new=new, batch=batch), read_free_bytes()
    if free is None or needed <= free:
        return
    prompts = f"{batch} prompts" if batch > 1 else "a prompt"
    text = (
        f"{prompts} of {prompt:,} tokens and {new:,} more take {_format_size(needed)} for scores and caches, and "
        f"{_format_size(free)} are free: ask for fewer, or give the node more memory"
    )
    raise faults.Refusal("out_of_memory", text)


def estimate_generation_bytes(decoder: Decoder, *, prompt: int, new: int, batch: int) -> int:
    """Estimate the bytes of the buffers that `decoder_ports.Steps` allocates for a generation.

    These are the scores of the prompt and of one token, and two buffers for each cache.
    """
    score_bytes = (prompt + 1) * decoder.vocabulary * np.dtype(decoder.scores.dtype).itemsize
    cache_bytes_per_token = sum(
        int(np.prod(compute_cache_shape(port, batch=1, length=1))) * np.dtype(port.dtype).itemsize
        for port, _ in decoder.caches
    )
    return int(batch * (score_bytes + 2 * (prompt + new) * cache_bytes_per_token))


def read_free_bytes() -> int | None:
    """Read how many bytes this process may still allocate: the machine's free memory, or less by the process's limit.

    None where neither is known.
    """
    limits = []
    if (available := _read_available_bytes()) is not None:
        limits.append(available)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = memory.read_address_space_bytes()
    if limit != resource.RLIM_INFINITY and used is not None:
        limits.append(limit - used)
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
