"""Makes the orders of the runner, and runs the check pass of an arm."""

from pydantic import ValidationError

from farm.contract.reports import CheckReport
from farm.contract.texts import strip_pydantic_prefix
from farm.rules.runtimes import engines, plugins, providers
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason

RUNNER_ORDER_VERSION = 1
CPU = "CPUExecutionProvider"
# the outputs of the check, which are compared with those of other engines
OUTPUTS_FILE = "outputs.npz"
_LOG_CHARACTERS = 4_000


def run_check(launcher: Launcher, arm: PreparedArm) -> CheckReport:
    """Run the check pass of an arm: it loads, runs, and compares the outputs with the reference.

    The outputs stay in OUTPUTS_FILE of the arm's scratch folder, unless they are large. A process that fails, or whose
    answer cannot be read, gives a report with a reason.
    """
    order: RunnerOrder = {**make_runner_order(arm, "check"), "keep": str(arm.scratch / OUTPUTS_FILE)}
    answer = launcher.launch(arm, order, work_dir=arm.scratch)
    reply = {key: value for key, value in answer.reply.items() if key in CheckReport.model_fields}
    fields = {"arm": arm.arm, "packages": arm.installed.packages, "log_tail": answer.log_tail[-_LOG_CHARACTERS:]}
    try:
        return CheckReport.model_validate({**reply, **fields, "reason": answer.reason})
    except ValidationError as error:
        return CheckReport.model_validate({**fields, "reason": make_garbled_reason(describe_first_problem(error))})


def make_runner_order(arm: PreparedArm, kind: str) -> RunnerOrder:
    """Make the part of an order that all passes of an arm have. `kind` is the name of the pass."""
    cell = arm.order.cell
    engine = engines.engine_of(cell.runtime)
    return {
        "version": RUNNER_ORDER_VERSION,
        "kind": kind,
        "model": str(arm.model),
        "inputs": str(arm.inputs),
        "reference": str(arm.reference) if arm.reference else None,
        "prompts": str(arm.prompts) if arm.prompts else None,
        "atol": arm.order.tolerance.atol,
        "rtol": arm.order.tolerance.rtol,
        "tolerances": {name: [tolerance.atol, tolerance.rtol] for name, tolerance in arm.order.tolerances.items()},
        "provider": cell.provider,
        "provider_options": cell.provider_options,
        "plugin": plugins.library_for(cell.runtime, cell.provider),
        **_make_provider_part(arm),
        "engine": engine.name,
        "module": engine.module,
        "program": engine.program(cell.runtime),
        "session": cell.session.model_dump(mode="json"),
        "batch": cell.workload.batch,
        "concurrency": cell.workload.concurrency,
    }


def _make_provider_part(arm: PreparedArm) -> RunnerOrder:
    """Make the part of an order that the table of providers decides; empty for a provider without an entry."""
    cell = arm.order.cell
    entry = providers.find(cell.provider)
    if entry is None:
        return {}
    options = providers.session_options(entry, cell)
    part: RunnerOrder = {"memory": entry.memory or None, "provider_options": options}
    if entry.signs is not None:
        part["stands_in"] = entry.signs.stands_in or None
    if entry.simulated_on:
        part["is_simulated_on_cpu"] = True
    if entry.building is not None:
        building = entry.building
        part["building"] = {"cache": building.cache, "folder": str(arm.engines), "shapes": list(building.shapes)}
    return part


def describe_first_problem(error: ValidationError) -> str:
    """Describe the first problem of a validation as `field: message`."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {strip_pydantic_prefix(first['msg'])}"
