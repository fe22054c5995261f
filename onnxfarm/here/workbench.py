"""Imports a model once, and measures it on this machine several times, each time with another matrix."""

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from farm.contract.cells import CellSpec, Runtime
from farm.contract.document import Document
from farm.rules.cells.commands import file_argument
from farm.rules.generation import decoders
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning import beside as side_by_side
from farm.rules.planning import planner
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import BLOCK_TIMEOUT_CEILING_S, ROUNDS
from farm.rules.planning.plans import NodeOffer, Plan, PlannedBlock, RefusedPoint, positions_by_id
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.releases import NEWEST, Known, unknown_sentence
from farm.rules.searches.search import Experiment, Measured, Outcome, Search
from farm.workshop import orders
from onnxfarm.calibration_files import make_sample_warning
from onnxfarm.disk_space import WAY_OUT, check_free_space
from onnxfarm.here import bench, bundle, progress, release_index, user_files
from onnxfarm.here.orders import Preparation, UserInputs
from onnxfarm.outputs import print_lines, write_bytes
from onnxfarm.problems import Infrastructure, Stopped, Usage
from onnxfarm.subject import Judging, Subject, UserJudge
from worker.agent.abilities.probes import list_machine_tags
from worker.agent.installation.environment import JudgeFile
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.machine.facts import read_facts

# the rounds at which a quick block ends, even if a comparison is undecided
MAX_ROUNDS = 24

Reshape = Callable[[PlannedBlock], PlannedBlock]


class Bench(Protocol):
    """A model on a machine, to be measured with one plan after another."""

    @property
    def name(self) -> str: ...

    @property
    def console(self) -> Console: ...

    def clock(self) -> float:
        """Return the seconds of a clock that stands still while another measurement has the machine."""

    def plan(self, matrix: Matrix) -> Plan:
        """Plan what a matrix would measure. Raises Usage when the matrix does not fit the model."""

    def measure(self, plan: Plan) -> Document:
        """Measure a plan. Raises Stopped on Ctrl-C, and Infrastructure when the machine stays taken."""


