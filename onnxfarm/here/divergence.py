"""Finds the first tensor that two runtimes compute differently, on this machine, for `onnxfarm diverge`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from farm.contract.blocks import ArmOrder, Tolerance
from farm.contract.cells import CellSpec, FileRef, Workload
from farm.contract.divergence import DivergenceDocument
from farm.contract.reasons import ReasonedError
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning import planner
from farm.rules.presenting import refusals
from farm.rules.quality.parity import OWN, Preset, preset_for
from farm.workshop import orders
from farm.workshop.divergence import find_first_divergence
from onnxfarm.here import bundle
from onnxfarm.here.bench import Home
from onnxfarm.here.user_files import convert_workshop_errors, import_inputs
from onnxfarm.problems import Infrastructure, Usage
from worker.agent.installation import stages
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError
from worker.agent.measurement import divergence
from worker.agent.measurement.divergence import describe_unoptimised
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher
from worker.agent.measurement.tensor_comparison import TensorComparer

RUN_TIMEOUT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class DivergenceRequest:
    """Asks where the tensors of `candidate` first differ from those of `against`. Each is a matrix of one cell.

    `against` None: the CPU without optimisations. `batch`, `shapes` and `fills`: how inputs are generated, unless
    `inputs` are given; `shapes` by dynamic dimension, `fills` by the name of an input. `tolerances`: absolute and
    relative; None: the precision's.
    """

    model: Path
    candidate: Matrix
    against: Matrix | None
    inputs: Path | None = None
    batch: int | None = None
    shapes: dict[str, int]
    fills: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    tolerances: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class _Machine:
    """What both sides need to run here: installed runtimes, a launcher of processes, and a folder for their files."""

    store: RuntimeStore
    launcher: Launcher
    stage: Path
    folder: Path


def find_divergence(
    request: DivergenceRequest,
    *,
    home: Home,
    scratch: Path,
    out: Path,
    say: Callable[[str], None],
    is_cancelled: Callable[[], bool],
) -> DivergenceDocument:
    """Find the first divergent tensor, and write the part of the model that shows it into the folder `out`.

    If all outputs agree within tolerance, the document's `found` is None. `say` gets texts about the progress.
    Raises Usage for a model or options that cannot be used, also for negative tolerances and a matrix of several cells,
    and Infrastructure if a runtime cannot be installed or run.
    """
    # prepare what both sides run
    files = bundle.LocalFiles()
    model = bundle.import_model(request.model, folder=scratch / "model", files=files)
    spec = _plan_cell(request.candidate, request, model)
    other = _plan_cell(request.against, request, model) if request.against is not None else None
    inputs = _provide_inputs(request, model, spec.workload, folder=scratch, files=files)
    variant = _make_variant(model, spec, folder=scratch / "variant")
    preset = _choose_preset(spec, request, uploaded=model.inspection.uploaded)

    # run both, and compare tensor by tensor
    store, stage = RuntimeStore(home.runtimes, say=say), stages.stage_runner(home.stages)
    with Launcher(stage=stage, timeout_s=RUN_TIMEOUT_S, memory_bytes=None, is_cancelled=is_cancelled) as launcher:
        machine = _Machine(store, launcher, stage, scratch)
        candidate = _make_comparer(spec, model, inputs, machine=machine, preset=preset)
        against = _make_comparer(other, model, inputs, machine=machine, preset=preset) if other is not None else None
        work = scratch / "runs"
        work.mkdir()
        say("looking between the nodes")
        question = divergence.Question(
            folder=model.folder,
            main=model.main,
            inputs=inputs,
            candidate=candidate,
            search=find_first_divergence,
            against=against,
            reference=str(divergence.make_side(against)) if against is not None else describe_unoptimised(),
            out=out,
            work_dir=work,
            variant=variant,
            preset=preset,
        )
        try:
            return divergence.find_divergence(question)
        except ReasonedError as problem:
            raise Infrastructure(refusals.describe_reason(problem.reason)) from problem


def _plan_cell(matrix: Matrix, request: DivergenceRequest, model: bundle.ImportedModel) -> CellSpec:
    """Return the one cell of a matrix. Raises Usage if there are several, or if it cannot run, with the reason."""
    plan = planner.plan(matrix, model.make_facts(inputs=None, inputs_batch=None), seed=request.seed)
    refused = [refusals.describe_reason(point.reason) for point in plan.refused]
    if refused or plan.problem:
        raise Usage(refused[0] if refused else str(plan.problem))
    specs = [arm.spec for block in plan.blocks for arm in block.arms]
    if len(specs) != 1:
        raise Usage(f"The options name {len(specs)} cells, and one is compared at a time: give one value each.")
    return specs[0]


def _choose_preset(spec: CellSpec, request: DivergenceRequest, *, uploaded: str) -> Preset:
    default = preset_for(spec.recipe.precision, uploaded)
    atol, rtol = request.tolerances
    if atol is None and rtol is None:
        return default
    if min(atol or 0.0, rtol or 0.0) < 0:
        raise Usage("--atol and --rtol cannot be negative: give numbers from 0.")
    return Preset(OWN, atol=default.atol if atol is None else atol, rtol=default.rtol if rtol is None else rtol)


def _provide_inputs(
    request: DivergenceRequest,
    model: bundle.ImportedModel,
    workload: Workload,
    *,
    folder: Path,
    files: bundle.LocalFiles,
) -> Path:
    """Copy the user's inputs, or generate inputs. The request's sizes and fills override those of `workload`."""
    if request.inputs is not None:
        user_inputs = import_inputs(model, inputs=request.inputs, expected=None, folder=folder, files=files)
        assert user_inputs.inputs is not None
        return files.paths[user_inputs.inputs.sha256]
    out_folder = folder / "inputs"
    out_folder.mkdir()
    with convert_workshop_errors():
        prepared = orders.prepare_inputs(
            model.folder,
            model.main,
            out_dir=out_folder,
            batch=request.batch,
            shapes={**workload.shapes, **request.shapes},
            seed=request.seed,
            inputs={**workload.inputs, **request.fills},
        )
    return prepared.path


def _make_variant(model: bundle.ImportedModel, spec: CellSpec, *, folder: Path) -> Path | None:
    if spec.recipe.is_identity:
        return None
    folder.mkdir()
    with convert_workshop_errors():
        return orders.make_variant(model.folder, model.main, recipe=spec.recipe, out_dir=folder).folder


def _make_comparer(
    spec: CellSpec, model: bundle.ImportedModel, inputs: Path, *, machine: _Machine, preset: Preset
) -> TensorComparer:
    """Install the runtime of a cell, and make the comparer that runs models on it. Raises Infrastructure."""
    try:
        installed = machine.store.provide(spec.runtime)
    except RuntimeUnavailableError as problem:
        raise Infrastructure(refusals.describe_reason(problem.reason)) from problem
    stages.compile_stage(machine.stage, python=installed.python)
    tolerance = preset.tolerance
    scratch = machine.folder / f"side-{spec.digest[:16]}"
    scratch.mkdir(exist_ok=True)
    order = ArmOrder(
        arm=0,
        cell=spec,
        bundle=model.bundle,
        source=model.bundle,
        inputs=FileRef(name="inputs.npz", sha256="0" * 64, bytes=inputs.stat().st_size),
        tolerance=Tolerance(atol=tolerance.atol, rtol=tolerance.rtol),
    )
    arm = PreparedArm(
        order=order,
        installed=installed,
        model=model.folder / model.main,
        source=model.folder / model.main,
        inputs=inputs,
        reference=None,
        scratch=scratch,
    )
    return TensorComparer(machine.launcher, arm, tolerance, is_absolute=preset.name == OWN)
