"""Ten thousand short cells over twenty simulated nodes: does the server grow, does a block get stuck?

`python -m tests.bench.soak --cells 10000 --nodes 20 [--database postgres]`. The server is real processes, the nodes are
tests.bench.light_nodes. Exit 1 when the server's memory grew by 5 % or more, or a block did not end as done.
"""

import argparse
import contextlib
import statistics
import sys
import time
from typing import Any

import psutil

from tests.bench.figure import publish
from tests.bench.fleet import Fleet, family, start_farm
from tests.chaos.farm import ChaosFarm

MOST_GROWTH = 0.05
# two runtimes at four batch sizes: a block of eight cells
MATRIX = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1, 2, 4, 8]}}
CELLS = 8
SAMPLE_EVERY_S = 2.0
# by then every code path has run, every cache is filled
WARM = 0.2
LAST = 0.1
STUCK_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--block-s", type=float, default=0.4, help="how long a block is measured")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    words = parser.parse_args()
    farm, codes = start_farm(nodes=words.nodes, is_postgres=words.database == "postgres")
    try:
        figures = _soak(farm, codes, words)
    finally:
        farm.stop()
        farm.remove()
    publish(claim=f"{words.cells} cells over {words.nodes} nodes, {words.database}", seed=0, figures=figures)
    return 0 if figures["kept"] else 1


def _soak(farm: ChaosFarm, codes: list[str], words: argparse.Namespace) -> dict[str, Any]:
    from django.db.models import Count

    from farm.runs.models import Block, Cell
    from farm.runs.states import ENDED_BLOCKS
    from tests.chaos.feeding import Feeder

    fleet = Fleet(port=farm.gateway_port, codes=codes, block_s=words.block_s)
    fleet.join()
    fleet.start()
    wanted = -(-words.cells // CELLS)
    feeder = Feeder(blocks=wanted, agents=words.nodes, matrix=MATRIX)
    feeder.wait_for_nodes()
    memory, began, progress_at, ended = _Memory(farm), time.monotonic(), time.monotonic(), 0
    while ended < wanted and time.monotonic() - progress_at < STUCK_S:
        still = Block.objects.exclude(state__in=ENDED_BLOCKS).count()
        for _ in range(min(2 * words.nodes - still, 8)):
            feeder.feed()
        now_ended = Block.objects.filter(state__in=ENDED_BLOCKS).count()
        if now_ended > ended:
            ended, progress_at = now_ended, time.monotonic()
        memory.look(ended / wanted)
        time.sleep(0.1)
    took_s = time.monotonic() - began
    fleet.stop()
    states = dict(Block.objects.values_list("state").annotate(Count("pk")))
    growth = memory.growth()
    return {
        "cells": Cell.objects.exclude(status="").count(),
        "blocks": states,
        "seconds": round(took_s, 1),
        "cells_per_s": round(words.cells / took_s, 1),
        **memory.figures(),
        "growth": round(growth, 4),
        "problems": fleet.problems[:10],
        "kept": growth < MOST_GROWTH and states == {"done": wanted} and not fleet.problems,
    }


class _Memory:
    """The server's own memory over the soak, by how much of it is done.

    Pages that several processes share are left out: they count for more as soon as another farm on this machine ends.
    """

    def __init__(self, farm: ChaosFarm) -> None:
        self._parts = {name: part.pid for name, part in farm.parts.items() if part.pid}
        self._looked_at = 0.0
        self._seen: list[tuple[float, dict[str, int]]] = []

    def look(self, share: float) -> None:
        if time.monotonic() - self._looked_at < SAMPLE_EVERY_S:
            return
        self._looked_at = time.monotonic()
        self._seen.append((share, {name: _own_bytes(pid) for name, pid in self._parts.items()}))

    def growth(self) -> float:
        """The median of the last tenth against that of the tenth after warming up, as a share."""
        return sum(self._late().values()) / sum(self._early().values()) - 1

    def figures(self) -> dict[str, Any]:
        reached = sorted({min(int(10 * share), 9) for share, _ in self._seen})
        tenths = [self._median(tenth / 10, (tenth + 1) / 10) for tenth in reached]
        return {
            "warm_mb": _mb(self._early()),
            "last_mb": _mb(self._late()),
            "mb_by_tenth": [round(sum(parts.values()) / 1e6, 1) for parts in tenths],
            "samples": len(self._seen),
        }

    def _early(self) -> dict[str, float]:
        return self._median(WARM, WARM + LAST)

    def _late(self) -> dict[str, float]:
        return self._median(1 - LAST, 1.0)

    def _median(self, low: float, high: float) -> dict[str, float]:
        chosen = [parts for share, parts in self._seen if low <= share <= high]
        return {name: statistics.median(parts[name] for parts in chosen) for name in chosen[0]}


def _own_bytes(pid: int) -> int:
    total = 0
    for process in family(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().uss
    return total


def _mb(parts: dict[str, float]) -> dict[str, float]:
    return {name: round(value / 1e6, 1) for name, value in parts.items()}


if __name__ == "__main__":
    sys.exit(main())
