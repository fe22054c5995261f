"""When queued blocks begin and end: machines take them one after another, each the first in its order. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queued:
    """A block that waits, as its machines take it: `of_farm` ones after all others where people come first.

    `planned_s`: how long its plan says it is measured. `devices`: the machines with a node that may take it. `pace`:
    how many times longer than planned it takes, where more is known than its machine's.
    """

    block: int
    of_farm: bool
    planned_s: float
    devices: Collection[str]
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A device, the seconds until it is free, and how many times longer than planned it measures."""

    device: str
    free_in_s: float = 0.0
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
    known = {machine.device: machine for machine in machines}
    free = [(max(0.0, machine.free_in_s), machine.device) for machine in machines]
    heapq.heapify(free)
    spans: dict[int, Span] = {}
    while free and waiting:
        now_s, device = heapq.heappop(free)
        mine = [block for block in waiting if device in block.devices]
        if not mine:
            # nothing more comes for it
            continue
        asked = [block for block in mine if not block.of_farm] if known[device].people_first else mine
        first = (asked or mine)[0]
        waiting.remove(first)
        ends_s = now_s + (first.pace or known[device].pace) * first.planned_s
        spans[first.block] = Span(now_s, ends_s, device)
        heapq.heappush(free, (ends_s, device))
    return spans
