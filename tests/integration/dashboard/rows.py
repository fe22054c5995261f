"""Rows for pages, made through the services as a farm makes them: a version, a node, runs with made-up reports.

Nothing here was measured. Latencies come from a seed; `slow` says which runtime is slower, and by how much.
"""

import random
from collections.abc import Iterable, Mapping
from math import exp
from typing import Any

from django.utils import timezone

from farm.accounts.models import Team, User
from farm.contract import reports
from farm.contract.base import digest_json
from farm.contract.blocks import ArmOrder, Lease
from farm.contract.cells import CellSpec
from farm.contract.node import INT4, MODELS, SCENARIOS
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.sustained import CurvePoint, CurveReport
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Artifact, ArtifactFile, Blob, Model, Preparation, Variant, Version
from farm.registry.states import FileRole, MakingState, VersionState
from farm.rules.judging.summaries import pack_timings
from farm.runs.models import Run
from farm.runs.services import accept_report, claim_block, conclude_runs, release_ready_blocks, settle, start_run
from farm.runs.states import BlockState
from tests.integration.dashboard.written_again import made_once

SEED = 7
CPU = "CPUExecutionProvider"
UNDERSTOOD = frozenset({SCENARIOS, INT4, MODELS})
MATRIX: dict[str, Any] = {
    "budget": "quick",
    "matrix": {
        "runtime": ["1.29.0", "1.31.1"],
        "provider": ["cpu"],
        "batch": [1, 8],
        "precision": ["fp32", "int8-dynamic"],
        "threads": [1],
    },
}
INSPECTION: dict[str, Any] = {
    "ok": True,
    "main_sha256": "a" * 64,
    "main_bytes": 4_321_000,
    "ir_version": 8,
    "opsets": {"": 17},
    "producer": "pytorch 2.13.0",
    "graph_name": "main_graph",
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", "sequence", 256]}],
    "outputs": [{"name": "y", "dtype": "float32", "shape": ["batch", "sequence", 256]}],
    "batch": "batch",
    "dims": ["batch", "sequence"],
    "nodes": 60,
    "operators": {"MatMul": 16, "Add": 14, "LayerNormalization": 4, "Softmax": 2},
    "parameters": 1_051_904,
    "parameters_bytes": 4_207_616,
    "dtypes": {"float32": 4_207_616},
    "findings": [{"id": "unnamed_nodes", "detail": "3 of 60 nodes have no name.", "count": 3, "where": ["MatMul_3"]}],
}
OPERATORS = (
    ("/layers.0/attention/MatMul", "FusedMatMul", 180.0, False),
    ("/layers.0/norm/LayerNormalization", "SkipLayerNormalization", 40.0, True),
    ("/layers.1/norm/LayerNormalization", "SkipLayerNormalization", 41.0, True),
    ("/layers.1/linear/MatMul", "MatMul", 260.0, False),
)


def make_version(
    team: Team, by: User, *, name: str = "encoder", state: VersionState = VersionState.READY, number: int = 1
) -> Version:
    """An inspected version without a stored file behind it."""
    digest = digest_json([team.pk, name, number])
    blob = Blob.objects.create(team=team, sha256=digest, bytes=4_321_000)
    artifact = Artifact.objects.create(team=team, sha256=digest, main=f"{name}.onnx", bytes=4_321_000)
    ArtifactFile.objects.create(artifact=artifact, blob=blob, name=artifact.main, role=FileRole.MODEL)
    model, _ = Model.objects.get_or_create(team=team, name=name, defaults={"created_by": by})
    inspection = INSPECTION if state == VersionState.READY else None
    return Version.objects.create(
        model=model, number=number, artifact=artifact, state=state, inspection=inspection, uploaded_by=by
    )


def make_node(
    team: Team,
    owner: User,
    *,
    name: str = "bench-1",
    health: NodeHealth = NodeHealth.ACTIVE,
    providers: Iterable[str] = (CPU,),
) -> Node:
    """A node that is there, with the CPU proven."""
    facts = reports.Facts(
        hostname=name, os="Linux 6.1", arch="x86_64", cpu_model="Example CPU", logical_cores=2, physical_cores=1,
        memory_bytes=24_000_000_000, sandbox="landlock",
    )  # fmt: skip
    return Node.objects.create(
        team=team,
        owner=owner,
        name=name,
        public_key=digest_json([team.pk, name])[:44],
        fingerprint="SHA256:" + digest_json(name)[:24],
        state=NodeState.ONLINE,
        health=health,
        facts_json=facts.model_dump(mode="json"),
        tags={
            "cpu": "probe trace: 3 nodes on CPUExecutionProvider",
            "x86": "platform says x86_64",
            **({"openvino": "probe trace"} if len(list(providers)) > 1 else {}),
        },
        providers=list(providers),
        runtimes=["onnxruntime==1.29.0", "onnxruntime==1.31.1"],
        sandbox="landlock",
        seen_at=timezone.now(),
    )


