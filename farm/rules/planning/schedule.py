"""Forecasts when queued blocks begin and end: each machine takes them one after another, in its own order."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queued:
    """A block that waits."""

    block: int
    # whether the farm itself queued it, so that it comes after all others where people come first
    of_farm: bool
    # how long its plan says that it is measured
    planned_s: float
    # the machines with a node that may take it
    devices: Collection[str]
    # how many times longer than planned it takes; None: as its machine
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, and when it is free."""

    device: str
    free_in_s: float = 0.0
    # how many times longer than planned it measures
    pace: float = 1.0
    people_first: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds from now at which a block begins and ends, and where."""

    begins_s: float
    ends_s: float
    device: str


def forecast_spans(queued: Sequence[Queued], machines: Sequence[Machine]) -> Mapping[int, Span]:
    """Return when and where each block is measured, by block number.

    `queued` is ordered by arrival. Blocks that no machine takes are left out.
    """
    waiting = list(queued)
    by_device = {machine.device: machine for machine in machines}
    free = [(max(0.0, machine.free_in_s), machine.device) for machine in machines]
    heapq.heapify(free)
    spans: dict[int, Span] = {}
    while free and waiting:
        now_s, device = heapq.heappop(free)
        machine = by_device[device]
        candidates = [block for block in waiting if device in block.devices]
        if not candidates:
            # the queue has nothing more for this machine
            continue
        of_people = [block for block in candidates if not block.of_farm] if machine.people_first else []
        block = (of_people or candidates)[0]
        waiting.remove(block)
        ends_s = now_s + (block.pace or machine.pace) * block.planned_s
        spans[block.block] = Span(now_s, ends_s, device)
        heapq.heappush(free, (ends_s, device))
    return spans
