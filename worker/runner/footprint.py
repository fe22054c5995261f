"""Measures how much memory a further session of the model takes, and a further thread of a session.

Beside the first session, two more with the cell's threads are opened and run once, then one with a single thread. All
stay open until the end, because the memory of a closed session would be used again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from worker.runner import memory
from worker.runner.arrays import Arrays
from worker.runner.engines.protocol import Feed
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import CPU, Order, PhaseTimer

# the number of further sessions with the cell's threads
FURTHER = 2
# further sessions are opened only if the first one took at most this: start in ms, and memory of the whole process
CHEAP_MS = 300.0
CHEAP_BYTES = 256 << 20


@dataclass(frozen=True)
class _MemoryUse:
    """The resident memory and the address space of this process, in bytes."""

    resident: int
    address_space: int


def measure_for_check(order: Order, inputs: Arrays, *, start_ms: float, peak_bytes: int) -> dict[str, float]:
    """Open further sessions of the cell, and return memory figures in bytes, by the names of their metrics.

    Empty for other providers than the CPU, for engines without sessions, under a memory limit, where sessions are not
    cheap, where memory cannot be read, or where a session fails. `start_ms` is how long the first session took to open
    and to run once, and `peak_bytes` the process's peak memory.
    """
    is_cheap = find_engine_kind(order).has_sessions and start_ms <= CHEAP_MS and peak_bytes <= CHEAP_BYTES
    if order.provider != CPU or order.session.memory_limit_mb or not is_cheap:
        return {}
    feeds: list[Feed] = []
    try:
        return measure_growth(
            threads=order.session.threads, add=lambda threads: feeds.append(_open_session(order, inputs, threads))
        )
    except Exception:  # one of ONNX Runtime's own classes, or a Refusal, for instance for lack of memory
        return {}


def measure_growth(*, threads: int, add: Callable[[int], None]) -> dict[str, float]:
    """Measure how much memory this process takes for each session that `add` opens.

    `add` is called with a session's number of threads, and keeps the session open. Return `memory_per_session_bytes`,
    and with more than one thread `addresses_per_thread_bytes`; empty where memory cannot be read. Either is below 0
    where memory shrank meanwhile.
    """
    before = _read_memory_use()
    for _ in range(FURTHER):
        add(threads)
    after = _read_memory_use()
    if before is None or after is None:
        return {}
    growth = {"memory_per_session_bytes": (after.resident - before.resident) / FURTHER}
    if threads > 1:
        add(1)
        with_single_threaded = _read_memory_use() or after
        of_session = (after.address_space - before.address_space) / FURTHER
        of_single_threaded = with_single_threaded.address_space - after.address_space
        growth["addresses_per_thread_bytes"] = (of_session - of_single_threaded) / (threads - 1)
    return growth


def _open_session(order: Order, inputs: Arrays, threads: int) -> Feed:
    order = replace(order, session=replace(order.session, threads=threads))
    kind = find_engine_kind(order)
    feed = kind.feed(kind.open_engine(order, timer=PhaseTimer()), inputs)
    feed.run_first()
    return feed


def _read_memory_use() -> _MemoryUse | None:
    memory.release_freed_memory()
    resident, address_space = memory.read_resident_bytes(), memory.read_address_space_bytes()
    return None if resident is None or address_space is None else _MemoryUse(resident, address_space)
