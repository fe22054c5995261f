"""Makes models, plans and reports of blocks for the tests of the pure rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import (
    ArmSample,
    CheckReport,
    EndReport,
    Facts,
    FactsReport,
    Operator,
    OutputParity,
    ProviderShare,
    Report,
    RoundReport,
    Sample,
    TraceReport,
)
from farm.rules.judging.summaries import pack_timings
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer, Plan, PlannedBlock
from farm.rules.runtimes.models import ModelFacts


def make_model(**changes: Any) -> ModelFacts:
    known: dict[str, Any] = {
        "name": "encoder",
        "bundle_sha256": "a" * 64,
        "main_sha256": "b" * 64,
        "opsets": {"": 17},
        "batch": "N",
        "dims": {"sequence": None, "hidden": 256},
    }
    return ModelFacts(**{**known, **changes})


def plan_of(
    options: Mapping[str, Any], *, model: ModelFacts | None = None, fleet: Sequence[NodeOffer] | None = None, **how: Any
) -> Plan:
    """The plan of a matrix given as options of the command line."""
    return planner.plan(matrix.from_options(**options), model or make_model(), fleet, **how)


def only_refusal(plan: Plan) -> Reason:
    """Why the one point of a plan is refused, which has no other."""
    (refused,) = plan.refused
    assert not plan.blocks
    return refused.reason


def make_block(**options: Any) -> PlannedBlock:
    """The only block of a matrix given as options of the command line."""
    (block,) = plan_of({"runtime": "1.29.0,1.31.1", **options}).blocks
    return block


def make_sample(p50_ms: float, *, n: int = 4, **changes: Any) -> Sample:
    durations = [round(p50_ms * 1e6)] * n
    known: dict[str, Any] = {
        "p50_ms": p50_ms,
        "mean_ms": p50_ms,
        "std_ms": 0.0,
        "min_ms": p50_ms,
        "max_ms": p50_ms,
        "n": n,
        "timings": pack_timings(durations),
    }
    return Sample(**{**known, **changes})


def make_round(number: int, p50s: Mapping[int, float | Reason | Sample]) -> RoundReport:
    """A round with the p50 in ms of each arm, or the reason why it has none, or a whole sample."""
    places = []
    for position, (arm, value) in enumerate(p50s.items()):
        if isinstance(value, Reason):
            places.append(ArmSample(arm=arm, position=position, reason=value))
        else:
            sample = value if isinstance(value, Sample) else make_sample(value)
            places.append(ArmSample(arm=arm, position=position, sample=sample))
    return RoundReport(round=number, samples=tuple(places))


def make_rounds(count: int, medians: Mapping[int, float], *, noise: float = 0.003, seed: int = 1) -> list[Report]:
    dice = np.random.default_rng(seed)
    return [
        make_round(number, {arm: float(p50 * np.exp(noise * dice.standard_normal())) for arm, p50 in medians.items()})
        for number in range(count)
    ]


def make_check(arm: int, **changes: Any) -> CheckReport:
    known: dict[str, Any] = {
        "requested_providers": ("CPUExecutionProvider",),
        "active_providers": ("CPUExecutionProvider",),
        "session_ms": 30.0,
        "first_ms": 2.0,
        "import_ms": 150.0,
        "peak_memory_bytes": 60_000_000,
        "outputs": (make_output(),),
        "is_repeatable": True,
        "packages": {"onnxruntime": "1.31.1", "numpy": "2.4.6"},
    }
    return CheckReport(arm=arm, **{**known, **changes})


def make_output(**changes: Any) -> OutputParity:
    known: dict[str, Any] = {
        "name": "y",
        "dtype": "float32",
        "shape": (1, 4),
        "reference_shape": (1, 4),
        "max_abs": 1e-7,
        "max_rel": 1e-6,
        "rmse": 1e-8,
        "cosine": 1.0,
        "elements": 4,
    }
    return OutputParity(**{**known, **changes})


def make_trace(arm: int, operators: Sequence[Operator], *, trace_round: int = 0, **changes: Any) -> TraceReport:
    share = ProviderShare(name="CPUExecutionProvider", nodes=len(operators), time_share=1.0)
    return TraceReport(
        arm=arm, trace_round=trace_round, runs=10, operators=tuple(operators), providers=(share,), **changes
    )


def make_operator(node: str, time_us: float, *, op_type: str = "MatMul", covers: Sequence[str] = ()) -> Operator:
    return Operator(node=node, covers=tuple(covers), op_type=op_type, provider="CPUExecutionProvider", time_us=time_us)


def make_facts(**changes: Any) -> FactsReport:
    known: dict[str, Any] = {"hostname": "bench-1", "os": "Linux 6.1", "arch": "x86_64", "cpu_model": "Example CPU"}
    return FactsReport(facts=Facts(**{**known, **changes}))


def make_reason(code: ReasonCode = ReasonCode.CRASHED, text: str = "The runner died of SIGSEGV.") -> Reason:
    return Reason(code=code, text=text)


def make_reports(
    medians: Mapping[int, float], *, rounds: int = 8, noise: float = 0.003, end: bool = True
) -> list[Report]:
    """A whole block without faults: facts, checks, rounds and the end."""
    reports: list[Report] = [make_facts(), *(make_check(arm) for arm in medians)]
    reports += make_rounds(rounds, medians, noise=noise)
    return [*reports, EndReport()] if end else reports
