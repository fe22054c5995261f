"""Whether pages stay fast while measurements come in: the same pages before and meanwhile, on a large farm.

`python -m tests.bench.intake FOLDER [--rate 116] [--seconds 600] [--gateways 2] [--only NAME…]`, with a farm on
PostgreSQL that `tests.bench.pages --postgres --keep FOLDER` seeded. The farm's processes, as many as it has gateways,
share the rate: runs of fourteen cells and their twins begin evenly, their node's messages answered as a gateway answers
them, each run concluded when it ends; a measurement is one launch of one arm. This process asks for pages, one after
the other, as tests.bench.pages does. Exit 1 when a page's median grew by more than half, or fewer measurements came in
than asked.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.block_cost import Costs, Machine, secret_of_node
from tests.bench.figure import publish
from tests.bench.pages import Reader, pages_of
from tests.bench.seeded import farm
from tests.bench.seeded.growth import kept_cluster
from tests.postgres import SKIPPED, NoPostgresError

MATRIX = {
    "budget": "quick",
    "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1, 2, 4, 8, 16, 32, 64], "threads": [1]},
}
PAGES = ("home", "models", "runs", "alerts", "watches", "fleet", "the largest run", "the longest series", "compare")
MOST_SLOWER = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, default=116.0, help="measurements a second")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=PAGES, metavar="NAME")
    parser.add_argument("--feed", metavar="URL", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.feed:
        return _feed(words)
    try:
        with kept_cluster(words.folder) as cluster:
            figures = _measured(cluster.url, words)
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED
    publish(claim=f"pages while {words.rate:g} measurements a second come in", seed=1, figures=figures)
    return 0 if figures["kept"] else 1


def _measured(url: str, words: argparse.Namespace) -> dict[str, Any]:
    farm.use(words.folder, database_url=url)
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    seeded = json.loads((words.folder / "seeded.json").read_text())
    reader = Reader(seeded["reader"])
    pages = [page for page in pages_of(seeded) if page.name in words.only]
    before = _asked(reader, pages, seconds=min(60.0, words.seconds / 3))
    command = [sys.executable, "-m", "tests.bench.intake", str(words.folder), "--feed", url]
    command += ["--rate", str(words.rate / words.gateways), "--seconds", str(words.seconds)]
    with contextlib.ExitStack() as stack:
        feeders = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for _ in range(words.gateways)
        ]
        for feeder in feeders:
            assert feeder.stdout is not None
            # it says so once its first block is over
            feeder.stdout.readline()
        meanwhile = _asked(reader, pages, seconds=words.seconds)
        parts = [json.loads(feeder.communicate()[0].splitlines()[-1]) for feeder in feeders]
    connections.close_all()
    taken_in = {
        name: round(sum(part[name] for part in parts), 3) for name in ("measurements", "a_second", "runs", "cores")
    }
    found: dict[str, dict[str, Any]] = {}
    for name, times in meanwhile.items():
        slower = statistics.median(times) / statistics.median(before[name])
        found[name] = {"before_ms": _told(before[name]), "meanwhile_ms": _told(times), "times": round(slower, 2)}
    is_kept = all(one["times"] <= MOST_SLOWER for one in found.values()) and taken_in["a_second"] >= 0.98 * words.rate
    return {"taken_in": taken_in, "by_gateway": parts, "pages": found, "kept": is_kept}


def _asked(reader: Reader, pages: list[Any], *, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each page, asked for in turn for so long; the first round does not count."""
    for page in pages:
        for address in page.addresses:
            reader.timed(address)
    times: dict[str, list[float]] = {page.name: [] for page in pages}
    began, place = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        for page in pages:
            times[page.name].append(reader.timed(page.addresses[place % len(page.addresses)])[0])
        place += 1
    return times


def _told(times: list[float]) -> dict[str, float]:
    p95 = statistics.quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    return {"n": len(times), "p50": round(statistics.median(times), 1), "p95": round(p95, 1)}


def _feed(words: argparse.Namespace) -> int:
    """One of the farm's processes: measures blocks at the rate, and says what came in."""
    farm.use(words.folder, database_url=words.feed)
    from unittest import mock

    from django.db import connections
    from django.test.utils import override_settings

    from farm.runs.services import hints

    with mock.patch.object(hints, "send_hint", return_value=True), override_settings(ALLOWED_HOSTS=["*"]):
        print(json.dumps(_fed(words)))
    connections.close_all()
    return 0


def _fed(words: argparse.Namespace) -> dict[str, Any]:
    from farm.registry.models import Version
    from farm.runs.models import Arm, Block
    from farm.runs.services import conclude_runs, release_ready_blocks, start_run
    from tests.integration.dashboard.rows import make_node
    from tests.integration.runs.making import prepare_all

    version = Version.objects.select_related("model__team").get(model__name="pattern")
    owner = version.uploaded_by
    assert owner is not None
    node = make_node(version.model.team, owner, name=f"bench-intake-{int(time.time())}-{os.getpid()}")
    costs = Costs(None)
    machine = Machine(secret_of_node(node), costs, random.Random(1))

    def one() -> int:
        run = start_run(version=version, matrix=MATRIX, requested_by=owner)
        if run.blocks.filter(state="waiting").exists():
            prepare_all(version.model.team)
            release_ready_blocks(run=run)
        launches = 0
        for block in Block.objects.filter(run=run):
            machine.measure(block.pk, block.attempt)
            rounds = Block.objects.get(pk=block.pk).rounds
            launches += rounds * Arm.objects.filter(block=block).count()
        conclude_runs()
        return launches

    launches = one()
    print("begun", flush=True)
    used, began, count, blocks = time.process_time(), time.monotonic(), 0, 0
    while time.monotonic() < began + words.seconds:
        # by what came in so far, so that a slow run is made up for
        wait_s = began + count / words.rate - time.monotonic()
        if wait_s > 0:
            time.sleep(min(wait_s, 1.0))
            continue
        count += one()
        blocks += 1
    took_s = time.monotonic() - began
    return {
        "measurements": count,
        "a_second": round(count / took_s, 1),
        "of_a_run": launches,
        "runs": blocks,
        "seconds": round(took_s, 1),
        "cores": round((time.process_time() - used) / took_s, 3),
    }


if __name__ == "__main__":
    sys.exit(main())
