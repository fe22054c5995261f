"""Compares the outputs of a block's arms with each other, and stores the models that providers compiled."""

import logging
import os
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import ValidationError

from farm.contract.reports import EnginesReport
from farm.rules.quality.parity import ANY, preset_between
from farm.rules.runtimes import providers
from farm.sandbox import plain_files
from worker.agent.installation.environment import StoreCompiled
from worker.agent.measurement.checks import OUTPUTS_FILE, make_runner_order
from worker.agent.measurement.orders import Pair, RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason

logger = logging.getLogger(__name__)
COMPILED = "compiled.onnx"


def compare_engines(launcher: Launcher, arms: Sequence[PreparedArm]) -> EnginesReport | None:
    """Compare the outputs of the checks of every two arms with the same inputs; None where there are no two.

    A runner's process compares the outputs; where it fails, the report has a reason. An arm whose check left no outputs
    is not compared. Call this once for a block, because it moves the files of outputs.
    """
    stored = {arm.arm: place for arm in arms if (place := _share_outputs(arm)) is not None}
    by_number = {arm.arm: arm for arm in arms if arm.arm in stored}
    pairs = [
        _make_pair(by_number[first], by_number[other], stored)
        for first, other in combinations(sorted(stored), 2)
        if by_number[first].inputs == by_number[other].inputs
    ]
    if not pairs:
        return None
    first_arm = by_number[pairs[0]["one"]]
    order: RunnerOrder = {**make_runner_order(first_arm, "engines"), "pairs": pairs}
    answer = launcher.launch(first_arm, order, work_dir=first_arm.scratch)
    if answer.reason is not None:
        return EnginesReport(reason=answer.reason)
    try:
        return EnginesReport.model_validate({name: answer.reply.get(name) for name in ("pairs", "left_out")})
    except ValidationError as error:
        return EnginesReport(reason=make_garbled_reason(f"{error.error_count()} fields of its comparison are wrong"))


def _share_outputs(arm: PreparedArm) -> Path | None:
    """Move an arm's outputs to where all runners of the block may read them. Return the path; None without outputs."""
    outputs = arm.scratch / OUTPUTS_FILE
    if not plain_files.is_plain(outputs):
        return None
    place = arm.inputs.parent / f"outputs-{arm.arm}.npz"
    os.replace(outputs, place)
    return place


def _make_pair(arm: PreparedArm, other: PreparedArm, stored: dict[int, Path]) -> Pair:
    are_models = arm.order.cell.artifact_sha256 != other.order.cell.artifact_sha256
    # outputs of two models are judged only by tolerances that the user sets
    preset = ANY if are_models else preset_between(arm.order.cell, other.order.cell)
    # the tolerance of a 16-bit upload is in its order, not in its recipe
    orders = () if are_models else (arm.order, other.order)
    widest = max([preset.tolerance, *(order.tolerance for order in orders)], key=lambda tolerance: tolerance.atol)
    tolerances = other.order.tolerances if are_models else {}
    return {
        "one": arm.arm,
        "other": other.arm,
        "one_path": str(stored[arm.arm]),
        "other_path": str(stored[other.arm]),
        "atol": widest.atol,
        "rtol": widest.rtol,
        "own": {name: (tolerance.atol, tolerance.rtol) for name, tolerance in tolerances.items()},
        "is_by_order": are_models,
    }


def select_compiled_arms(arms: Iterable[PreparedArm]) -> list[PreparedArm]:
    """Select the ONNX Runtime arms whose provider can write a compiled model; of arms with equal cells, the first."""
    selected: dict[str, PreparedArm] = {}
    for arm in arms:
        entry = providers.find(arm.order.cell.provider)
        if entry is not None and entry.leaves_context and arm.is_session:
            selected.setdefault(arm.order.cell.digest, arm)
    return list(selected.values())


def store_compiled_model(launcher: Launcher, arm: PreparedArm, *, store: StoreCompiled) -> None:
    """Compile an arm's model again in a separate process, and call `store` with the arm's number and the file.

    Where that fails, for instance for a model that is compiled already, log why and store nothing.
    """
    stored = arm.scratch / COMPILED
    answer = launcher.launch(arm, {**make_runner_order(arm, "compilation"), "keep": str(stored)}, work_dir=arm.scratch)
    if answer.reason is not None:
        logger.warning("The compiled model of arm %d was not kept: %s", arm.arm, answer.reason.text)
    elif plain_files.is_plain(stored):
        store(arm.arm, stored)
