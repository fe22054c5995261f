"""Containers that are killed while the farm measures, and what the rows say afterwards."""

import json
import random
import threading
import time
from types import TracebackType
from typing import Any, Final, Self

from tests.acceptance.containers.stack import DOUBLED, PROJECT, Stack

# from a kill to the next, so many times as long as a page takes to be asked for: on a busy machine all takes longer
TURNS: Final = (6.0, 14.0)
AWAY_S: Final = (0.0, 4.0)
# `bucket` keeps its files in its memory: moto's server, which no farm should have
KILLED: Final = (
    *(f"{service}_{number}" for service in DOUBLED for number in (1, 2)),
    *("ticks_1", "broker_1", "database_1", "proxy_1"),
)
# each block, as tests/chaos/ledger.py reads it: ended once, by one attempt that is done
LEDGER: Final = """
import json
from collections import Counter
from farm.runs.models import Block, Event, Run
attempts, problems, blocks = Counter(), [], list(Block.objects.all())
for block in blocks:
    made = [str(one.state) for one in block.attempts.all()]
    attempts.update(made)
    ended = Event.objects.filter(block=block, kind__in=("block_done", "block_failed", "block_cancelled")).count()
    if (block.state, made.count("done"), ended) != ("done", 1, 1):
        problems.append(f"block {block.pk} is {block.state} by {made}, and ended {ended} times")
problems += [f"run {run.pk} is {run.state}" for run in Run.objects.exclude(state="finished")]
counts = {"runs": Run.objects.count(), "blocks": len(blocks), "attempts": attempts, "problems": problems}
print("LEDGER", json.dumps(counts))
"""


class Kills:
    """`with Kills(stack, seed=1):` a container is killed every few seconds, and started again."""

    def __init__(self, stack: Stack, *, seed: int) -> None:
        self._stack, self._dice = stack, random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self.killed: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        names = ", ".join(name.removeprefix(PROJECT).strip("_-") for name in self.killed)
        self._stack.say(f"killed {len(self.killed)}: {names}")

    def _go_on(self) -> None:
        # one node, once: a block that loses its node three times has failed, as it should
        deck = [f"{PROJECT}_{name}" for name in KILLED]
        self._dice.shuffle(deck)
        deck.insert(2, self._stack.nodes[0])
        for name in deck * 20:
            began = time.monotonic()
            self._stack.asked("/sign-in/")
            if self._over.wait((time.monotonic() - began) * self._dice.uniform(*TURNS)):
                return
            if name in self._stack.nodes and name in self.killed:
                continue
            self.killed.append(name)
            self._stack.podman("kill", "--signal", "KILL", name)
            self._over.wait(self._dice.uniform(*AWAY_S))
            self._stack.podman("start", name)


def ledger(stack: Stack) -> dict[str, Any]:
    """What the rows say of every block; `problems` is empty where nothing was lost or doubled."""
    said = stack.inside("web", "python", "manage.py", "shell", "-c", LEDGER)
    [line] = [line for line in said.splitlines() if line.startswith("LEDGER ")]
    found: dict[str, Any] = json.loads(line.removeprefix("LEDGER "))
    return found