def begin_run(version: Version, by: User, *, matrix: Mapping[str, Any] | str = MATRIX) -> Run:
    """A started run whose variants and inputs are ready, so that its blocks wait for a node."""
    return make_ready(start_run(version=version, matrix=matrix, requested_by=by))


def make_ready(run: Run) -> Run:
    """What the run waits for is made: its blocks wait for a node."""
    artifact = run.version.artifact
    ready = {"state": MakingState.READY, "finished_at": timezone.now()}
    blob = artifact.files.get().blob
    Variant.objects.filter(artifact=artifact).update(derived=artifact, **ready)
    Preparation.objects.filter(artifact=artifact).update(
        inputs=blob, reference=blob, reference_of="onnxruntime==1.31.1 CPU, no optimisations", **ready
    )
    release_ready_blocks(run=run)
    run.refresh_from_db()
    return run


def finished_run(
    version: Version,
    node: Node,
    by: User,
    *,
    matrix: Mapping[str, Any] | str = MATRIX,
    kind: "type[MadeUpNode] | None" = None,
    **how: Any,
) -> Run:
    """A run that the made-up node, or one of another `kind`, has measured to its end. `how`: see MadeUpNode."""

    def measure() -> int:
        begun = begin_run(version, by, matrix=matrix)
        (kind or MadeUpNode)(node, **how).measure(begun)
        conclude_runs()
        return begun.pk

    if kind is not None:
        return Run.objects.get(pk=measure())
    return Run.objects.get(pk=made_once(measure, how=(version.pk, node.pk, by.pk, matrix, sorted(how.items()))))