@dataclass
class Workbench:
    """A model on this machine, to be measured as a `Bench`. `path`: the model's path, as on the command line.

    `releases`: runtimes that exist, and that this version does not know. `with_null_pair`: whether the next measurement
    has an A/A pair.
    """

    template: bench.Run
    path: Path
    releases: tuple[Runtime, ...] = ()
    user_inputs: UserInputs = field(default_factory=UserInputs)
    with_null_pair: bool = False

    @property
    def name(self) -> str:
        return self.template.model.name

    @property
    def console(self) -> Console:
        return self.template.console

    def clock(self) -> float:
        return self.template.clock()

    def plan(self, matrix: Matrix) -> Plan:
        """Plan what a matrix would measure on this machine.

        The package index is asked for runtimes that are unknown here and, where the matrix names none, for the newest
        one. Raises Usage where the matrix names versions of a farm or does not fit the model, or nothing sensible can
        be planned.
        """
        user_files.check_against_model(matrix, self.user_inputs, model=self.template.preparation.model)
        run = self.template
        if matrix.models:
            raise Usage(
                f"models names {', '.join(matrix.models)}, versions of a farm: submit the matrix there, or measure two "
                "models here with `onnxfarm compare BASE.onnx NEW.onnx`."
            )
        if any(opset != "as-is" for opset in matrix.axes.get("opset", ())):
            self._update_facts(
                lambda prepared: {
                    "opset_reach": orders.find_opset_range(prepared.model.folder, prepared.model.main) or OpsetReach()
                }
            )
        runtimes = [runtime for runtime in matrix.axes.get("runtime", ()) if isinstance(runtime, Runtime)]
        unknown = [runtime for runtime in runtimes if unknown_sentence(runtime)]
        home = run.home.folder
        self.releases = tuple(dict.fromkeys((*self.releases, *release_index.find_unknown_runtimes(unknown, home=home))))
        newest = None if runtimes else release_index.find_newest_release(home=home, with_prereleases=matrix.pre)
        if not runtimes and newest is None:
            self.console.print(f"{release_index.SILENT} The newest release known here is measured.", highlight=False)
        known_releases = Known(releases=(*self.releases, newest or NEWEST), newest=newest or NEWEST)
        facts = read_facts(busy_window_s=0)
        machine = NodeOffer(
            id=facts.hostname,
            tags=frozenset(list_machine_tags(facts)),
            cores=facts.logical_cores,
            loads=RuntimeStore(run.home.runtimes).list_loads(),
        )
        planned = planner.plan(
            matrix,
            (run.model, *run.beside),
            seed=run.seed,
            known=known_releases,
            machine=machine,
            with_null_pair=self.with_null_pair,
        )
        if planned.problem is not None:
            raise Usage(planned.problem)
        return planned.model_copy(update={"refused": tuple(map(self._name_path, planned.refused))})

    def _name_path(self, point: RefusedPoint) -> RefusedPoint:
        """Put the model's path into the command of a way out, because planning knows only the file's name."""
        way_out, name = point.way_out, file_argument(self.template.model.main)
        if way_out is None or name not in (words := shlex.split(way_out.command)) or self.template.beside:
            return point
        words[words.index(name)] = file_argument(str(self.path))
        return point.model_copy(update={"way_out": way_out.model_copy(update={"command": shlex.join(words)})})

    def add_default_shapes(self, matrix: Matrix) -> Matrix:
        """Add the default sizes of a decoder to a matrix without sizes, and print a hint about generating."""
        model = self.template.preparation.model
        extended = user_files.add_prompt_shapes(matrix, self.user_inputs, model=model)
        if extended is not matrix and not self.template.model.generation_problem:
            self.console.print(decoders.HINT, highlight=False, soft_wrap=True)
        return extended

    def set_evaluation(self, data: Path, recipe: Judging) -> None:
        """Set the labelled data on which every cell is judged, and the recipe. Raises Usage when they do not fit."""
        run = self.template
        if isinstance(recipe, UserJudge):
            run.judge = JudgeFile(
                user_files.read_judge_source(recipe), recipe.path.name, recipe.function, recipe.lower_is_better
            )
        for number, preparation in enumerate(run.preparation.all):
            preparation.evaluation = user_files.import_evaluation(
                preparation.model, data, recipe=recipe, folder=_make_model_folder(run.scratch, number), files=run.files
            )

    def set_calibration(self, data: Path) -> None:
        """Set the calibration data of static recipes, and print a warning of few. Raises Usage when they do not fit."""
        run = self.template
        for number, preparation in enumerate(run.preparation.all):
            samples, count = user_files.import_calibration(
                preparation.model, data, folder=_make_model_folder(run.scratch, number), files=run.files
            )
            preparation.calibration = samples
        self._update_facts(
            lambda prepared: {"calibration_sha256": prepared.calibration and prepared.calibration.sha256}
        )
        if make_sample_warning(count):
            run.console.print(make_sample_warning(count), highlight=False, soft_wrap=True)

    def save_variant(self, spec: CellSpec, folder: Path) -> Path:
        """Write the model that a cell runs into a folder, and return the path of its .onnx.

        Raises Usage where it cannot be written, and WorkshopError where it cannot be made.
        """
        bundle = self.template.preparation.make_variant(spec)
        for file in bundle.files:
            write_bytes(self.template.files.paths[file.sha256].read_bytes(), folder / file.name)
        return folder / bundle.main

    def _update_facts(self, find_changes: Callable[[Preparation], Mapping[str, object]]) -> None:
        """Update the facts of each model by what `find_changes` returns for its preparation."""
        run = self.template
        models = zip((run.model, *run.beside), run.preparation.all, strict=True)
        run.model, *others = (facts.model_copy(update=find_changes(prepared)) for facts, prepared in models)
        run.beside = tuple(others)

    def measure(self, plan: Plan) -> Document:
        """Measure a plan; the next measurement has no A/A pair unless it is asked for again.

        Raises Stopped, which holds the document so far, where the measurement was stopped or is late.
        """
        document = self.template.measure(plan)
        self.with_null_pair = False
        if self.template.is_cancelled():
            raise Stopped("Stopped before the end.", document)
        return document


