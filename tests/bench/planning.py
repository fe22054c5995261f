"""What planning a large matrix takes of a processor: from the file's text to blocks. Prints one JSON line.

python -m tests.bench.planning [--repeat 5] [--against CHECKOUT]

`--against`: another checkout of the farm, which plans the same in turns with this one, each time in a process of its
own; each figure is the least of its processor times, and the ratios are the other's by this one's.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

RELEASES = ("1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1", "1.26.0", "1.29.0", "1.30.0", "1.31.1")
SEQUENCES = [{"sequence": size} for size in (32, 64, 128, 256, 512)]
# each with how many nodes it is planned for
MATRICES: dict[str, tuple[dict[str, object], int]] = {
    "2,000 cells, 20 nodes": (
        {
            "runtime": RELEASES,
            "batch": [1, 2, 4, 8, 16],
            "shapes": SEQUENCES,
            "precision": ["fp32", "int8-dynamic"],
            "threads": [1, 2, 4, 8],
        },
        20,
    ),
    "5,000 cells, 100 nodes": ({"runtime": RELEASES, "batch": list(range(1, 126)), "threads": [1, 2, 4, 8]}, 100),
    "5,000 batches, 1 node": ({"runtime": RELEASES[:5], "batch": list(range(1, 1001))}, 1),
    "1,000 points, 1,000 excludes": (
        {
            "runtime": RELEASES,
            "batch": list(range(1, 200)),
            "exclude": [{"runtime": RELEASES[n % 10], "batch": 1 + n // 10} for n in range(1000)],
        },
        1,
    ),
    "1,000 points, 1,000 includes": (
        {"runtime": RELEASES, "batch": list(range(1, 101)), "include": [{"threads": 1 + n % 64} for n in range(1000)]},
        1,
    ),
}
TARGET_S = 0.5


def main() -> int:
    """Exit status 1 when one of the matrices misses the target."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--against", type=Path)
    options.add_argument("--one", choices=MATRICES, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(planned(given.one)))
        return 0
    own = Path(__file__).parents[2]
    found = {name: figures(name, own, given.against, repeat=given.repeat) for name in MATRICES}
    about = {"benchmark": "planning", "repeat": given.repeat, "target_s": TARGET_S}
    print(json.dumps({**about, "python": platform.python_version(), "machine": platform.machine(), "matrices": found}))
    return int(any(figure["processor_s"] >= TARGET_S for figure in found.values()))


def figures(name: str, own: Path, other: Path | None, *, repeat: int) -> dict[str, float]:
    """Of one matrix: cells, blocks, processor time here and there."""
    checkouts = [own, *([other] if other else [])]
    answers: dict[Path, list[dict[str, float]]] = {checkout: [] for checkout in checkouts}
    for _ in range(repeat):
        for checkout in checkouts:
            answers[checkout].append(in_process(name, checkout))
    found = min(answers[own], key=lambda answer: answer["processor_s"])
    if other is not None:
        there = min(answer["processor_s"] for answer in answers[other])
        found |= {"against_s": there, "ratio": round(there / found["processor_s"], 2)}
    return found


def in_process(name: str, checkout: Path) -> dict[str, float]:
    """The answer of a process that has the farm of a checkout."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name]
    done = subprocess.run(
        command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, stdout=subprocess.PIPE
    )
    done.check_returncode()
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def planned(name: str) -> dict[str, float]:
    """The figures of one plan, the second of this process: the first also fills what is kept between plans."""
    # only here: the farm of whichever checkout
    from farm.rules.matrices import matrix
    from farm.rules.planning import planner
    from farm.rules.planning.plans import NodeOffer
    from farm.rules.runtimes.models import ModelFacts

    plain, count = MATRICES[name]
    text = json.dumps({"budget": "standard", "matrix": plain})
    model = ModelFacts(
        bundle_sha256="0" * 64, main_sha256="1" * 64, opsets={"": 17}, batch="batch", dims={"sequence": None}
    )
    fleet = [NodeOffer(id=str(number), tags=frozenset({"cpu", "x86"})) for number in range(count)]
    for _ in range(2):
        began = time.process_time()
        plan = planner.plan(matrix.parse(text), model, fleet)
        taken = time.process_time() - began
    comparisons = sum(len(block.comparisons) for block in plan.blocks)
    return {"cells": plan.cells, "blocks": len(plan.blocks), "comparisons": comparisons, "processor_s": round(taken, 4)}


if __name__ == "__main__":
    sys.exit(main())
