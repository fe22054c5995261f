"""`python -m tests.chaos.upgrade [--of COMMIT] [--blocks 200]`: a farm of real processes goes from it to this one.

Each new migration is applied while everything of the release before runs, and that release is tried on it: its pages
are read, a model is inspected, a run measured. Then process after process is switched behind the proxy, and half of
the nodes; the other half stays as it was. Runs are started all the while. Prints one JSON line and exits 1 on any block
that was lost or doubled, any run that could not be started, and any page that was not answered. Ends with 2, saying
so, where this machine lacks what it takes.
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.chaos.farm import patiently
from tests.chaos.releases import NEW_MIGRATIONS, NoReleaseError, Release, newest
from tests.chaos.rolling import RollingFarm
from tests.chaos.visitors import Program, Reader
from tests.postgres import NoPostgresError
from tests.processes import wait_for

MODELS: Final = Path(__file__).parents[1] / "models"
MODEL: Final = MODELS / "cnn_dyn.onnx"
TRIED: Final = ("encoder_dyn.onnx", "lstm.onnx", "cnn_fixed_b1.onnx")
FEED_S: Final = 0.6
PAUSE_S: Final = 3.0
# what is done while runs are started
MIGRATING, SWITCHING, OVER = "migrating", "switching", "over"


class Upgrade:
    """One farm on its way from a release to another."""

    def __init__(self, farm: RollingFarm, before: Release, *, blocks: int, drop: str = "") -> None:
        self.farm, self.before, self.here = farm, before, Release.here()
        self._drop = drop
        self._blocks, self._began = blocks, time.monotonic()
        self.link, token = farm.open(before)
        self.program = Program(farm.url, token)
        self.runs: list[int] = []
        self.migrations: list[str] = []
        self.switched: dict[str, float] = {}
        self.during: Counter[str] = Counter()
        self._phase = MIGRATING

    def go(self) -> Reader:
        """To the end of the last block; the reader of the pages, who has stopped."""
        self.farm.start(self.before)
        wait_for(self.program.is_answered, what="the pages", seconds=60)
        wait_for(self._all_nodes_work, what="the nodes", seconds=60)
        self.version = self.program.upload(MODEL)
        self._try_out()
        reader = Reader(self.farm.url, self.link)
        reader.start()
        feeder = threading.Thread(target=self._feed)
        feeder.start()
        time.sleep(PAUSE_S)
        self._migrate()
        self._phase = SWITCHING
        for name in [*self.farm.processes, *self.farm.agents[::2]]:
            self.switched[name] = round(self.farm.switch(name, self.here), 1)
            self.say(f"{name}: switched in {self.switched[name]} s")
            time.sleep(PAUSE_S)
        self._phase = OVER
        feeder.join()
        self.say(f"{self.program.started} runs are started")
        self._wait_for(self.runs)
        reader.stop()
        return reader

    @property
    def is_fed(self) -> bool:
        """Whether every run was started, some of them while processes were switched."""
        return len(self.runs) >= self._blocks and self.during[SWITCHING] > 0

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.0f} s  {text}", file=sys.stderr, flush=True)

    def _all_nodes_work(self) -> bool:
        nodes = self.program.nodes()
        return len(nodes) == len(self.farm.agents) and all(node["tags"] for node in nodes)

    def _feed(self) -> None:
        """Run after run, slower once half of them are started while migrations last: the others are for what comes."""
        while len(self.runs) < self._blocks or self._phase != OVER:
            phase = self._phase
            self.runs.append(self.program.start(self.version))
            self.during[phase] += 1
            is_ahead = phase == MIGRATING and len(self.runs) > self._blocks // 2
            time.sleep(PAUSE_S if is_ahead else FEED_S)

    def _migrate(self) -> None:
        """Each new migration under the feet of the release before, which is tried on it."""
        listed = self.here.run("-c", NEW_MIGRATIONS, environment=self.farm.environment)
        self.migrations = listed.splitlines()
        self.say(f"new migrations: {', '.join(self.migrations) or 'none'}")
        for line in self.migrations:
            self.here.run("manage.py", "migrate", *line.split(), environment=self.farm.environment)
            self._try_out()
            self.say(f"{line}: applied, and {self.before.name} works on it")
        if self._drop:
            table, _, column = self._drop.partition(".")
            order = f"ALTER TABLE {table} DROP COLUMN {column}"
            said = f"from django.db import connection; connection.cursor().execute({order!r})"
            self.here.run("manage.py", "shell", "-c", said, environment=self.farm.environment)
            self._try_out()

    def _try_out(self) -> None:
        """The smoke test: a model is inspected, a run measured and read."""
        number = len(self.runs)
        model = MODELS / TRIED[number % len(TRIED)]
        run = self.program.start(self.program.upload(model))
        self.runs.append(run)
        self._wait_for([run])

    def _wait_for(self, runs: list[int]) -> None:
        ended: set[int] = set()

        def all_ended() -> bool:
            ended.update(run for run in runs if run not in ended and self.program.has_ended(run))
            time.sleep(0.5)
            return len(ended) == len(runs)

        wait_for(all_ended, what=f"the end of {len(runs)} runs", seconds=60 + len(runs))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.upgrade", description=__doc__)
    parser.add_argument("--of", default=newest(), metavar="COMMIT", help="the release before; default: the newest tag")
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument(
        "--drop", default="", metavar="TABLE.COLUMN", help="break the rule for migrations, to see it fail"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder with its logs")
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="onnxfarm-upgrade-"))
    try:
        before = Release.unpacked(words.of, folder / "before")
        farm = RollingFarm(folder / "farm", agents=words.agents)
    except (NoReleaseError, NoPostgresError) as problem:
        print(problem, file=sys.stderr)
        return 2
    is_over = False
    try:
        upgrade = Upgrade(farm, before, blocks=words.blocks, drop=words.drop)
        counts = _told(upgrade, upgrade.go(), began=time.monotonic())
        is_over = not counts["problems"]
    finally:
        if not is_over:
            print(farm.last_words(), file=sys.stderr)
        farm.stop()
        if not words.keep:
            farm.remove()
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(counts))
    return int(not is_over)


def _told(upgrade: Upgrade, reader: Reader, *, began: float) -> dict[str, Any]:
    """What came of it, read from the rows by this release."""
    os.environ.update(upgrade.farm.environment)
    import django

    django.setup()
    from tests.chaos.ledger import audit

    found = patiently(audit)
    # a thread that could not start a run has ended with it
    few = [] if upgrade.is_fed else [f"too few runs were started: {dict(upgrade.during)}"]
    return {
        "before": upgrade.before.name,
        "migrations": upgrade.migrations,
        "switched_s": upgrade.switched,
        "agents": len(upgrade.farm.agents),
        "started_while": dict(upgrade.during),
        "pages": dict(reader.statuses),
        "slowest_page_s": round(reader.slowest_s, 2),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        **found,
        "problems": found["problems"] + few + reader.problems[:20],
    }


if __name__ == "__main__":
    sys.exit(main())
