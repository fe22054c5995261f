"""Runs long passes: the curve of a cell over minutes, and the energy of its inference."""

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from farm.contract.cells import Budget, CellSpec
from farm.contract.reasons import Reason
from farm.contract.reports import CheckReport
from farm.contract.sustained import CurvePoint, CurveReport, Energy
from farm.rules.cells.sustained import point_seconds
from worker.agent.machine import energy
from worker.agent.measurement import orders
from worker.agent.measurement.checks import describe_first_problem, make_runner_order
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason

# long enough for counters that are updated ten times a second
ENERGY_S = 3.0

FindMeter = Callable[[CellSpec], energy.Meter]


class _Point(BaseModel):
    """A point in the runner's answer."""

    model_config = ConfigDict(extra="forbid")
    began_ns: int
    ended_ns: int
    n: int = Field(ge=1)
    p50_ms: float = Field(gt=0)
    p90_ms: float = Field(gt=0)


class _Points(BaseModel):
    """The part of the runner's answer that has the points, at least one of them."""

    points: tuple[_Point, ...] = Field(min_length=1)


def measure_curve(
    launcher: Launcher, arm: PreparedArm, *, total_s: float, find_meter: FindMeter = energy.find_meter
) -> CurveReport:
    """Run an arm for `total_s` seconds in one process, and report the points of its curve, with energy if known.

    The report of a process that fails has a reason and no points.
    """
    try:
        meter = find_meter(arm.order.cell)
    except energy.EnergyUnreadableError:
        meter = None
    measured = _run_pass(launcher, arm, total_s=total_s, point_s=point_seconds(total_s), meter=meter)
    if isinstance(measured, Reason):
        return CurveReport(arm=arm.arm, reason=measured)
    start = measured[0][0].began_ns
    return CurveReport(
        arm=arm.arm,
        points=tuple(
            CurvePoint(
                at_s=(point.began_ns - start) / 1e9,
                span_s=(point.ended_ns - point.began_ns) / 1e9,
                n=point.n,
                p50_ms=point.p50_ms,
                p90_ms=point.p90_ms,
                energy_mj=energy_mj,
            )
            for point, energy_mj in measured
        ),
    )


def add_energy(
    check: CheckReport, launcher: Launcher, arm: PreparedArm, *, find_meter: FindMeter = energy.find_meter
) -> CheckReport:
    """Return the check of an arm with the energy of its inference, or with the sentence why it is not known.

    The energy is measured by another process, if a meter can be read. A check with a reason is returned as it is.
    """
    if check.reason is not None:
        return check
    return check.model_copy(update={"energy": _measure_energy(launcher, arm, find_meter=find_meter)})


def _measure_energy(launcher: Launcher, arm: PreparedArm, *, find_meter: FindMeter) -> Energy:
    try:
        meter = find_meter(arm.order.cell)
    except energy.EnergyUnreadableError as problem:
        return Energy(text=str(problem)[:500])
    measured = _run_pass(launcher, arm, total_s=ENERGY_S, point_s=ENERGY_S, meter=meter)
    if isinstance(measured, Reason):
        return Energy(text=f"not measured: {measured.text}"[:500])
    energy_mj = measured[0][1]
    if energy_mj is None:
        return Energy(text=f"{energy.NOT_READABLE}: {meter.name} did not move in {ENERGY_S:.0f} s")
    return Energy(mj=energy_mj, text=f"{meter.name}: everything on it, over {ENERGY_S:.0f} s")


def _run_pass(
    launcher: Launcher, arm: PreparedArm, *, total_s: float, point_s: float, meter: energy.Meter | None
) -> list[tuple[_Point, float | None]] | Reason:
    """Run the sustained pass, and return its points, each with the mJ of an inference, or the reason why it failed."""
    order: RunnerOrder = {
        **make_runner_order(arm, "sustained"),
        "budget": orders.make_budget_part(Budget.QUICK),
        "sustained_s": total_s,
        "point_s": point_s,
    }
    with energy.read_during(meter) as readings:
        answer = launcher.launch(arm, order, work_dir=arm.scratch)
    if answer.reason is not None:
        return answer.reason
    try:
        points = _Points.model_validate(answer.reply).points
    except ValidationError as error:
        return make_garbled_reason(describe_first_problem(error))
    spans = [(point.began_ns, point.ended_ns, point.n) for point in points]
    return list(zip(points, energy.compute_energy_per_inference_mj(readings, spans), strict=True))
