"""How well a queued run knows when it will be measured, in a replay of recorded blocks.

    python -m tests.bench.queued_runs [--runs 200] [--seed 1] [--skip 8]

Nothing is measured: runs of one to three blocks arrive at random at two nodes on one machine, faster than it measures
them, with the farm's own searches between them. Each block takes what a real one took (`real_aa.jsonl`, in the order in
which they were recorded, over and over from a random place on). Rows, plans, claims and ends are the product's, on a
clock of their own. An estimate is what the product says as the run is submitted: seconds until all of it is measured.

The first eight blocks of the recording took five to twelve times as long as all later ones, on a machine that others
had to themselves for half an hour. `--skip 0` has them too, so that the pace changes tenfold every few minutes.
"""

import heapq
import itertools
import json
import logging
import os
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

import django

from farm.contract.cells import Budget
from farm.rules.planning import estimates
from tests.bench.figure import publish
from tests.options import read_options

RECORDED = Path(__file__).with_name("real_aa.jsonl")
HOST = "0123456789abcdef"
ARMS = 6
MAX_BLOCKS = 3
SEARCHES = 60
# blocks that were measured before, by which the machine's pace is known
BEFORE = 10
# how much more is asked of the machine than it measures: a queue grows
LOAD = 1.3
WITHIN = 1 / 3


class Recorded(NamedTuple):
    """A block: what its plan says and what it took."""

    planned_s: float
    took_s: float


class Estimate(NamedTuple):
    of_farm: bool
    said_s: float
    took_s: float

    @property
    def is_within(self) -> bool:
        return abs(self.said_s - self.took_s) <= WITHIN * self.took_s


def recorded(*, skip: int) -> list[Recorded]:
    """Blocks in the order in which they were measured."""
    found: dict[tuple[str, int], Recorded] = {}
    for line in RECORDED.read_text().splitlines():
        entry = json.loads(line)
        if entry.get("pairs") and "wall_s" in entry:
            p50_ms = median(value for pair in entry["pairs"] for value in pair)
            planned_s = ARMS * estimates.estimate_arm_s(Budget.QUICK, p50_ms)
            found.setdefault((entry["model"], entry["block"]), Recorded(planned_s, entry["wall_s"]))
    return list(found.values())[skip:]


class Replay:
    """One machine with two nodes, and a clock of its own."""

    def __init__(self, blocks: list[Recorded], *, seed: int) -> None:
        from farm.accounts.models import Team
        from farm.accounts.services import create_owner
        from tests.integration.runs import making

        self._making = making
        self._dice = random.Random(seed)
        self._began = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
        self.now_s = 0.0
        start = self._dice.randrange(len(blocks))
        self._durations: Iterator[Recorded] = itertools.cycle(blocks[start:] + blocks[:start])
        self._took: dict[int, float] = {}
        self._ends: list[tuple[float, int, Any]] = []
        self._owner = create_owner()
        team = Team.objects.get()
        self._nodes = [
            making.make_node(team, name=f"bench-{number}", owner=self._owner, host=HOST) for number in (1, 2)
        ]
        self._version = making.make_version(team)
        self.said: dict[int, tuple[bool, float, float]] = {}
        self.took: dict[int, float] = {}

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self.now_s)

    def submit(self, *, of_farm: bool) -> int:
        """A run as a person or the farm starts it, with what is said of its end."""
        from farm.runs.models import Block, Run
        from farm.runs.selectors.forecasts import Forecast
        from farm.runs.states import RunReason

        hardware = self._dice.choice(["node:bench-1", "node:bench-2", "cpu"])
        matrix = {"runtime": ["1.31.1"], "batch": [1], "hardware": [hardware]}
        run = self._making.make_run(self._version, self._owner, matrix=matrix)
        self._repeat_block(run, self._dice.randint(1, MAX_BLOCKS))
        reason = RunReason.WATCH if of_farm else RunReason.ASKED
        Run.objects.filter(pk=run.pk).update(reason=reason, created_at=self.now())
        for block in run.blocks.all():
            next_one = next(self._durations)
            self._took[block.pk] = next_one.took_s
            plan = {**block.plan_json, "minutes": next_one.planned_s / 60.0}
            Block.objects.filter(pk=block.pk).update(plan_json=plan)
        expected = Forecast().forecast_run(run.pk)
        assert expected is not None
        assert expected.ends_s is not None
        self.said[run.pk] = (of_farm, self.now_s, expected.ends_s)
        return run.pk

    def _repeat_block(self, run: Any, blocks: int) -> None:
        """A run of so many blocks alike: planning larger ones is no part of this."""
        from farm.runs.models import Arm, Block

        first, arms = run.blocks.get(), list(Arm.objects.filter(block__run=run))
        for number in range(2, blocks + 1):
            block = Block.objects.get(pk=first.pk)
            block.pk, block.number = None, number
            block.save()
            Arm.objects.bulk_create(
                Arm(block=block, cell=arm.cell, number=arm.number, name=f"{arm.name}-{number}", twin_of=arm.twin_of)
                for arm in arms
            )

    def advance(self, until_s: float | None = None) -> None:
        """Measures until that moment, or until nothing is left."""
        while True:
            self._claim()
            if not self._ends or (until_s is not None and self._ends[0][0] > until_s):
                break
            self.now_s, _, end = heapq.heappop(self._ends)
            self._end(*end)
        self.now_s = max(self.now_s, until_s or 0.0)

    def _claim(self) -> None:
        """A message of any queued block reaches any node first, as long as one of them has its turn."""
        from farm.runs.models import Attempt, Block
        from farm.runs.selectors import find_claimant
        from farm.runs.services import claim_block
        from farm.runs.states import BlockState

        queued = list(Block.objects.filter(state=BlockState.QUEUED).values_list("pk", "attempt"))
        self._dice.shuffle(queued)
        nodes = self._dice.sample(self._nodes, 2)
        for (block, attempt), node in itertools.product(queued, nodes):
            taker, _ = find_claimant(str(block), attempt, [node.pk])
            if taker is None:
                continue
            lease = claim_block(node=node, block_id=str(taker.block), attempt=taker.attempt)
            Attempt.objects.filter(block=taker.block).update(claimed_at=self.now())
            heapq.heappush(self._ends, (self.now_s + self._took[taker.block], taker.block, (node, lease)))
            return

    def _end(self, node: Any, lease: Any) -> None:
        from django.db import transaction

        from farm.contract.reports import EndReport
        from farm.runs.models import Attempt, Block
        from farm.runs.services.endings import finish_run_if_over
        from farm.runs.services.locks import lock_run
        from farm.runs.states import AttemptState, BlockState

        self._making.say(node, lease, EndReport(wall_s=self._took[int(lease.order.block)]))
        block = Block.objects.get(pk=lease.order.block)
        # what settling comes to for the queue
        Block.objects.filter(pk=block.pk).update(state=BlockState.DONE)
        Attempt.objects.filter(block=block).update(state=AttemptState.DONE)
        with transaction.atomic():
            if finish_run_if_over(lock_run(block.run_id)):
                self.took[block.run_id] = self.now_s - self.said[block.run_id][1]

    def estimates(self) -> list[Estimate]:
        return [Estimate(of_farm, said_s, self.took[run]) for run, (of_farm, _, said_s) in sorted(self.said.items())]


