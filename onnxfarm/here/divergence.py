"""The search behind `diverge`: one model, one or two sides on this machine, the same runners as `bench`."""

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
from onnxfarm.here.user_files import import_inputs, raise_usage_of_workshop
from onnxfarm.problems import Infrastructure, Usage
from worker.agent.installation import stages
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError
from worker.agent.measurement import divergence
from worker.agent.measurement.divergence import describe_unoptimised
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Launcher
from worker.agent.measurement.tensor_comparison import TensorComparer

LOOK_TIMEOUT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class DivergenceRequest:
    """What the command was given. `tolerances`: absolute and relative; None: the precision's.

    `fills`: how inputs are made, by name.
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
class _Bench:
    """This machine's side of the search."""

    store: RuntimeStore
    launcher: Launcher
    stage: Path
    folder: Path


def find_divergence(
    asked: DivergenceRequest,
    *,
    home: Home,
    scratch: Path,
    out: Path,
    say: Callable[[str], None],
    is_cancelled: Callable[[], bool],
) -> DivergenceDocument:
    """Search the first divergent tensor, and write the part of the model that shows it to `out`.

    `say` is called with what is being done. Raises Usage for a model or options that cannot be used, and Infrastructure
    for a runtime that cannot be installed or run.
    """
    files = bundle.LocalFiles()
    model = bundle.import_model(asked.model, folder=scratch / "model", files=files)
    spec = _spec(asked.candidate, asked, model)
    other = _spec(asked.against, asked, model) if asked.against is not None else None
    inputs = _inputs(asked, model, spec.workload, folder=scratch, files=files)
    variant = _variant(model, spec, folder=scratch / "variant")
    preset = _preset(spec, asked, uploaded=model.inspection.uploaded)
    store, stage = RuntimeStore(home.runtimes, say=say), stages.stage_runner(home.stages)
    with Launcher(stage=stage, timeout_s=LOOK_TIMEOUT_S, memory_bytes=None, is_cancelled=is_cancelled) as launcher:
        bench = _Bench(store, launcher, stage, scratch)
        candidate = _looker(spec, model, inputs, bench=bench, preset=preset)
        against = _looker(other, model, inputs, bench=bench, preset=preset) if other is not None else None
        work = scratch / "looks"
        work.mkdir()
        say("looking between the nodes")
        question = divergence.Question(
            folder=model.folder,
            main=model.main,
            inputs=inputs,
            candidate=candidate,
            search=find_first_divergence,
            against=against,
            reference=str(divergence.describe_side(against)) if against is not None else describe_unoptimised(),
            out=out,
            work_dir=work,
            variant=variant,
            preset=preset,
        )
        try:
            return divergence.find_divergence(question)
        except ReasonedError as problem:
            raise Infrastructure(refusals.describe(problem.reason)) from problem


def _spec(matrix: Matrix, asked: DivergenceRequest, model: bundle.ImportedModel) -> CellSpec:
    """Return the one cell that the options name. Raises Usage for several, or with the reason why it cannot run."""
    plan = planner.plan(matrix, model.make_facts(inputs=None, inputs_batch=None), seed=asked.seed)
    refused = [refusals.describe(point.reason) for point in plan.refused]
    if refused or plan.problem:
        raise Usage(refused[0] if refused else str(plan.problem))
    specs = [arm.spec for block in plan.blocks for arm in block.arms]
    if len(specs) != 1:
        raise Usage(f"The options name {len(specs)} cells, and one is compared at a time: give one value each.")
    return specs[0]


def _preset(spec: CellSpec, asked: DivergenceRequest, *, uploaded: str) -> Preset:
    usual = preset_for(spec.recipe.precision, uploaded)
    atol, rtol = asked.tolerances
    if atol is None and rtol is None:
        return usual
    if min(atol or 0.0, rtol or 0.0) < 0:
        raise Usage("--atol and --rtol cannot be negative: give numbers from 0.")
    return Preset(OWN, atol=usual.atol if atol is None else atol, rtol=usual.rtol if rtol is None else rtol)


def _inputs(
    asked: DivergenceRequest, model: bundle.ImportedModel, usual: Workload, *, folder: Path, files: bundle.LocalFiles
) -> Path:
    """Copy the given inputs or make them; what the request leaves open is as inspection chose it, in `usual`."""
    if asked.inputs is not None:
        given = import_inputs(model, inputs=asked.inputs, expected=None, folder=folder, files=files)
        assert given.inputs is not None
        return files.paths[given.inputs.sha256]
    out = folder / "inputs"
    out.mkdir()
    with raise_usage_of_workshop():
        made = orders.prepare_inputs(
            model.folder,
            model.main,
            out_dir=out,
            batch=asked.batch,
            shapes={**usual.shapes, **asked.shapes},
            seed=asked.seed,
            inputs={**usual.inputs, **asked.fills},
        )
    return made.path


def _variant(model: bundle.ImportedModel, spec: CellSpec, *, folder: Path) -> Path | None:
    if spec.recipe.is_identity:
        return None
    folder.mkdir()
    with raise_usage_of_workshop():
        return orders.make_variant(model.folder, model.main, recipe=spec.recipe, out_dir=folder).folder


def _looker(
    spec: CellSpec, model: bundle.ImportedModel, inputs: Path, *, bench: _Bench, preset: Preset
) -> TensorComparer:
    """Install the runtime of a side and make its folder. Raises Infrastructure."""
    try:
        installed = bench.store.provide(spec.runtime)
    except RuntimeUnavailableError as problem:
        raise Infrastructure(refusals.describe(problem.reason)) from problem
    stages.compile_stage(bench.stage, python=installed.python)
    tolerance = preset.tolerance
    scratch = bench.folder / f"side-{spec.digest[:16]}"
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
    return TensorComparer(bench.launcher, arm, tolerance, is_absolute=preset.name == OWN)