def reshape_plan(plan: Plan, reshape: Reshape) -> Plan:
    return plan.model_copy(update={"blocks": tuple(reshape(block) for block in plan.blocks)})


def select_comparisons(
    block: PlannedBlock,
    *,
    axis: str = "runtime",
    max_rounds: int = MAX_ROUNDS,
    rounds: int | None = None,
    is_of_pipeline: bool = False,
) -> PlannedBlock:
    """Return the block with only its A/A pair and its comparisons along one axis, to be measured longer.

    Its maximum of rounds is raised to `max_rounds`, unless it is higher already. `rounds`: a maximum that the user set,
    which is kept even where rounds are disturbed.
    """
    pairs = tuple(comparison for comparison in block.comparisons if comparison.axis in (axis, TWIN))
    changes = {"comparisons": pairs, "is_of_pipeline": is_of_pipeline, "max_rounds": max(block.max_rounds, max_rounds)}
    compared = block.model_copy(update=changes)
    return compared if rounds is None else limit_rounds(compared, rounds)


def limit_rounds(block: PlannedBlock, rounds: int) -> PlannedBlock:
    """Return the block with a maximum of `rounds` rounds, and with enough time for them on a busy machine.

    Rounds that were disturbed are then not replaced by further ones.
    """
    longer = max(1.0, rounds / ROUNDS[block.budget].most)
    changes = {
        "max_rounds": rounds,
        "min_rounds": min(block.min_rounds, rounds),
        "is_replacing": False,
        "block_timeout_s": min(BLOCK_TIMEOUT_CEILING_S, longer * block.block_timeout_s),
    }
    return block.model_copy(update=changes)


def measure_once(
    subject: Subject,
    matrix: Matrix,
    *,
    home: Path,
    console: Console,
    beside: Subject | None = None,
    evaluation: Path | None = None,
    recipe: Judging = "",
) -> Document:
    """Measure a model on this machine, or two models side by side, and return the bench document.

    Of two models, only the comparisons of both are made. They are judged on the labelled data of `evaluation` by
    `recipe`. Raises Usage, Infrastructure and Stopped.
    """
    with open_workbench(subject, beside=beside, home=home, console=console) as bench:
        if evaluation is not None:
            bench.set_evaluation(evaluation, recipe)
        plan = bench.plan(matrix)
        if beside is not None:
            plan = reshape_plan(plan, lambda block: select_comparisons(block, axis="model"))
        return bench.measure(plan)


def measure_for_search(
    bench: Bench, matrix: Matrix, reshape: Reshape, *, is_announced: bool = False
) -> tuple[Measured, Plan]:
    """Measure a matrix with each block changed by `reshape`. Return the measurement for a search, and the plan.

    `is_announced`: the plan's size and time are printed first. Raises Usage, Infrastructure and Stopped.
    """
    plan = reshape_plan(bench.plan(matrix), reshape)
    if is_announced and (announcement := planner.describe_plan(plan)):
        print_lines(announcement, console=bench.console)
    document = bench.measure(plan)
    return Measured(matrix, document, positions_by_id(plan.blocks, plan.refused).__getitem__), plan


