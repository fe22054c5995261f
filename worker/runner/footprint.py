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

FURTHER = 2
# further sessions are opened only if the first one took no more, in milliseconds and bytes of the whole process
CHEAP_MS = 300.0
CHEAP_BYTES = 256 << 20


@dataclass(frozen=True)
class _Taken:
    """The resident memory and the address space of this process, in bytes."""

    resident: int
    addresses: int


def measure_for_check(order: Order, inputs: Arrays, *, spent_ms: float, peak_bytes: int) -> dict[str, float]:
    """Open further sessions of the cell, and return memory figures in bytes, by their metrics.

    Empty for other providers than the CPU, for engines without sessions, under a memory limit, where sessions are not
    cheap, where memory cannot be read, or where a session fails. `spent_ms` is the time of the first session, and
    `peak_bytes` the process's peak memory.
    """
    is_cheap = find_engine_kind(order).has_sessions and spent_ms <= CHEAP_MS and peak_bytes <= CHEAP_BYTES
    if order.provider != CPU or order.session.memory_limit_mb or not is_cheap:
        return {}
    feeds: list[Feed] = []
    try:
        return measure_growth(
            threads=order.session.threads, add=lambda threads: feeds.append(_open_session(order, inputs, threads))
        )
    except Exception:  # one of ONNX Runtime's own classes, or a Refusal, as for lack of memory
        return {}


def measure_growth(*, threads: int, add: Callable[[int], None]) -> dict[str, float]:
    """Measure how memory grows while `add`, called with a number of threads, opens sessions.

    Returns `memory_per_session_bytes`, and with more than one thread `addresses_per_thread_bytes`; empty where memory
    cannot be read. Either is below 0 where memory shrank meanwhile.
    """
    before = _read_taken()
    for _ in range(FURTHER):
        add(threads)
    after = _read_taken()
    if before is None or after is None:
        return {}
    growth = {"memory_per_session_bytes": (after.resident - before.resident) / FURTHER}
    if threads > 1:
        add(1)
        alone = _read_taken() or after
        together = (after.addresses - before.addresses) / FURTHER
        growth["addresses_per_thread_bytes"] = (together - (alone.addresses - after.addresses)) / (threads - 1)
    return growth


def _open_session(order: Order, inputs: Arrays, threads: int) -> Feed:
    of_threads = replace(order, session=replace(order.session, threads=threads))
    kind = find_engine_kind(of_threads)
    feed = kind.feed(kind.open_engine(of_threads, timer=PhaseTimer()), inputs)
    feed.run_first()
    return feed


def _read_taken() -> _Taken | None:
    memory.release_freed_memory()
    resident, addresses = memory.read_resident_bytes(), memory.read_address_space_bytes()
    return None if resident is None or addresses is None else _Taken(resident, addresses)