class MadeUpNode:
    """Answers blocks as an agent does, with latencies from a seed instead of a clock.

    `slow`: factor of a runtime's latency by `distribution==version`. `crashes`: cell numbers whose runner dies.
    `elsewhere`: whether sessions come up on the CPU whatever was asked. `settles`: whether the farm's worker is there.
    `busy`: other programs take four fifths of its core.
    """

    def __init__(
        self,
        node: Node,
        *,
        slow: Mapping[str, float] | None = None,
        crashes: Iterable[int] = (),
        elsewhere: bool = False,
        wrong: bool = False,
        settles: bool = True,
        busy: bool = False,
    ) -> None:
        self.node, self.busy = node, busy
        self.slow = {"onnxruntime==1.31.1": 1.24} if slow is None else dict(slow)
        self.crashes = set(crashes)
        self.elsewhere = elsewhere
        self.wrong, self.settles = wrong, settles
        self.random = random.Random(SEED)

    def measure(self, run: Run, *, most_blocks: int | None = None, most_rounds: int | None = None) -> None:
        """Every queued block of the run; fewer blocks or rounds leave it open."""
        for block in run.blocks.filter(state=BlockState.QUEUED).order_by("number")[:most_blocks]:
            lease = claim_block(node=self.node, block_id=str(block.pk), attempt=block.attempt, understands=UNDERSTOOD)
            self._report(lease, reports.FactsReport(facts=self.node.facts))
            for arm in lease.order.arms:
                self._report(lease, self._check(arm))
            if (engines := self._engines(lease)) is not None:
                self._report(lease, engines)
            for arm in self._alive(lease):
                self._report(lease, self._trace(arm, 0))
            self._measure_rounds(lease, first=lease.order.first_round, most=most_rounds)

    def resume(self, run: Run, *, most_rounds: int | None = None) -> None:
        """Goes on with the blocks that `measure` left open, to their end where no rounds are named."""
        for block in run.blocks.filter(state=BlockState.LEASED):
            lease = claim_block(node=self.node, block_id=str(block.pk), attempt=block.attempt, understands=UNDERSTOOD)
            self._measure_rounds(lease, first=block.rounds, most=most_rounds)

    def _alive(self, lease: Lease) -> list[ArmOrder]:
        return [arm for arm in lease.order.arms if arm.arm not in self.crashes]

    def _measure_rounds(self, lease: Lease, *, first: int, most: int | None) -> None:
        alive, number, reply = self._alive(lease), first, reports.Reply()
        while alive and reply.go_on and number != most:
            reply = self._report(lease, self._round(alive, number))
            number += 1
        if most is not None:
            return
        for trace_round in range(1, 1 + reply.trace_rounds):
            for arm in alive:
                if arm.arm in reply.trace_arms:
                    self._report(lease, self._trace(arm, trace_round))
        self._work_on(alive, lease)
        self._report(lease, reports.EndReport(wall_s=1.0))

    def _work_on(self, arms: list[ArmOrder], lease: Lease) -> None:
        """Curves, where the order asks for them, in no time at all: the third of six points is the first slow one."""
        distinct = {arm.cell.digest: arm for arm in reversed(arms)} if lease.order.sustained_s else {}
        for arm in distinct.values():
            p50 = self._p50_ms(arm.cell)
            points = tuple(
                CurvePoint(at_s=at / 50, span_s=0.02, n=10, p50_ms=p50 * factor, p90_ms=p50 * factor * 1.1)
                for at, factor in enumerate((1.0, 1.01, 1.2, 1.22, 1.21, 1.2))
            )
            self._report(lease, CurveReport(arm=arm.arm, points=points))

    def _report(self, lease: Lease, report: reports.Report) -> reports.Reply:
        order = lease.order
        reply = accept_report(
            node=self.node, block_id=order.block, attempt=order.attempt, token=lease.token, report=report
        )
        if self.settles and isinstance(report, reports.EndReport):
            settle(block_id=int(order.block), attempt=order.attempt)
        return reply

    def _p50_ms(self, spec: CellSpec) -> float:
        is_int8 = spec.recipe.precision != "fp32"
        base = 0.5 * (spec.workload.batch or 1) * (0.5 if is_int8 else 1.0)
        return base * self.slow.get(str(spec.runtime), 1.0)

    def _check(self, arm: ArmOrder) -> reports.CheckReport:
        if arm.arm in self.crashes:
            reason = Reason(code=ReasonCode.CRASHED, text="The runner ended by signal 11 (SIGSEGV).")
            return reports.CheckReport(arm=arm.arm, reason=reason)
        spec = arm.cell
        asked = (spec.provider,) if spec.provider == CPU else (spec.provider, CPU)
        far = 0.5 if self.wrong else 4e-7
        output = reports.OutputParity(
            name="y", dtype="float32", shape=(1, 64, 256), reference_shape=(1, 64, 256), max_abs=far, max_rel=far * 2,
            rmse=far / 4, cosine=1 - far, violations=9000 if self.wrong else 0, elements=16384,
        )  # fmt: skip
        return reports.CheckReport(
            arm=arm.arm,
            requested_providers=asked,
            active_providers=(CPU,) if self.elsewhere else asked,
            import_ms=120.0,
            session_ms=40.0,
            first_ms=self._p50_ms(spec) * 2,
            peak_memory_bytes=95_000_000,
            outputs=(output,),
            is_repeatable=True,
            packages={"onnxruntime": spec.runtime.version, "numpy": "2.4.6"},
            log_tail="loaded encoder.onnx\n",
        )

    def _engines(self, lease: Lease) -> reports.EnginesReport | None:
        """What arms gave beside each other; nothing was kept of them."""
        return None

    def _trace(self, arm: ArmOrder, trace_round: int) -> reports.TraceReport:
        # nearly all that the release adds to an inference
        added_us = 960 * self._p50_ms(arm.cell) * (1 - 1 / self.slow.get(str(arm.cell.runtime), 1.0))
        factor = max(0.1, 1 + added_us / sum(time_us for *_, time_us, is_slow in OPERATORS if is_slow))
        ran_on = CPU if self.elsewhere else arm.cell.provider
        operators = tuple(
            reports.Operator(
                node=node, op_type=op_type, provider=ran_on, covers=(f"{node}/Add",) if is_slow else (),
                time_us=time_us * (factor if is_slow else 1.0) * exp(self.random.gauss(0, 0.01)),
            )
            for node, op_type, time_us, is_slow in OPERATORS
        )  # fmt: skip
        shares = (reports.ProviderShare(name=ran_on, nodes=len(operators), time_share=1.0),)
        return reports.TraceReport(
            arm=arm.arm, trace_round=trace_round, runs=10, providers=shares, operators=operators, mapped_share=1.0
        )

    def _round(self, arms: list[ArmOrder], number: int) -> reports.RoundReport:
        places = [
            reports.ArmSample(arm=arm.arm, position=place, sample=self._sample(arm.cell))
            for place, arm in enumerate(arms)
        ]
        return reports.RoundReport(round=number, samples=tuple(places))

    def _sample(self, spec: CellSpec) -> reports.Sample:
        middle = own = self._p50_ms(spec) * exp(self.random.gauss(0, 0.006))
        if self.busy:
            middle *= 5 * exp(self.random.gauss(0, 0.3))
        nanoseconds = [round(middle * 1e6 * factor) for factor in (0.98, 1.0, 1.05)]
        timings = [one / 1e6 for one in nanoseconds]
        return reports.Sample(
            p50_ms=timings[1],
            mean_ms=sum(timings) / 3,
            std_ms=0.01,
            min_ms=timings[0],
            max_ms=timings[2],
            n=3,
            timings=pack_timings(nanoseconds),
            cpu_share=0.2 if self.busy else 1.0,
            cpu_p50_ms=own if self.busy else None,
            is_disturbed=self.busy,
        )
