"""Imports a model once, and measures it on this machine with one matrix after another."""

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

# the maximum of rounds of a quick block, even if a comparison is undecided
MAX_ROUNDS = 24

Reshape = Callable[[PlannedBlock], PlannedBlock]


class Bench(Protocol):
    """A model, and a machine that measures it by one plan after another. `name`: what the model is called."""

    @property
    def name(self) -> str: ...

    @property
    def console(self) -> Console: ...

    def clock(self) -> float:
        """Return the seconds of a clock that stops while another measurement has the machine."""

    def plan(self, matrix: Matrix) -> Plan:
        """Plan a matrix, without measuring anything. Raises Usage if it does not fit the model."""

    def measure(self, plan: Plan) -> Document:
        """Measure a plan. Raises Stopped on Ctrl-C, and Infrastructure if another program keeps the machine."""


@dataclass
class Workbench:
    """A model and this machine, as a `Bench`. `path`: the model's path, as on the command line.

    `releases`: runtimes that exist, but that this version does not know. `with_null_pair`: measure an A/A pair too, the
    next time only.
    """

    measurer: bench.Measurer
    path: Path
    releases: tuple[Runtime, ...] = ()
    user_inputs: UserInputs = field(default_factory=UserInputs)
    with_null_pair: bool = False

    @property
    def name(self) -> str:
        return self.measurer.model.name

    @property
    def console(self) -> Console:
        return self.measurer.console

    def clock(self) -> float:
        return self.measurer.clock()

    def plan(self, matrix: Matrix) -> Plan:
        """Plan a matrix for this machine. A matrix without runtimes gets the newest release of the package index.

        If the index does not answer, a line says so, and the newest one known here is taken. Raises Usage if the matrix
        names a farm's versions, does not fit the model, or cannot be planned, and Infrastructure for a failed download.
        """
        user_files.check_against_model(matrix, self.user_inputs, model=self.measurer.preparation.model)
        measurer = self.measurer
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

        # find runtimes that this version does not know
        runtimes = [runtime for runtime in matrix.axes.get("runtime", ()) if isinstance(runtime, Runtime)]
        unknown = [runtime for runtime in runtimes if unknown_sentence(runtime)]
        home = measurer.home.folder
        self.releases = tuple(dict.fromkeys((*self.releases, *release_index.find_unknown_runtimes(unknown, home=home))))
        newest = None if runtimes else release_index.find_newest_release(home=home, with_prereleases=matrix.pre)
        if not runtimes and newest is None:
            self.console.print(f"{release_index.SILENT} The newest release known here is measured.", highlight=False)
        known = Known(releases=(*self.releases, newest or NEWEST), newest=newest or NEWEST)
        facts = read_facts(busy_window_s=0)
        machine = NodeOffer(
            id=facts.hostname,
            tags=frozenset(list_machine_tags(facts)),
            cores=facts.logical_cores,
            loads=RuntimeStore(measurer.home.runtimes).list_loads(),
        )
        planned = planner.plan(
            matrix,
            (measurer.model, *measurer.other_models),
            seed=measurer.seed,
            known=known,
            machine=machine,
            with_null_pair=self.with_null_pair,
        )
        if planned.problem is not None:
            raise Usage(planned.problem)
        return planned.model_copy(update={"refused": tuple(map(self._name_path, planned.refused))})

    def _name_path(self, point: RefusedPoint) -> RefusedPoint:
        """Return a refused point whose suggested command has the model's path, where planning wrote the file's name."""
        way_out, name = point.way_out, file_argument(self.measurer.model.main)
        if way_out is None or self.measurer.other_models:
            return point
        words = shlex.split(way_out.command)
        if name not in words:
            return point
        words[words.index(name)] = file_argument(str(self.path))
        return point.model_copy(update={"way_out": way_out.model_copy(update={"command": shlex.join(words)})})

    def add_default_shapes(self, matrix: Matrix) -> Matrix:
        """Add a prompt's sizes to a decoder's matrix without sizes, scenario, include or inputs. May print a hint."""
        model = self.measurer.preparation.model
        extended = user_files.add_prompt_shapes(matrix, self.user_inputs, model=model)
        if extended is not matrix and not self.measurer.model.generation_problem:
            self.console.print(decoders.HINT, highlight=False, soft_wrap=True)
        return extended

    def set_evaluation(self, data: Path, recipe: Judging) -> None:
        """Judge the cells of later measurements on labelled data, by `recipe`. Raises Usage if the data do not fit."""
        measurer = self.measurer
        if isinstance(recipe, UserJudge):
            measurer.judge = JudgeFile(
                user_files.read_judge_source(recipe), recipe.path.name, recipe.function, recipe.lower_is_better
            )
        for number, preparation in enumerate(measurer.preparation.all):
            folder = _make_model_folder(measurer.scratch, number)
            preparation.evaluation = user_files.import_evaluation(
                preparation.model, data, recipe=recipe, folder=folder, files=measurer.files
            )

    def set_calibration(self, data: Path) -> None:
        """Calibrate static recipes with these data; prints a hint if they are few. Raises Usage if they do not fit."""
        measurer = self.measurer
        for number, preparation in enumerate(measurer.preparation.all):
            preparation.calibration, sample_count = user_files.import_calibration(
                preparation.model, data, folder=_make_model_folder(measurer.scratch, number), files=measurer.files
            )
        self._update_facts(
            lambda prepared: {"calibration_sha256": prepared.calibration and prepared.calibration.sha256}
        )
        if warning := make_sample_warning(sample_count):
            measurer.console.print(warning, highlight=False, soft_wrap=True)

    def save_variant(self, spec: CellSpec, folder: Path) -> Path:
        """Write the files of the model that a cell runs into a folder, and return the path of its .onnx.

        Raises Usage if the model cannot be made or written.
        """
        with user_files.convert_workshop_errors():
            bundle = self.measurer.preparation.make_variant(spec)
        for file in bundle.files:
            write_bytes(self.measurer.files.paths[file.sha256].read_bytes(), folder / file.name)
        return folder / bundle.main

    def _update_facts(self, find_changes: Callable[[Preparation], Mapping[str, object]]) -> None:
        """Update the facts of each model with the fields that `find_changes` returns for its preparation."""
        measurer = self.measurer
        models = zip((measurer.model, *measurer.other_models), measurer.preparation.all, strict=True)
        measurer.model, *others = (facts.model_copy(update=find_changes(prepared)) for facts, prepared in models)
        measurer.other_models = tuple(others)

    def measure(self, plan: Plan) -> Document:
        """Measure a plan. Raises Stopped, with the document so far, on Ctrl-C or if it is late, and Infrastructure."""
        document = self.measurer.measure(plan)
        self.with_null_pair = False
        if self.measurer.is_cancelled():
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
    """Return the block with only its A/A pair and its comparisons on the axis `axis`, and with more rounds.

    Its maximum of rounds is at least `max_rounds`. `rounds`: the user's own maximum, see `limit_rounds`.
    `is_of_pipeline`: compare processor time, because a pipeline's machine is shared.
    """
    pairs = tuple(comparison for comparison in block.comparisons if comparison.axis in (axis, TWIN))
    changes = {"comparisons": pairs, "is_of_pipeline": is_of_pipeline, "max_rounds": max(block.max_rounds, max_rounds)}
    compared = block.model_copy(update=changes)
    return compared if rounds is None else limit_rounds(compared, rounds)


