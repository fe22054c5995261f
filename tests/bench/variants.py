"""How long the variants of one model take: planned, prepared and checked, before anything is timed.

    python -m tests.bench.variants [--runtime 1.31.1]

The trained digit classifier in six precisions and four operator sets. "Prepared": every variant made in its sandbox,
its outputs held against the original's where the operator set changed, inputs and reference made. "Checked": each cell
loaded by a fresh, sandboxed runner of the runtime and its outputs compared with the reference. The runtime is installed
before the clock starts.
"""

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from farm.contract.blocks import BlockOrder
from farm.contract.cells import Runtime
from farm.contract.reports import CheckReport
from farm.rules.matrices import matrix as matrices
from farm.rules.planning.plans import Plan
from farm.workshop import arrays
from farm.workshop.samples import builders, digits
from onnxfarm.here import workbench
from onnxfarm.subject import Subject
from tests.bench.figure import publish
from tests.integration.worker.making import FACTS, runtime_store
from tests.options import read_options
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.installation.stages import stage_runner
from worker.agent.measurement import checks as passes
from worker.agent.measurement.prepared_arms import prepare_arms
from worker.agent.measurement.runner_process import Launcher

PRECISIONS = "fp32,fp16,int8-dynamic,int8-qdq,int8-qdq:per-channel,int8-qoperator"
OPSETS = "as-is,18,20,21"
WANTED_S = 90.0


def main() -> None:
    """Prints the figures as JSON; exit code 1 when a cell was not checked or it took longer than it may."""
    options = read_options(__doc__, runtime="1.31.1")
    declared = matrices.from_options(runtime=options.runtime, precision=PRECISIONS, opset=OPSETS)
    runtime_store().provide(Runtime(distribution="onnxruntime", version=options.runtime))
    with tempfile.TemporaryDirectory() as name:
        figures, is_whole = measure(Path(name), declared)
    publish(claim=f"planned, prepared and checked in under {WANTED_S:.0f} s", seed=0, figures=figures)
    raise SystemExit(0 if is_whole and figures["total_s"] < WANTED_S else 1)


def measure(folder: Path, declared: matrices.Matrix) -> tuple[dict[str, object], bool]:
    """Seconds of each step, and whether every cell came through its check."""
    model = builders.write_model("digits", folder)
    data = arrays.write_npz(folder / "calibration.npz", digits.make_calibration_data())
    began, cpu = time.monotonic(), _cpu_s()
    with workbench.open_workbench(Subject(model), home=folder / "home", console=Console(quiet=True)) as bench:
        bench.set_calibration(data)
        plan = bench.plan(declared)
        planned = time.monotonic()
        orders = [bench.measurer.preparation.make_order(block, seed=0) for block in plan.blocks]
        prepared = time.monotonic()
        environment = NodeEnvironment(
            runtimes=runtime_store(),
            cache=ArtifactCache(folder / "cache", fetch=bench.measurer.files.fetch),
            stage=stage_runner(folder / "stage"),
            work_dir=folder / "work",
            read_facts=lambda: FACTS,
        )
        checks = [check for order, refused in orders for check in (*refused, *_checked(order, environment, folder))]
        ended = time.monotonic()
    problems = sorted({check.reason.text for check in checks if check.reason is not None})
    figures = {
        "cells": plan.cells,
        "checks": len(checks),
        "loaded": sum(check.reason is None for check in checks),
        "problems": problems,
        "precisions": dict(Counter(_precisions(plan))),
        "take_in_and_plan_s": round(planned - began, 1),
        "prepare_s": round(prepared - planned, 1),
        "check_s": round(ended - prepared, 1),
        "total_s": round(ended - began, 1),
        # of this process and its children: what the total would be on one idle core
        "cpu_s": round(_cpu_s() - cpu, 1),
        "load_1m": round(os.getloadavg()[0], 1),
    }
    return figures, not problems and not plan.refused


def _checked(order: BlockOrder | None, environment: NodeEnvironment, folder: Path) -> list[CheckReport]:
    """The check pass of every arm of a block."""
    if order is None:
        return []
    scratch = folder / f"arms-{order.block}"
    scratch.mkdir()
    ready, refused = prepare_arms(order, environment=environment, folder=scratch, is_cancelled=lambda: False)
    found = [CheckReport(arm=arm, reason=reason) for arm, reason in refused.items()]
    launcher = Launcher(
        stage=environment.stage,
        timeout_s=order.runner_timeout_s,
        memory_bytes=order.memory_bytes,
        is_cancelled=lambda: False,
    )
    with launcher:
        return [*found, *(passes.run_check(launcher, arm) for arm in ready)]


def _cpu_s() -> float:
    return sum(os.times()[:4])


def _precisions(plan: Plan) -> list[str]:
    return [arm.labels["precision"] for block in plan.blocks for arm in block.arms]


if __name__ == "__main__":
    main()
