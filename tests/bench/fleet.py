"""How much a farm's server costs with a thousand nodes: idle, and while some of them work.

`python -m tests.bench.fleet --nodes 1000 --working 50 --seconds 60 [--gateways 2] [--database postgres]`. The server
(gateways, tick, broker, and PostgreSQL where it is one) are real processes; the nodes are tests.bench.light_nodes here.
Blocks begin evenly, as many in each second as end; claims and dispatch count from the moment that all of `--working`
work; `--working 0` looks at idle nodes alone. Exit 1 when a promise is not kept: idle under one core and 600 MB, claims
under 50 ms, dispatch under 1 s at p95; of other numbers of nodes than a thousand the memory is no promise.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from tests.bench.figure import publish
from tests.bench.light_nodes import Broken, LightNode, Tally
from tests.chaos.farm import ChaosFarm

MOST_CORES, MOST_BYTES = 1.0, 600e6
MOST_CLAIM_S, MOST_DISPATCH_S = 0.05, 1.0
JOINING_AT_ONCE = 8
# blocks queued or measured at once, against those that are to be measured
MOST_OPEN = 1.2


class Server:
    """The server's processes and what they use."""

    def __init__(self, farm: ChaosFarm) -> None:
        self._farm = farm

    def use(self) -> dict[str, tuple[float, int]]:
        """CPU seconds so far, and bytes of memory (PSS: shared pages are counted once), by part."""
        return {name: _use_of(part.pid) for name, part in self._farm.parts.items() if part.pid}

    def over(self, seconds: float) -> dict[str, Any]:
        """What is used within the next seconds; call in a thread."""
        before, began = self.use(), time.monotonic()
        time.sleep(seconds)
        after, took_s = self.use(), time.monotonic() - began
        cores = {name: (after[name][0] - before[name][0]) / took_s for name in after}
        return {
            "seconds": round(took_s, 1),
            "cores": round(sum(cores.values()), 3),
            "cores_by_part": {name: round(value, 3) for name, value in cores.items()},
            "mb": round(sum(use[1] for use in after.values()) / 1e6, 1),
            "mb_by_part": {name: round(use[1] / 1e6, 1) for name, use in after.items()},
        }


