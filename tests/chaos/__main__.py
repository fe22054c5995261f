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

from tests.chaos.farm import LEASE_S, ChaosFarm, last_words

# a run that has not ended so long after its last fault has lost something
PATIENCE_S = 120.0
PAUSE_S = (0.5, 3.0)


def main() -> None:
    words = _words()
    folder = Path(tempfile.mkdtemp(prefix="onnxfarm-chaos-"))
    farm = ChaosFarm(folder, agents=words.agents, database_url=words.database_url)
    try:
        counts = _torture(farm, words)
        if counts["problems"]:
            sys.stderr.write(last_words(folder) + "\n")
    finally:
        farm.stop()
        if not words.keep:
            farm.remove()
    print(json.dumps(counts))
    sys.exit(1 if counts["problems"] else 0)


def _words() -> argparse.Namespace:
    from tests.chaos.faults import FAULTS

    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"of {', '.join(FAULTS)}")
    parser.add_argument("--least-faults", type=int, default=20, help="blocks are fed until so many faults have struck")
    parser.add_argument("--database-url", default="", help="postgresql://…; default: SQLite")
    parser.add_argument("--keep", action="store_true", help="keep the folder with its logs")
    words = parser.parse_args()
    words.faults = [fault for fault in words.faults.split(",") if fault]
    for fault in words.faults:
        if fault not in FAULTS:
            parser.error(f"{fault!r} is no fault: use {', '.join(FAULTS)}")
    return words


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
    while feeder.fed < words.blocks or open_blocks() or len(struck) < words.least_faults:
        if words.faults and (open_blocks() or feeder.fed < words.blocks):
            name = dice.choice(words.faults)
            struck.append(f"{name}: {FAULTS[name](farm, dice)}")
        elif len(struck) >= words.least_faults or not words.faults:
            break
        feeder.feed_up_to(words.blocks * (len(struck) + 1) // max(1, words.least_faults))
        time.sleep(dice.uniform(*PAUSE_S))
    feeder.feed_up_to(words.blocks)
    _settle(open_blocks)
    watch.stop()
    return {
        "seed": words.seed,
        "database": "postgresql" if words.database_url else "sqlite",
        "faults": len(struck),
        "struck": struck,
        "seconds": round(time.monotonic() - began, 1),
        "lease_s": LEASE_S,
        "agents": words.agents,
        "restarts": watch.restarts,
        "resumed": feeder.resumed,
        "proxied": farm.proxy.counts,
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        **audit(),
    }


def _settle(open_blocks: Any) -> None:
    """No more faults: everything that is open has to end by itself."""
    limit = time.monotonic() + PATIENCE_S
    while open_blocks() and time.monotonic() < limit:
        time.sleep(0.2)
    time.sleep(2.0)


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
    main()
