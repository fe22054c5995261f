"""Forecasts when queued blocks begin and end: each machine takes them one after another, in its own order."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queued:
    """A queued block."""

    # its number, which the caller chooses
    block: int
    # whether the farm itself queued it: it then waits for all other blocks on machines with `people_first`
    of_farm: bool
    planned_s: float
    # the machines with a node that may take it
    devices: Collection[str]
    # the ratio of its time to the planned time; None stands for that of its machine
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, and the seconds until it is free."""

    device: str
    free_in_s: float = 0.0
    # the ratio of its times to the planned times
    pace: float = 1.0
    # whether blocks that people asked for come before those of the farm itself
    people_first: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """When a block begins and ends, in seconds from now, and on which device."""

    begins_s: float
    ends_s: float
    device: str


def forecast_spans(queued: Sequence[Queued], machines: Sequence[Machine]) -> Mapping[int, Span]:
    """Forecast when and where each block is measured, by its number; blocks that no machine takes are left out.

    `queued` is ordered by arrival.
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
