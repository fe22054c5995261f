"""The document behind `onnxfarm sweep`."""

import time
from collections.abc import Sequence
from typing import Any

from farm.rules.matrices.matrix import Matrix
from farm.rules.searches import sweeps
from farm.rules.searches.search import carry_out
from onnxfarm.here.workbench import Bench, Machine
from onnxfarm.problems import Infrastructure

SCHEMA = "onnxfarm.sweep/1"


def swept(
    bench: Bench, matrix: Matrix, distribution: str, *, versions: Sequence[str], reference: str
) -> dict[str, Any]:
    """The document `onnxfarm.sweep/1`, its lines as farm.rules.searches.sweeps has them.

    Raises Infrastructure when no release could be measured.
    """
    began = time.monotonic()
    search = sweeps.Sweep(
        matrix, distribution, versions, reference, is_one_block=lambda part: len(bench.plan(part).blocks) <= 1
    )
    lines = carry_out(search, Machine(bench, sweeps.neighbours))
    if not any(point.p50_ms is not None for line in lines for point in line.points):
        reasons = [point.reason for line in lines for point in line.points if point.reason]
        raise Infrastructure(f"No release could be measured: {(reasons or ['nothing was planned.'])[-1]}")
    return {
        "schema": SCHEMA,
        "model": bench.name,
        "distribution": distribution,
        "reference": reference,
        "sentence": " ".join(line.sentence() for line in lines),
        "minutes": round((time.monotonic() - began) / 60.0, 2),
        "lines": [line.as_plain() for line in lines],
    }
