"""A workbench whose latencies follow from the cell, with noise from a seed: the same plans, judges and documents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from farm.contract.cells import CellSpec
from farm.contract.document import Document
from farm.contract.reasons import Reason
from farm.contract.reports import EndReport, Report
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import Plan, PlannedBlock
from farm.rules.reporting import documents
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.releases import Known
from tests.unit.rules.making import make_check, make_facts, make_model, make_operator, make_rounds, make_trace


@dataclass
class MadeUpBench:
    """`p50_ms`: of a cell. `checks`: what differs in its check report. `measured`: the versions of each measurement."""

    p50_ms: Callable[[CellSpec], float] = lambda spec: 1.0
    checks: Callable[[CellSpec], Mapping[str, Any]] = lambda spec: {}
    rounds: int = 8
    noise: float = 0.003
    releases: tuple[str, ...] = ()
    measured: list[list[str]] = field(default_factory=list)
    console: Console = field(default_factory=lambda: Console(quiet=True))
    name: str = "encoder"
    model: ModelFacts = field(default_factory=make_model)

    def plan(self, matrix: Matrix) -> Plan:
        return planner.plan(matrix, self.model, known=Known.model_validate({"releases": self.releases}))

    def measure(self, plan: Plan) -> Document:
        self.measured.append([arm.spec.runtime.version for block in plan.blocks for arm in block.arms])
        blocks = [BlockRecord(block, reports=self._reports(block), node="bench-1") for block in plan.blocks]
        return documents.assemble(RunRecord(model=self.model, blocks=blocks, refused=plan.refused))

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
        rounds = make_rounds(self.rounds, medians, noise=self.noise, seed=len(self.measured)) if medians else []
        return [*reports, *rounds, EndReport()]
