"""A gate from its matrix to its answer: measure, judge, and measure again what would fail it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.changes import gate as gates
from farm.rules.changes import gate_reports, watch_rounds
from farm.rules.changes.gate import GateAnswer
from farm.rules.findings.kinds import Check
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.subsets import narrowed
from farm.rules.planning.plans import PlannedBlock, RefusedPoint
from onnxfarm.subject import Subject


@dataclass(frozen=True)
class Given:
    """What is measured, and until when: `deadline` is of `time.monotonic`, None: no hurry."""

    subject: Subject
    deadline: float | None
    # of a block at most, on this machine, where somebody said how many; a farm's block has those of its budget
    rounds: int | None = None

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() > self.deadline


class Bench(Protocol):
    """Where a gate measures: this machine, or a farm."""

    def positions(self, matrix: Matrix) -> Mapping[str, Mapping[str, int]]:
        """Where each cell of the plan stands in the matrix, by the cell's name."""

    def measure(self, matrix: Matrix) -> Document:
        """The document of the matrix, measured."""


@dataclass(frozen=True)
class Outcome:
    """`infra`: why something could not be measured at all, which is neither a pass nor a failure."""

    answer: GateAnswer
    document: Document
    infra: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        return gate_reports.headline(self.answer)


@dataclass(frozen=True)
class Checks:
    """What fails a gate, and which metrics it looks at besides the headline."""

    fail_on: Sequence[Check]
    metrics: Sequence[str] = gates.USUAL

    def judge(self, document: Document, sides: tuple[Runtime, Runtime]) -> GateAnswer:
        """The document's answer."""
        old, new = map(str, sides)
        return gates.judge_gate(document, old=old, new=new, fail_on=self.fail_on, metrics=self.metrics)


def run_gate(bench: Bench, matrix: Matrix, *, sides: tuple[Runtime, Runtime], checks: Checks, confirm: bool) -> Outcome:
    """Measure and judge. With `confirm`, a noisy failure counts when a fresh block of its points shows it again."""
    document = bench.measure(matrix)
    answer = checks.judge(document, sides)
    infra = _infra(document)
    doubtful = gates.noisy_failures(answer)
    if confirm and doubtful and not infra:
        again = bench.measure(_narrow(bench, matrix, [one.candidate for one in doubtful], runtimes=sides))
        shown = checks.judge(again, sides)
        answer = gates.confirmed(answer, again=_same_points(shown, again, document))
        infra = _infra(again)
    return Outcome(answer, document, infra)


def positions_of(blocks: Iterable[PlannedBlock], refused: Iterable[RefusedPoint]) -> dict[str, Mapping[str, int]]:
    """Where each cell of a plan stands in its matrix."""
    measured: dict[str, Mapping[str, int]] = {arm.id: arm.positions for block in blocks for arm in block.arms}
    return measured | {point.id: point.positions for point in refused}


def _narrow(bench: Bench, matrix: Matrix, cells: Sequence[str], *, runtimes: tuple[Runtime, Runtime]) -> Matrix:
    """The points of these cells alone, the baseline first even where it is the later release."""
    known = bench.positions(matrix)
    found = narrowed(matrix, [known[cell] for cell in dict.fromkeys(cells)], runtimes=runtimes)
    return replace(found, axes={**found.axes, "runtime": runtimes})


def _same_points(shown: GateAnswer, again: Document, first: Document) -> set[tuple[str, str]]:
    """What the second document shows, under the cells' names in the first."""
    places = {cell.id: watch_rounds.place_of(cell) for cell in again.cells}
    names: dict[tuple[str, str], list[str]] = {}
    for cell in first.cells:
        names.setdefault(watch_rounds.place_of(cell), []).append(cell.id)
    return {(finding.what, name) for finding in shown.findings for name in names.get(places[finding.candidate], ())}


def _infra(document: Document) -> tuple[str, ...]:
    """Why cells could not be measured where the machine, not the model or its runtime, is to blame."""
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return tuple(dict.fromkeys(reason.text for reason in reasons if reason.code in watch_rounds.INFRA_CODES))
