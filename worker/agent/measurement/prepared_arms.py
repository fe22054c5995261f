"""Prepares the arms of a block: installs their runtimes, and copies their files into the block's folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, FileRef
from farm.contract.reasons import Reason
from farm.rules.cells import recipes, threads
from farm.rules.runtimes import engines
from worker.agent.installation import cache, stages
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.installation.runtimes import Installed, RuntimeUnavailableError


@dataclass(frozen=True)
class PreparedArm:
    """An arm whose runtime is installed and whose files are in the block's folder.

    `arm` is its number. `model` is the file that it runs, and `source` the model as it was uploaded, which differs if
    `is_variant`. `is_session`: it runs in a session of ONNX Runtime. `engines`: the folder for what its provider
    compiles, which may not exist. `description` names its cell for people.
    """

    order: ArmOrder
    installed: Installed
    model: Path
    source: Path
    inputs: Path
    reference: Path | None
    scratch: Path
    evaluation: Path | None = None
    prompts: Path | None = None

    @property
    def arm(self) -> int:
        return self.order.arm

    @property
    def description(self) -> str:
        cell = self.order.cell
        return f"{cell.runtime}, {recipes.describe_recipe(cell.recipe) or 'as uploaded'}, arm {self.arm}"

    @property
    def engines(self) -> Path:
        return self.scratch / "engines"

    @property
    def is_session(self) -> bool:
        return engines.engine_of(self.order.cell.runtime).is_session

    @property
    def is_variant(self) -> bool:
        return self.order.bundle.digest != self.order.source.digest


def prepare_arms(
    order: BlockOrder, *, environment: NodeEnvironment, folder: Path, is_cancelled: Callable[[], bool]
) -> tuple[list[PreparedArm], dict[int, Reason]]:
    """Install the runtime and copy the files of every arm. Return the prepared arms, and the reasons of others by arm.

    An arm whose runtime or files are not available, or that needs more threads than this machine has, gets a reason.
    Once `is_cancelled` is true, the remaining arms are in neither. Raises OSError where a copy cannot be written.
    """
    cores = psutil.cpu_count(logical=True)
    ready: list[PreparedArm] = []
    refused: dict[int, Reason] = {}
    for arm in order.arms:
        if is_cancelled():
            break
        if reason := threads.refusal(arm.cell, cores=cores):
            refused[arm.arm] = reason
            continue
        try:
            ready.append(_prepare_arm(arm, block=order, environment=environment, folder=folder))
        except (RuntimeUnavailableError, cache.ArtifactUnavailableError) as error:
            refused[arm.arm] = error.reason
    return ready, refused


def _prepare_arm(arm: ArmOrder, *, block: BlockOrder, environment: NodeEnvironment, folder: Path) -> PreparedArm:
    keep = {other.cell.runtime for other in block.arms}
    installed = environment.runtimes.provide(arm.cell.runtime, keep=keep, files=arm.wheels)
    stages.compile_stage(environment.stage, python=installed.python)
    needed = cache.list_digests(block)

    def copy_bundle(bundle: Bundle) -> Path:
        place = folder / "bundles" / bundle.digest[:32]
        if not place.is_dir():
            # renamed once it is complete: a file of the bundle may be unavailable
            partial = place.with_suffix(".partial")
            environment.cache.copy_bundle_to(bundle, partial, keep=needed)
            partial.rename(place)
        return place / bundle.main

    def copy_file(ref: FileRef) -> Path:
        place = folder / "files"
        place.mkdir(parents=True, exist_ok=True)
        target = place / f"{ref.sha256}.npz"
        return target if target.exists() else environment.cache.copy_file_to(ref, place, name=target.name, keep=needed)

    scratch = folder / f"arm-{arm.arm}"
    scratch.mkdir(parents=True, exist_ok=True)
    return PreparedArm(
        order=arm,
        installed=installed,
        model=copy_bundle(arm.bundle),
        source=copy_bundle(arm.source),
        inputs=copy_file(arm.inputs),
        reference=copy_file(arm.reference) if arm.reference else None,
        scratch=scratch,
        evaluation=copy_file(arm.evaluation.data) if arm.evaluation else None,
        prompts=copy_file(arm.prompts) if arm.prompts else None,
    )
