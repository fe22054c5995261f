"""The measuring behind `onnxfarm sweep`: blocks of neighbouring releases, the reference in each.

Neighbouring blocks share a release, so that every two neighbours stand in one block somewhere.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, cast

from farm.contract.blocks import MAX_ARMS
from farm.contract.cells import Runtime
from farm.rules.changes.sweeps import lines_of
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.plans import Plan, PlannedBlock
from onnxfarm.here import workbench
from onnxfarm.here.workbench import Bench
from onnxfarm.problems import Infrastructure

SCHEMA = "onnxfarm.sweep/1"
# with the reference beside them
MOST_TOGETHER = MAX_ARMS - 1
FEWEST_TOGETHER = 2


@dataclass(frozen=True)
class Runtimes:
    """Releases in order, and the one that stands in every block."""

    distribution: str
    versions: tuple[str, ...]
    reference: str

    def beside_reference(self, versions: Sequence[str]) -> tuple[Runtime, ...]:
        """These releases with the reference first."""
        names = dict.fromkeys([self.reference, *versions])
        return tuple(Runtime(distribution=self.distribution, version=name) for name in names)


class Point(TypedDict):
    version: str
    ratio: float | None
    low: float | None
    high: float | None
    p50_ms: float | None
    verdict: str
    reason: str


class Turn(TypedDict):
    before: str
    after: str
    verdict: str
    ratio: float
    low: float
    high: float
    is_paired: bool
    explanation: str


class Line(TypedDict):
    """A line of farm.rules.changes.sweeps as plain values."""

    series: str
    label: str
    provider: str
    distribution: str
    reference: str
    sentence: str
    points: list[Point]
    turns: list[Turn]


class Sweep(TypedDict):
    """The document `onnxfarm.sweep/1`."""

    schema: str
    model: str
    distribution: str
    reference: str
    sentence: str
    minutes: float
    lines: list[Line]


def swept(bench: Bench, matrix: Matrix, runtimes: Runtimes) -> Sweep:
    """Every line as plain values. Raises Infrastructure when no release could be measured."""
    began = time.monotonic()
    documents = []
    for point in _single_points(matrix):
        parts = _parts(bench, point, runtimes)
        for number, (versions, plan) in enumerate(parts, start=1):
            said = f"part {number} of {len(parts)}: {versions[0]} to {versions[-1]} beside {runtimes.reference}"
            bench.console.print(said, highlight=False, markup=False)
            documents.append(bench.measure(plan))
    lines = lines_of(documents, reference=runtimes.reference)
    if not any(point.p50_ms is not None for line in lines for point in line.points):
        reasons = [point.reason for line in lines for point in line.points if point.reason]
        raise Infrastructure(f"No release could be measured: {(reasons or ['nothing was planned.'])[-1]}")
    return {
        "schema": SCHEMA,
        "model": bench.name,
        "distribution": runtimes.distribution,
        "reference": runtimes.reference,
        "sentence": " ".join(line.sentence() for line in lines),
        "minutes": round((time.monotonic() - began) / 60.0, 2),
        "lines": [cast(Line, line.as_plain()) for line in lines],
    }


def _single_points(matrix: Matrix) -> list[Matrix]:
    """A matrix for each combination of the other axes, because each is a line of its own."""
    found = [matrix]
    for axis, values in matrix.axes.items():
        found = [replace(one, axes={**one.axes, axis: (value,)}) for one in found for value in values]
    return found


def _parts(bench: Bench, matrix: Matrix, runtimes: Runtimes) -> list[tuple[list[str], Plan]]:
    """Releases and plan of each block, as large as the planner lets one be."""
    for together in range(MOST_TOGETHER, FEWEST_TOGETHER - 1, -1):
        chunks = _overlapping(runtimes.versions, together)
        plans = [_plan(bench, matrix, runtimes.beside_reference(chunk)) for chunk in chunks]
        if together == FEWEST_TOGETHER or all(len(plan.blocks) <= 1 for plan in plans):
            return list(zip(chunks, plans, strict=True))
    raise AssertionError("unreachable: the smallest part is always taken")


def _plan(bench: Bench, matrix: Matrix, runtimes: Sequence[Runtime]) -> Plan:
    plan = bench.plan(replace(matrix, axes={**matrix.axes, "runtime": tuple(runtimes)}))
    return workbench.reshaped(plan, _neighbours)


def _neighbours(block: PlannedBlock) -> PlannedBlock:
    """The block with the comparisons that a line needs: with the reference, and of neighbours."""
    places: Mapping[int, int] = {arm.arm: arm.positions["runtime"] for arm in block.arms}
    kept = tuple(
        one
        for one in block.comparisons
        if one.axis == "runtime" and (places[one.baseline] == 0 or places[one.candidate] - places[one.baseline] == 1)
    )
    return block.model_copy(update={"comparisons": kept})


def _overlapping(versions: Sequence[str], together: int) -> list[list[str]]:
    """Runs of so many releases, each beginning with the last of the one before."""
    if len(versions) <= together:
        return [list(versions)]
    steps = range(0, len(versions) - 1, together - 1)
    return [list(versions[start : start + together]) for start in steps]
