"""How long planning a 2,000-cell matrix takes: from the file's text to blocks. Prints one JSON line.

python -m tests.bench.planning [--repeat 5]
"""

import argparse
import json
import platform
import sys
import time
from statistics import median

from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import ModelFacts, NodeOffer

MATRIX = """
budget: standard
matrix:
  runtime: [1.20.1, 1.21.1, 1.22.1, 1.23.2, 1.24.4, 1.25.1, 1.26.0, 1.29.0, 1.30.0, 1.31.1]
  batch: [1, 2, 4, 8, 16]
  shapes: [{sequence: 32}, {sequence: 64}, {sequence: 128}, {sequence: 256}, {sequence: 512}]
  precision: [fp32, int8-dynamic]
  threads: [1, 2, 4, 8]
"""
TARGET_S = 1.0


def main() -> int:
    """Exit status 1 when the median misses the target."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeat", type=int, default=5)
    repeat = options.parse_args().repeat
    model = ModelFacts(
        bundle_sha256="0" * 64, main_sha256="1" * 64, opsets={"": 17}, batch="batch", dims={"sequence": None}
    )
    fleet = [NodeOffer(id=f"node-{number}", tags=frozenset({"cpu", "x86"})) for number in range(20)]
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        plan = planner.plan(matrix.parse(MATRIX), model, fleet)
        times.append(time.perf_counter() - began)
    taken = median(times)
    print(
        json.dumps(
            {
                "benchmark": "planning",
                "cells": plan.cells,
                "blocks": len(plan.blocks),
                "nodes": len(fleet),
                "comparisons": sum(len(block.comparisons) for block in plan.blocks),
                "median_s": round(taken, 4),
                "worst_s": round(max(times), 4),
                "repeat": repeat,
                "target_s": TARGET_S,
                "python": platform.python_version(),
                "machine": platform.machine(),
            }
        )
    )
    return 0 if taken < TARGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