def arrivals(replay: Replay, blocks: list[Recorded], *, runs: int, dice: random.Random) -> Iterator[tuple[float, bool]]:
    """When runs come and whether the farm itself starts them."""
    each_s = 2 * median(block.took_s for block in blocks)
    kinds = [False] * runs + [True] * (SEARCHES * runs // 200)
    dice.shuffle(kinds)
    at_s = replay.now_s
    for of_farm in kinds:
        at_s += dice.expovariate(LOAD / each_s)
        yield at_s, of_farm


def main() -> None:
    options = read_options(__doc__, runs=200, seed=1, skip=8)
    blocks = recorded(skip=options.skip)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    logging.disable(logging.WARNING)
    make_tables()
    replay, dice = Replay(blocks, seed=options.seed), random.Random(options.seed)
    # the replay asks for every block by itself
    silent = mock.patch("farm.runs.services.hints.send_hint"), mock.patch("farm.runs.broker.notify_gateways")
    with mock.patch("django.utils.timezone.now", replay.now), silent[0], silent[1]:
        for _ in range(BEFORE):
            replay.submit(of_farm=False)
        replay.advance()
        replay.said.clear()
        for at_s, of_farm in list(arrivals(replay, blocks, runs=options.runs, dice=dice)):
            replay.advance(at_s)
            replay.submit(of_farm=of_farm)
        replay.advance()
    publish(
        claim="Nine of ten estimates made at submission are within a third.", seed=options.seed, figures=told(replay)
    )


def make_tables() -> None:
    """Those of today, without the history of how they came to be."""
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command

    settings.MIGRATION_MODULES = {app.label: None for app in apps.get_app_configs()}
    call_command("migrate", verbosity=0, run_syncdb=True)


def told(replay: Replay) -> dict[str, Any]:
    asked = [estimate for estimate in replay.estimates() if not estimate.of_farm]
    errors = sorted(abs(estimate.said_s - estimate.took_s) / estimate.took_s for estimate in asked)
    return {
        "runs": len(asked),
        "searches": len(replay.said) - len(asked),
        "within_a_third": round(sum(estimate.is_within for estimate in asked) / len(asked), 3),
        "relative_error": {f"p{share}": round(errors[len(errors) * share // 100], 3) for share in (50, 90, 99)},
        "minutes_until_measured": {
            f"p{share}": round(sorted(estimate.took_s for estimate in asked)[len(asked) * share // 100] / 60.0, 1)
            for share in (10, 50, 90)
        },
    }


if __name__ == "__main__":
    main()
