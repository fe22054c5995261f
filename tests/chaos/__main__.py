"""`python -m tests.chaos --seed N --blocks 200 --faults kill,flush,…`: a farm of real processes under faults.

Prints one JSON line of counts and exits 1 on any block that was lost or doubled.
"""

import argparse
import json
import platform
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.chaos import namespace
from tests.chaos.clock import NoClockError
from tests.chaos.farm import LEASE_S, ChaosFarm, patiently
from tests.postgres import NoPostgresError

# no block has ended for so long after the last fault: something is lost
PATIENCE_S = 60.0
PAUSE_S = (0.3, 2.0)


def main() -> int:
    words = _words()
    try:
        if "disk-full" in words.faults:
            namespace.enter(sys.argv[1:])
        folder = Path(tempfile.mkdtemp(prefix="onnxfarm-chaos-"))
        farm = ChaosFarm(
            folder,
            agents=words.agents,
            is_postgres=words.database == "postgres",
            can_fill="disk-full" in words.faults,
            can_move_clock="clock" in words.faults,
        )
    except (namespace.NoNamespaceError, NoClockError, NoPostgresError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    try:
        counts = _torture(farm, words)
        if counts["problems"]:
            sys.stderr.write(farm.last_words() + "\n")
    finally:
        farm.stop()
        if not words.keep:
            farm.remove()
    print(json.dumps(counts))
    return 1 if counts["problems"] else 0


def _words() -> argparse.Namespace:
    from tests.chaos.faults import FAULTS

    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"of {', '.join(FAULTS)}; empty: none")
    parser.add_argument("--least-faults", type=int, default=20, help="so many faults strike, every kind as often")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--keep", action="store_true", help="keep the folder with its logs")
    words = parser.parse_args()
    words.faults = [fault for fault in words.faults.split(",") if fault]
    for fault in words.faults:
        if fault not in FAULTS:
            parser.error(f"{fault!r} is no fault: use {', '.join(FAULTS)}")
    return words


def _deck(words: argparse.Namespace, dice: random.Random) -> list[str]:
    """The faults to come: rounds of every kind, each round shuffled."""
    deck: list[str] = []
    while words.faults and len(deck) < words.least_faults:
        deck += dice.sample(words.faults, len(words.faults))
    return deck


def _torture(farm: ChaosFarm, words: argparse.Namespace) -> dict[str, Any]:
    codes = farm.prepare()
    # rows can be read from here on
    from tests.chaos.faults import FAULTS
    from tests.chaos.feeding import Feeder
    from tests.chaos.ledger import audit, open_blocks

    farm.start(codes)
    began, dice = time.monotonic(), random.Random(words.seed)
    feeder = Feeder(blocks=words.blocks, agents=words.agents)
    feeder.wait_for_nodes()
    struck: list[str] = []
    watch = _Watch(farm, feeder)
    watch.start()
    deck = _deck(words, dice)
    for number, name in enumerate(deck, start=1):
        feeder.feed_up_to(words.blocks * number // len(deck))
        time.sleep(dice.uniform(*PAUSE_S))
        struck.append(f"{time.monotonic() - began:.0f} s {name}: {FAULTS[name](farm, dice)}")
        print(struck[-1], file=sys.stderr)
    feeder.feed_up_to(words.blocks)
    settled_s = _settle(open_blocks)
    watch.stop()
    return {
        "seed": words.seed,
        "database": words.database,
        "faults": len(struck),
        "by_kind": {name: deck.count(name) for name in words.faults},
        "seconds": round(time.monotonic() - began, 1),
        "settled_s": round(settled_s, 1),
        "lease_s": LEASE_S,
        "agents": words.agents,
        "restarts": watch.restarts,
        "resumed": feeder.resumed,
        "proxied": farm.proxy.counts,
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        **patiently(audit),
    }


def _settle(open_blocks: Any) -> float:
    """No more faults: everything that is open has to end by itself; gives the seconds it took."""
    began = progress_at = time.monotonic()
    still = patiently(open_blocks)
    while still and time.monotonic() - progress_at < PATIENCE_S:
        time.sleep(0.5)
        now_open = patiently(open_blocks)
        if now_open < still:
            progress_at = time.monotonic()
        still = now_open
    settled_s = time.monotonic() - began
    time.sleep(2.0)
    return settled_s


class _Watch(threading.Thread):
    """What a service manager and an owner do: start what ended, resume what was put aside."""

    def __init__(self, farm: ChaosFarm, feeder: Any) -> None:
        super().__init__(daemon=True)
        self._farm, self._feeder = farm, feeder
        self._ended = threading.Event()
        self.restarts = 0

    def run(self) -> None:
        while not self._ended.wait(2.0):
            self.restarts += self._farm.restart_ended()
            self._feeder.resume_quarantined()

    def stop(self) -> None:
        self._ended.set()
        self.join(10)


if __name__ == "__main__":
    sys.exit(main())