def limit_rounds(block: PlannedBlock, rounds: int) -> PlannedBlock:
    """Return the block with `rounds` as its maximum, even if it had a lower one, and with a timeout for as many.

    Disturbed rounds are not replaced by additional ones. The timeout is BLOCK_TIMEOUT_CEILING_S at most.
    """
    time_factor = max(1.0, rounds / ROUNDS[block.budget].maximum)
    changes = {
        "max_rounds": rounds,
        "min_rounds": min(block.min_rounds, rounds),
        "is_replacing": False,
        "block_timeout_s": min(BLOCK_TIMEOUT_CEILING_S, time_factor * block.block_timeout_s),
    }
    return block.model_copy(update=changes)


def measure_once(
    subject: Subject,
    matrix: Matrix,
    *,
    home: Path,
    console: Console,
    other: Subject | None = None,
    evaluation: Path | None = None,
    recipe: Judging = "",
) -> Document:
    """Measure a model on this machine, and return the bench document.

    `other`: a second model, which is measured in the same blocks; then only the two models are compared. `evaluation`:
    labelled data, on which cells are judged by `recipe`. Raises Usage, Infrastructure and Stopped.
    """
    with open_workbench(subject, other=other, home=home, console=console) as bench:
        if evaluation is not None:
            bench.set_evaluation(evaluation, recipe)
        plan = bench.plan(matrix)
        if other is not None:
            plan = reshape_plan(plan, lambda block: select_comparisons(block, axis="model"))
        return bench.measure(plan)


def measure_for_search(
    bench: Bench, matrix: Matrix, reshape: Reshape, *, prints_plan: bool = False
) -> tuple[Measured, Plan]:
    """Measure a matrix with each block changed by `reshape`. Return the measurement for a search, and the plan.

    `prints_plan`: print the plan's size and time first. Raises Usage, Infrastructure and Stopped.
    """
    plan = reshape_plan(bench.plan(matrix), reshape)
    if prints_plan and (description := planner.describe_plan(plan)):
        print_lines(description, console=bench.console)
    document = bench.measure(plan)
    return Measured(matrix, document, positions_by_id(plan.blocks, plan.refused).__getitem__), plan


