"""A model that is taken in once and measured several times on this machine, each time with another matrix."""

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

# a quick block goes on while something is undecided, up to the last of the looks that verdicts are made for
MAX_ROUNDS = 24

Reshape = Callable[[PlannedBlock], PlannedBlock]


class Bench(Protocol):
    """A model on a machine, to be measured with one plan after another."""

    @property
    def name(self) -> str: ...

    @property
    def console(self) -> Console: ...

    # seconds of a clock that stands still while another measurement has the machine
    def clock(self) -> float: ...

    def plan(self, matrix: Matrix) -> Plan:
        """Plan what a matrix would measure. Raises Usage when the matrix does not fit the model."""

    def measure(self, plan: Plan) -> Document:
        """Measure a plan. Raises Stopped by Ctrl-C, and Infrastructure when the machine is taken."""


@dataclass
class Workbench:
    """A model on this machine, as `Bench` says. `releases`: runtimes that exist beyond those known here."""

    template: bench.Run
    # as it was given on the command line
    path: Path
    releases: tuple[Runtime, ...] = ()
    given: UserInputs = field(default_factory=UserInputs)
    # whether what is measured next carries an A/A pair
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
        user_files.check_against_model(matrix, self.given, model=self.template.preparation.model)
        run = self.template
        if matrix.models:
            raise Usage(
                f"models names {', '.join(matrix.models)}, versions of a farm: submit the matrix there, or measure two "
                "models here with `onnxfarm compare BASE.onnx NEW.onnx`."
            )
        if any(wanted != "as-is" for wanted in matrix.axes.get("opset", ())):
            self._note(
                lambda made: {
                    "opset_reach": orders.find_opset_range(made.model.folder, made.model.main) or OpsetReach()
                }
            )
        asked = [runtime for runtime in matrix.axes.get("runtime", ()) if isinstance(runtime, Runtime)]
        unknown = [runtime for runtime in asked if unknown_sentence(runtime)]
        home = run.home.folder
        self.releases = tuple(dict.fromkeys((*self.releases, *release_index.find_unknown_runtimes(unknown, home=home))))
        newest = None if asked else release_index.find_newest_release(home=home, with_prereleases=matrix.pre)
        if not asked and newest is None:
            self.console.print(f"{release_index.SILENT} The newest release known here is measured.", highlight=False)
        known = Known(releases=(*self.releases, newest or NEWEST), newest=newest or NEWEST)
        facts = read_facts(busy_window_s=0)
        machine = NodeOffer(
            id=facts.hostname,
            tags=frozenset(list_machine_tags(facts)),
            cores=facts.logical_cores,
            loads=RuntimeStore(run.home.runtimes).list_loads(),
        )
        found = planner.plan(
            matrix,
            (run.model, *run.beside),
            seed=run.seed,
            known=known,
            machine=machine,
            with_null_pair=self.with_null_pair,
        )
        if found.problem is not None:
            raise Usage(found.problem)
        return found.model_copy(update={"refused": tuple(map(self._name_path, found.refused))})

    def _name_path(self, point: RefusedPoint) -> RefusedPoint:
        """Name the model in the command of a way out by its path; planning knows only the file's name."""
        way, name = point.way_out, file_argument(self.template.model.main)
        if way is None or name not in (words := shlex.split(way.command)) or self.template.beside:
            return point
        words[words.index(name)] = file_argument(str(self.path))
        return point.model_copy(update={"way_out": way.model_copy(update={"command": shlex.join(words)})})

    def add_default_shapes(self, matrix: Matrix) -> Matrix:
        """Add to a matrix the sizes that a decoder is measured with where nobody says, and print a hint for it."""
        model = self.template.preparation.model
        whole = user_files.add_prompt_shapes(matrix, self.given, model=model)
        if whole is not matrix and not self.template.model.generation_problem:
            self.console.print(decoders.HINT, highlight=False, soft_wrap=True)
        return whole

    def set_evaluation(self, data: Path, recipe: Judging) -> None:
        """Set the labelled data on which every cell is judged, and how. Raises Usage when they do not fit."""
        run = self.template
        if isinstance(recipe, UserJudge):
            run.judge = JudgeFile(
                user_files.read_judge_source(recipe), recipe.path.name, recipe.function, recipe.lower_is_better
            )
        for number, preparation in enumerate(run.preparation.all):
            preparation.evaluation = user_files.import_evaluation(
                preparation.model, data, recipe=recipe, folder=_folder(run.scratch, number), files=run.files
            )

    def set_calibration(self, data: Path) -> None:
        """Set the samples that give static recipes their ranges, and warn of few. Raises Usage for unfit ones."""
        run = self.template
        for number, preparation in enumerate(run.preparation.all):
            samples, count = user_files.import_calibration(
                preparation.model, data, folder=_folder(run.scratch, number), files=run.files
            )
            preparation.calibration = samples
        self._note(lambda made: {"calibration_sha256": made.calibration and made.calibration.sha256})
        if make_sample_warning(count):
            run.console.print(make_sample_warning(count), highlight=False, soft_wrap=True)

    def save_variant(self, spec: CellSpec, folder: Path) -> Path:
        """Write the model that a cell runs into a folder, and return the path of its .onnx. Raises Usage."""
        bundle = self.template.preparation.make_variant(spec)
        for file in bundle.files:
            write_bytes(self.template.files.paths[file.sha256].read_bytes(), folder / file.name)
        return folder / bundle.main

    def _note(self, found: Callable[[Preparation], Mapping[str, object]]) -> None:
        """Add to the facts of each model what `found` returns for it."""
        run = self.template
        models = zip((run.model, *run.beside), run.preparation.all, strict=True)
        run.model, *others = (facts.model_copy(update=found(made)) for facts, made in models)
        run.beside = tuple(others)

    def measure(self, plan: Plan) -> Document:
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
    """Return the block with only its comparisons along one axis and its A/A pair, for `max_rounds` rounds at least.

    `rounds`: what somebody asked for, so that no more are measured, whatever the budget has and other work disturbs.
    """
    pairs = tuple(comparison for comparison in block.comparisons if comparison.axis in (axis, TWIN))
    changes: dict[str, object] = {
        "comparisons": pairs,
        "is_of_pipeline": is_of_pipeline,
        "max_rounds": max(block.max_rounds, max_rounds),
    }
    compared = block.model_copy(update=changes)
    return compared if rounds is None else limit_rounds(compared, rounds)