def family(pid: int) -> list[psutil.Process]:
    """A process and those below it."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def _use_of(pid: int) -> tuple[float, int]:
    cpu_s, memory = 0.0, 0
    for process in family(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            # and of those that have ended: PostgreSQL has a process for each connection
            cpu_s += times.user + times.system + times.children_user + times.children_system
            memory += process.memory_full_info().pss
    return cpu_s, memory


class Fleet:
    """Light nodes on an event loop in a thread of its own."""

    def __init__(self, *, port: int, codes: list[str], block_s: float) -> None:
        self.tally = Tally()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._nodes = [
            LightNode(number, port=port, code=code, tally=self.tally, block_s=block_s)
            for number, code in enumerate(codes)
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._stop: asyncio.Event | None = None
        self.problems: list[str] = []

    def join(self) -> float:
        """All nodes enrol, sign for their secret and say hello; gives the seconds it took."""
        began = time.monotonic()
        asyncio.run_coroutine_threadsafe(self._join(), self._loop).result()
        return time.monotonic() - began

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _join(self) -> None:
        gate = asyncio.Semaphore(JOINING_AT_ONCE)

        async def join(node: LightNode) -> None:
            async with gate:
                await node.join()

        await asyncio.gather(*(join(node) for node in self._nodes))

    async def _start(self) -> None:
        self._stop = asyncio.Event()
        self._tasks = [asyncio.create_task(self._live(node)) for node in self._nodes]

    async def _live(self, node: LightNode) -> None:
        assert self._stop is not None
        while not self._stop.is_set():
            try:
                await node.live(self._stop)
            except Broken as problem:
                self.problems.append(str(problem))
                await asyncio.sleep(1.0)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for node in self._nodes:
            node.hang_up()


def start_farm(*, nodes: int, is_postgres: bool, gateways: int = 1) -> tuple[ChaosFarm, list[str]]:
    """A farm without agents, and a code for each light node. Rows can be read from here on."""
    folder = Path(tempfile.mkdtemp(prefix="onnxfarm-fleet-"))
    farm = ChaosFarm(folder, agents=0, is_postgres=is_postgres, lease_s=30.0, tick_s=1.0, gateways=gateways)
    farm.prepare()
    farm.start([])
    from farm.accounts.models import Team, User
    from farm.fleet.services import enrolment, invite

    team, owner = Team.objects.get(), User.objects.get()
    with mock.patch.object(enrolment, "MAX_CODES_OF_ADMIN", nodes + 1):  # no admin makes so many at once but this one
        codes = [invite(team=team, by=owner, auto_approve=True)[1] for _ in range(nodes)]
    wait_for(lambda: _answers(farm.gateway_port), seconds=60)
    return farm, codes


def _answers(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(is_true: Callable[[], bool], *, seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > limit:
            raise SystemExit(f"it did not come within {seconds:.0f} s")
        time.sleep(0.1)


def p95_ms(seconds: list[float]) -> float | None:
    """The 95th percentile, in milliseconds."""
    return round(1000 * statistics.quantiles(seconds, n=20, method="inclusive")[-1], 2) if len(seconds) > 1 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--working", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--block-s", type=float, default=30.0, help="how long a block is measured")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--gateways", type=int, default=2, help="gateway processes, as deploy/process starts them")
    words = parser.parse_args()
    is_postgres = words.database == "postgres"
    farm, codes = start_farm(nodes=words.nodes, is_postgres=is_postgres, gateways=words.gateways)
    try:
        figures = _measure(farm, codes, words)
    finally:
        farm.stop()
        farm.remove()
    publish(
        claim=f"{words.nodes} nodes on one server with {words.gateways} gateways, {words.database}",
        seed=0,
        figures=figures,
    )
    return 0 if figures["kept"] else 1


def _measure(farm: ChaosFarm, codes: list[str], words: argparse.Namespace) -> dict[str, Any]:
    server, fleet = Server(farm), Fleet(port=farm.gateway_port, codes=codes, block_s=words.block_s)
    joined_s = fleet.join()
    fleet.start()
    time.sleep(30.0)  # every node polls for the second time
    mine = psutil.Process(os.getpid())
    client = sum(mine.cpu_times()[:2])
    idle = server.over(words.seconds)
    client_cores = (sum(mine.cpu_times()[:2]) - client) / words.seconds
    kept = {"idle under one core": idle["cores"] < MOST_CORES, "idle under 600 MB": idle["mb"] < MOST_BYTES / 1e6}
    figures = {"joined_s": round(joined_s, 1), "idle": idle, "idle_client_cores": round(client_cores, 3)}
    if words.working:
        figures |= _worked(*_work(server, fleet, words), fleet, words, kept)
    fleet.stop()
    return figures | {
        "answers": dict(sorted(fleet.tally.statuses.items())),
        "problems": fleet.problems[:10],
        "promises": kept,
        "kept": all(kept.values()) and not fleet.problems,
    }


def _worked(
    busy: dict[str, Any],
    claims: list[float],
    dispatch_s: list[float],
    fleet: Fleet,
    words: argparse.Namespace,
    kept: dict[str, bool],
) -> dict[str, Any]:
    """The figures of the work; what it keeps of the promises is added to `kept`."""
    kept |= {
        "working under 600 MB": busy["mb"] < MOST_BYTES / 1e6,
        "claim p95 under 50 ms": (p95_ms(claims) or 1e9) < MOST_CLAIM_S * 1000,
        "dispatch p95 under 1 s": (p95_ms(dispatch_s) or 1e9) < MOST_DISPATCH_S * 1000,
        "as many worked as asked": fleet.tally.most_working >= words.working,
    }

    def told(seconds: list[float]) -> dict[str, Any]:
        return {"n": len(seconds), "p50": round(1000 * statistics.median(seconds), 1), "p95": p95_ms(seconds)}

    return {
        "working": {"blocks_done": fleet.tally.done, "most_at_once": fleet.tally.most_working, **busy},
        "claim_ms": told(claims),
        "dispatch_ms": told(dispatch_s),
    }


def _work(server: Server, fleet: Fleet, words: argparse.Namespace) -> tuple[dict[str, Any], list[float], list[float]]:
    """Keeps `working` nodes busy. Gives what the server used, seconds of claims, and seconds from queued to leased."""
    from django.utils import timezone

    from farm.runs.models import Block
    from farm.runs.states import BlockState
    from tests.chaos.feeding import Feeder

    feeder = Feeder(blocks=10**6, agents=words.nodes)
    feeder.wait_for_nodes()
    open_states = (BlockState.WAITING, BlockState.QUEUED, BlockState.LEASED)
    ended = threading.Event()

    def feed() -> None:
        # a node's share of the time that a block takes, so that blocks neither begin nor end together
        due, share_s = time.monotonic(), words.block_s / words.working
        while not ended.wait(max(0.0, due - time.monotonic())):
            due += share_s  # from when it was due: what feeding takes does not make it slower
            if Block.objects.filter(state__in=open_states).count() < MOST_OPEN * words.working:
                feeder.feed()

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        wait_for(lambda: fleet.tally.working >= words.working, seconds=10 * words.block_s)
        began, earlier = timezone.now(), len(fleet.tally.claim_s)
        busy = server.over(words.seconds)
        claims, over = fleet.tally.claim_s[earlier:], timezone.now()
    finally:
        ended.set()
        thread.join()
    wait_for(lambda: not Block.objects.filter(state__in=open_states).exists(), seconds=120)
    leased = Block.objects.filter(leased_at__range=(began, over)).values_list("queued_at", "leased_at")
    return busy, claims, [(leased_at - queued_at).total_seconds() for queued_at, leased_at in leased]


if __name__ == "__main__":
    sys.exit(main())