@dataclass
class Machine:
    """This machine as the bench of a search. `reshape` sets the comparisons and rounds of each block."""

    bench: Bench
    reshape: Reshape
    is_announcing: bool = False

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Print the title of an experiment, measure it, and return what the search reads in the measurement.

        Raises Usage, Infrastructure and Stopped.
        """
        if experiment.title:
            print_lines(experiment.title, console=self.bench.console)
        measured, _ = measure_for_search(self.bench, experiment.matrix, self.reshape, is_announced=self.is_announcing)
        return search.read(experiment.asked, measured)


@contextlib.contextmanager
def open_workbench(
    subject: Subject,
    *,
    home: Path,
    console: Console,
    releases: Sequence[Runtime] = (),
    is_late: Callable[[], bool] = lambda: False,
    beside: Subject | None = None,
) -> Iterator[Workbench]:
    """Copy and inspect a subject, and yield a workbench for it, whose scratch folder is deleted after the `with`.

    Measuring ends on Ctrl-C, and once `is_late` returns True. `beside`: another model, which is measured in the same
    blocks and compared with the first. Raises Usage and Infrastructure.
    """
    if subject.expected is not None and subject.inputs is None:
        raise Usage("--expected holds the outputs of certain inputs: give those with --inputs.")
    with make_scratch_folder(home) as folder, bench.stop_on_signals() as is_stopped:
        files = bundle.LocalFiles()
        with progress.report_meanwhile(f"reading {subject.model.name}", console=console):
            facts, preparation = _import_subject(subject, folder=folder, files=files)
        if beside is not None:
            with progress.report_meanwhile(f"reading {beside.model.name}", console=console):
                other, preparation.beside = _import_subject(beside, folder=_make_model_folder(folder, 1), files=files)
            contents = [{file.sha256 for file in prepared.model.bundle.files} for prepared in preparation.all]
            if contents[0] == contents[1]:
                raise Usage(
                    f"{subject.model} and {beside.model} are the same model, byte for byte: give two that differ."
                )
            facts, other = _align_models(facts, other, console=console)
        template = bench.Run(
            home=bench.Home(home.resolve()),
            scratch=folder,
            files=files,
            model=facts,
            preparation=preparation,
            console=console,
            beside=() if beside is None else (other,),
            seed=subject.seed,
            command=shlex.join(["onnxfarm", *sys.argv[1:]]),
            is_cancelled=lambda: is_stopped() or is_late(),
        )
        yield Workbench(template, subject.model, releases=tuple(releases), user_inputs=preparation.user_inputs)


def _import_subject(subject: Subject, *, folder: Path, files: bundle.LocalFiles) -> tuple[ModelFacts, Preparation]:
    """Import the model and the files beside it. Return the facts for planning, and its preparation."""
    imported = bundle.import_model(subject.model, source=subject.source, folder=folder / "model", files=files)
    user_inputs = user_files.import_inputs(
        imported, inputs=subject.inputs, expected=subject.expected, folder=folder, files=files
    )
    facts = imported.make_facts(inputs=user_inputs.inputs, inputs_batch=user_inputs.batch, sizes=user_inputs.sizes)
    if (prompts := subject.prompts or imported.prompts) is not None:
        prompt_file, prompt_facts = user_files.import_prompts(imported, prompts, folder=folder, files=files)
        user_inputs = replace(user_inputs, prompts=prompt_file)
        facts = facts.model_copy(update={"prompts": prompt_facts})
    work = folder / "made"
    return facts, Preparation(model=imported, files=files, user_inputs=user_inputs, folder=work, say=lambda text: None)


def _align_models(facts: ModelFacts, other: ModelFacts, *, console: Console) -> tuple[ModelFacts, ModelFacts]:
    """Give two models different names, and the same inputs where they take the same ones. Raises Usage."""
    if facts.name == other.name:
        facts, other = (
            side.model_copy(update={"name": f"{role} {side.name}"}) for side, role in ((facts, "base"), (other, "new"))
        )
    (facts, other), apart = side_by_side.align_models([facts, other])
    if apart:
        print_lines(f"They take different inputs ({apart}): compared by time alone.", console=console)
    return facts, other


def _make_model_folder(scratch: Path, number: int) -> Path:
    """Make the folder for the files of a model: for the first, number 0, it is the scratch folder itself."""
    folder = scratch / f"model-{number}" if number else scratch
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def make_scratch_folder(home: Path, prefix: str = "bench-") -> Iterator[Path]:
    """Make a folder below the home, and delete it after the `with`. Raises Infrastructure when it cannot be made.

    A home that is made here is private. One that exists may be shared on purpose, and keeps its mode.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=prefix, dir=home)
    except OSError as problem:
        raise Infrastructure(
            f"{home} cannot be written ({problem.strerror}): give another folder with --home."
        ) from problem
    with scratch as name, check_free_space(home, way_out=WAY_OUT):
        yield Path(name).resolve()