@dataclass
class Machine:
    """Measures the experiments of a search on this machine. `reshape` sets each block's comparisons and rounds."""

    bench: Bench
    reshape: Reshape
    prints_plan: bool = False

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Print the title of an experiment, measure it, and return what the search reads in it.

        Raises Usage, Infrastructure and Stopped.
        """
        if experiment.title:
            print_lines(experiment.title, console=self.bench.console)
        measured, _ = measure_for_search(self.bench, experiment.matrix, self.reshape, prints_plan=self.prints_plan)
        return search.read(experiment.asked, measured)


@contextlib.contextmanager
def open_workbench(
    subject: Subject,
    *,
    home: Path,
    console: Console,
    releases: Sequence[Runtime] = (),
    is_late: Callable[[], bool] = lambda: False,
    other: Subject | None = None,
) -> Iterator[Workbench]:
    """Copy and inspect a model, and yield a workbench for it. Its scratch folder is deleted after the `with`.

    Measuring ends on Ctrl-C, and once `is_late` returns True. `other`: a second model, which is measured in the same
    blocks. `releases`: runtimes that this version does not know. Raises Usage, also for
    equal models, and Infrastructure.
    """
    if subject.expected is not None and subject.inputs is None:
        raise Usage("--expected holds the outputs of certain inputs: give those with --inputs.")
    with make_scratch_folder(home) as folder, bench.catch_stop_signals() as is_stopped:
        files = bundle.LocalFiles()
        with progress.print_periodically(f"reading {subject.model.name}", console=console):
            facts, preparation = _import_subject(subject, folder=folder, files=files)
        other_facts: list[ModelFacts] = []
        if other is not None:
            with progress.print_periodically(f"reading {other.model.name}", console=console):
                second, preparation.other = _import_subject(other, folder=_make_model_folder(folder, 1), files=files)
            contents = [{file.sha256 for file in prepared.model.bundle.files} for prepared in preparation.all]
            if contents[0] == contents[1]:
                raise Usage(
                    f"{subject.model} and {other.model} are the same model, byte for byte: give two that differ."
                )
            facts, *other_facts = _align_models(facts, second, console=console)
        measurer = bench.Measurer(
            home=bench.Home(home.resolve()),
            scratch=folder,
            files=files,
            model=facts,
            preparation=preparation,
            console=console,
            other_models=tuple(other_facts),
            seed=subject.seed,
            command=shlex.join(["onnxfarm", *sys.argv[1:]]),
            is_cancelled=lambda: is_stopped() or is_late(),
        )
        yield Workbench(measurer, subject.model, releases=tuple(releases), user_inputs=preparation.user_inputs)


def _import_subject(subject: Subject, *, folder: Path, files: bundle.LocalFiles) -> tuple[ModelFacts, Preparation]:
    """Import a model and the files given with it. Return its facts for planning, and its preparation."""
    imported = bundle.import_model(subject.model, source=subject.source, folder=folder / "model", files=files)
    user_inputs = user_files.import_inputs(
        imported, inputs=subject.inputs, expected=subject.expected, folder=folder, files=files
    )
    facts = imported.make_facts(inputs=user_inputs.inputs, inputs_batch=user_inputs.batch, sizes=user_inputs.sizes)
    if (prompts := subject.prompts or imported.prompts) is not None:
        prompt_file, prompt_facts = user_files.import_prompts(imported, prompts, folder=folder, files=files)
        user_inputs = replace(user_inputs, prompts=prompt_file)
        facts = facts.model_copy(update={"prompts": prompt_facts})
    return facts, Preparation(imported, files, user_inputs, folder / "made", on_activity=lambda text: None)


def _align_models(facts: ModelFacts, other: ModelFacts, *, console: Console) -> tuple[ModelFacts, ModelFacts]:
    """Give two models different names, and the same inputs if both take them. Prints a line if they do not."""
    if facts.name == other.name:
        facts = facts.model_copy(update={"name": f"base {facts.name}"})
        other = other.model_copy(update={"name": f"new {other.name}"})
    (facts, other), difference = side_by_side.align_models([facts, other])
    if difference:
        print_lines(f"They take different inputs ({difference}): compared by time alone.", console=console)
    return facts, other


def _make_model_folder(scratch: Path, number: int) -> Path:
    """Make the folder for the files of a model. For the first, number 0, it is the scratch folder itself."""
    folder = scratch / f"model-{number}" if number else scratch
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def make_scratch_folder(home: Path, prefix: str = "bench-") -> Iterator[Path]:
    """Make a temporary folder in the home, and delete it after the `with`.

    A new home is private; an existing one keeps its mode, because it may be shared on purpose. Raises Infrastructure if
    the folder cannot be made, or if its disk becomes full.
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
