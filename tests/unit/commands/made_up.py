"""A workbench whose latencies follow from the cell, with noise from a seed: the same plans, judges and documents."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from farm.contract.cells import CellSpec
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.reasons import Reason
from farm.contract.reports import EndReport, Report
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan, PlannedBlock
from farm.rules.reporting import documents
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.releases import Known
from tests.unit.rules.making import (
    make_check,
    make_facts,
    make_model,
    make_operator,
    make_round,
    make_rounds,
    make_sample,
    make_trace,
)


@dataclass
class MadeUpBench:
    """`p50_ms`: of a cell. `checks`, `samples`: what differs in its check report and its launches. `cells`: in its cell
    of the document. `measured`: the versions of each measurement."""

    p50_ms: Callable[[CellSpec], float] = lambda spec: 1.0
    checks: Callable[[CellSpec], Mapping[str, Any]] = lambda spec: {}
    samples: Callable[[CellSpec], Mapping[str, Any]] = lambda spec: {}
    cells: Callable[[Cell], Mapping[str, Any]] = lambda cell: {}
    rounds: int = 8
    noise: float = 0.003
    releases: tuple[str, ...] = ()
    measured: list[list[str]] = field(default_factory=list)
    console: Console = field(default_factory=lambda: Console(quiet=True))
    clock: Callable[[], float] = time.monotonic
    name: str = "encoder"
    model: ModelFacts = field(default_factory=make_model)

    def plan(self, matrix: Matrix) -> Plan:
        return planner.plan(matrix, self.model, known=Known.model_validate({"releases": self.releases}))

    def measure(self, plan: Plan) -> Document:
        self.measured.append([arm.spec.runtime.version for block in plan.blocks for arm in block.arms])
        blocks = [BlockRecord(block, reports=self._reports(block), node="bench-1") for block in plan.blocks]
        document = documents.assemble(RunRecord(model=self.model, blocks=blocks, refused=plan.refused))
        cells = [cell.model_copy(update=dict(self.cells(cell))) for cell in document.cells]
        return document.model_copy(update={"cells": cells})

    def _reports(self, block: PlannedBlock) -> list[Report]:
        differing = {arm.arm: dict(self.checks(arm.spec)) for arm in block.arms}
        alive = [arm for arm in block.arms if not isinstance(differing[arm.arm].get("reason"), Reason)]
        reports: list[Report] = [make_facts(), *(make_check(number, **how) for number, how in differing.items())]
        medians = {arm.arm: self.p50_ms(arm.spec) for arm in alive}
        for trace_round in range(5):
            reports += [
                make_trace(number, [make_operator("norm", 1000.0 * p50)], trace_round=trace_round)
                for number, p50 in medians.items()
            ]
        rounds = self._rounds(block, medians) if medians else []
        return [*reports, *rounds, EndReport()]

    def _rounds(self, block: PlannedBlock, medians: Mapping[int, float]) -> list[Report]:
        count = min(self.rounds, block.max_rounds)
        made = make_rounds(count, medians, noise=self.noise, seed=len(self.measured))
        how = {arm.arm: dict(self.samples(arm.spec)) for arm in block.arms}
        if not any(how.values()):
            return made
        return [
            make_round(
                each.round, {place.arm: make_sample(place.sample.p50_ms, **how[place.arm]) for place in each.samples}
            )
            for each in made
        ]
