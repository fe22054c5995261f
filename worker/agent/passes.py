"""The three passes of a cell: orders to the runner, and its answers as reports."""

from typing import Any

from pydantic import ValidationError

from farm.contract.cells import Budget
from farm.contract.reports import ArmSample, CheckReport, Sample
from worker.agent import budgets
from worker.agent.launching import Answer, Launcher, garbled
from worker.agent.preparing import PreparedArm
from worker.agent.repeat import repeat_command

RUNNER_ORDER_VERSION = 1
CPU = "CPUExecutionProvider"
# thread CPU time / wall below this: something else ran on the core
CPU_SHARE_GATE = 0.95
MAX_REMEASURES = 3
_LOG_CHARACTERS = 4_000


def run_check(launcher: Launcher, arm: PreparedArm) -> CheckReport:
    """The check pass of an arm."""
    answer = launcher.launch(arm, runner_order(arm, "check"), work_dir=arm.scratch)
    reply = {key: value for key, value in answer.reply.items() if key in CheckReport.model_fields}
    facts = {
        "arm": arm.arm,
        "packages": arm.installed.packages,
        "repeat_command": repeat_command(arm.order),
        "log_tail": answer.log_tail[-_LOG_CHARACTERS:],
    }
    try:
        report = CheckReport(**{**reply, **facts, "reason": answer.reason})
    except ValidationError as error:
        return CheckReport(**facts, reason=garbled(_first_problem(error)))
    return report


def run_sample(launcher: Launcher, arm: PreparedArm, *, budget: Budget, position: int) -> ArmSample:
    """One sample, measured again while it is disturbed, at most 3 times."""
    order = {
        **runner_order(arm, "sample"),
        "budget": budgets.runner_budget(budget),
        "gate_cpu_share": CPU_SHARE_GATE if is_gated(arm) else None,
    }
    for remeasured in range(MAX_REMEASURES + 1):
        answer = launcher.launch(arm, order, work_dir=arm.scratch)
        taken = _as_sample(answer, arm=arm, position=position, remeasured=remeasured)
        if taken.sample is None or not taken.sample.is_disturbed:
            break
    return taken


def is_gated(arm: PreparedArm) -> bool:
    """Contention is judged on one-thread workloads of the CPU provider: elsewhere other threads do the work."""
    cell = arm.order.cell
    return (
        cell.provider == CPU
        and cell.session.threads == 1
        and cell.session.execution_mode == "sequential"
        and cell.workload.concurrency == 1
    )


def runner_order(arm: PreparedArm, kind: str) -> dict[str, Any]:
    """What every pass is told; keys are those of worker.runner.order."""
    cell = arm.order.cell
    return {
        "version": RUNNER_ORDER_VERSION,
        "kind": kind,
        "model": str(arm.model),
        "inputs": str(arm.inputs),
        "reference": str(arm.reference) if arm.reference else None,
        "atol": arm.order.tolerance.atol,
        "rtol": arm.order.tolerance.rtol,
        "provider": cell.provider,
        "provider_options": cell.provider_options,
        "session": cell.session.model_dump(mode="json"),
        "batch": cell.workload.batch,
        "concurrency": cell.workload.concurrency,
    }


def _as_sample(answer: Answer, *, arm: PreparedArm, position: int, remeasured: int) -> ArmSample:
    if answer.reason is not None:
        return ArmSample(arm=arm.arm, position=position, reason=answer.reason)
    try:
        phases = {name: float(spent) for name, spent in dict(answer.reply.get("phases_ms", {})).items()}
        phases["exit"] = max(0.0, answer.wall_ms - sum(phases.values()))
        phases["process"] = answer.wall_ms
        sample = Sample(**{**dict(answer.reply["sample"]), "remeasured": remeasured, "phases_ms": phases})
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        detail = _first_problem(error) if isinstance(error, ValidationError) else repr(error)
        return ArmSample(arm=arm.arm, position=position, reason=garbled(detail))
    return ArmSample(arm=arm.arm, position=position, sample=sample)


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
