"""Whether a command costs more than in another commit: both checkouts run it in turns.

python -m tests.bench.commands_beside CHECKOUT [--pairs 8] [--times 1] [--figure KEY.KEY] -- COMMAND…

`CHECKOUT`: the other commit, with its own `.venv`. A turn is the processor time of the command and all that it waited
for, run so many times with the checkout as folder and its `.venv/bin` first on PATH; with `--figure` it is a number
in the JSON that the command prints. Each pair gives a ratio, this commit's by the other's.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

from tests.bench.figure import publish
from tests.bench.pages_beside import OWN, T_95, interval


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, metavar="CHECKOUT")
    parser.add_argument("--pairs", type=int, default=8, choices=[count + 1 for count in T_95])
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--figure", metavar="KEY.KEY")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    words = parser.parse_args()
    turns: dict[Path, list[float]] = {words.other.resolve(): [], OWN: []}
    for number in range(words.pairs):
        for checkout in list(turns) if number % 2 else reversed(list(turns)):
            turns[checkout].append(turn(checkout, words))
        sys.stderr.write(f"pair {number + 1}: {[round(found[-1], 3) for found in turns.values()]}\n")
    other, own = turns.values()
    publish(
        claim=f"{' '.join(words.command)} beside another commit",
        seed=1,
        figures={
            "unit": words.figure or "seconds of processor time a turn",
            "other": round(mean(other), 3),
            "own": round(mean(own), 3),
            **interval([mine / theirs for mine, theirs in zip(own, other, strict=True)]),
        },
    )
    return 0


def turn(checkout: Path, words: argparse.Namespace) -> float:
    """What one turn of a checkout found. Raises CalledProcessError where the command fails."""
    began = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with tempfile.TemporaryDirectory(prefix="beside-") as home:
        environment = os.environ | {
            "ONNXFARM_HOME": home,
            "PATH": f"{checkout / '.venv/bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(checkout),
        }
        for _ in range(words.times):
            done = subprocess.run(words.command, cwd=checkout, env=environment, stdout=subprocess.PIPE, check=True)
    if not words.figure:
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - began
    found = json.loads(done.stdout)
    for key in words.figure.split("."):
        found = found[key]
    return float(found)


if __name__ == "__main__":
    sys.exit(main())