def limit_rounds(block: PlannedBlock, rounds: int) -> PlannedBlock:
    """Return the block with `rounds` rounds at most, and with time for them on a busy machine too."""
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
    """Measure a model on this machine, or two side by side with their comparisons alone; return the bench document.

    Both are judged on the labelled data of `evaluation` by `recipe`. Raises Usage, Infrastructure and Stopped.
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
    """Measure a matrix, each of its blocks changed by `reshape`. Return what a search reads, and the plan.

    `is_announced`: what it will take is printed before. Raises Usage, Infrastructure and Stopped.
    """
    plan = reshape_plan(bench.plan(matrix), reshape)
    if is_announced and (announcement := planner.describe_plan(plan)):
        print_lines(announcement, console=bench.console)
    document = bench.measure(plan)
    return Measured(matrix, document, positions_by_id(plan.blocks, plan.refused).__getitem__), plan


@dataclass
class Machine:
    """This machine as the bench of a search. `reshape` gives a block the comparisons and rounds that it needs."""

    bench: Bench
    reshape: Reshape
    is_announcing: bool = False

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        if experiment.title:
            print_lines(experiment.title, console=self.bench.console)
        found, _ = measure_for_search(self.bench, experiment.matrix, self.reshape, is_announced=self.is_announcing)
        return search.read(experiment.asked, found)


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
    """Copy and inspect the subject, and yield a workbench for it; its scratch folder is deleted after the `with`.

    Ctrl-C ends what is measured. `is_late`: measuring ends once it is true. `beside`: another model, measured in the
    same blocks and compared with the first. Raises Usage and Infrastructure.
    """
    if subject.expected is not None and subject.inputs is None:
        raise Usage("--expected holds the outputs of certain inputs: give those with --inputs.")
    with make_scratch_folder(home) as folder, bench.stop_on_signals() as is_stopped:
        files = bundle.LocalFiles()
        with progress.report_meanwhile(f"reading {subject.model.name}", console=console):
            facts, preparation = _import_subject(subject, folder=folder, files=files)
        if beside is not None:
            with progress.report_meanwhile(f"reading {beside.model.name}", console=console):
                other, preparation.beside = _import_subject(beside, folder=_folder(folder, 1), files=files)
            contents = [{file.sha256 for file in made.model.bundle.files} for made in preparation.all]
            if contents[0] == contents[1]:
                raise Usage(
                    f"{subject.model} and {beside.model} are the same model, byte for byte: give two that differ."
                )
            facts, other = _side_by_side(facts, other, console=console)
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
        yield Workbench(template, subject.model, releases=tuple(releases), given=preparation.given)


def _import_subject(subject: Subject, *, folder: Path, files: bundle.LocalFiles) -> tuple[ModelFacts, Preparation]:
    """Import the model and what is given beside it. Raises Usage, Infrastructure."""
    uploaded = bundle.import_model(subject.model, source=subject.source, folder=folder / "model", files=files)
    given = user_files.import_inputs(
        uploaded, inputs=subject.inputs, expected=subject.expected, folder=folder, files=files
    )
    facts = uploaded.make_facts(inputs=given.inputs, inputs_batch=given.batch, sizes=given.sizes)
    if (prompts := subject.prompts or uploaded.prompts) is not None:
        kept, known = user_files.import_prompts(uploaded, prompts, folder=folder, files=files)
        given, facts = replace(given, prompts=kept), facts.model_copy(update={"prompts": known})
    made = folder / "made"
    return facts, Preparation(model=uploaded, files=files, given=given, folder=made, say=lambda text: None)


def _side_by_side(facts: ModelFacts, other: ModelFacts, *, console: Console) -> tuple[ModelFacts, ModelFacts]:
    """Give two models different names, and the same inputs where they take the same. Raises Usage."""
    if facts.name == other.name:
        facts, other = (
            side.model_copy(update={"name": f"{role} {side.name}"}) for side, role in ((facts, "base"), (other, "new"))
        )
    (facts, other), apart = side_by_side.align_models([facts, other])
    if apart:
        print_lines(f"They take different inputs ({apart}): compared by time alone.", console=console)
    return facts, other


def _folder(scratch: Path, number: int) -> Path:
    """Where the files of a model lie: of the first in the scratch folder itself."""
    folder = scratch / f"model-{number}" if number else scratch
    folder.mkdir(exist_ok=True)
    return folder


@contextlib.contextmanager
def make_scratch_folder(home: Path, prefix: str = "bench-") -> Iterator[Path]:
    """Make a folder below the home, and delete it after the `with`. Raises Infrastructure when it cannot be made.

    A home that is made here is its owner's alone; one that was there may be shared on purpose, and stays as it is.
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
