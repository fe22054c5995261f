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
from farm.rules.generation import decoders
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning import beside as side_by_side
from farm.rules.planning import planner
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import BLOCK_TIMEOUT_CEILING_S, ROUNDS
from farm.rules.planning.plans import NodeOffer, Plan, PlannedBlock, positions_by_id
from farm.rules.runtimes.conversions import OpsetReach
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.releases import NEWEST, Known, unknown_sentence
from farm.rules.searches.search import Experiment, Measured, Outcome, Search
from farm.workshop import orders
from onnxfarm.calibration_files import warn_of_few_samples
from onnxfarm.disk_space import WAY_OUT, check_free_space
from onnxfarm.here import bench, bundle, progress, release_index
from onnxfarm.here import user_files as bench_given
from onnxfarm.here.orders import Given, Preparation
from onnxfarm.outputs import print_lines, write_bytes
from onnxfarm.problems import Infrastructure, Stopped, Usage
from onnxfarm.subject import Judging, OwnJudge, Subject
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

    def clock(self) -> float:
        """Seconds, which stand still while another measurement has the machine."""

    def plan(self, matrix: Matrix) -> Plan:
        """What would be measured. Raises Usage when the matrix cannot be meant."""

    def measure(self, plan: Plan) -> Document:
        """Measure a plan, perhaps a reshaped one. Raises Stopped, and Infrastructure when the machine is taken."""


@dataclass
class Workbench:
    """This machine. `releases`: runtimes that exist beyond those known here."""

    template: bench.Run
    releases: tuple[Runtime, ...] = ()
    given: Given = field(default_factory=Given)
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
        bench_given.check_against_model(matrix, self.given, model=self.template.preparation.model)
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
        return found

    def from_defaults(self, matrix: Matrix) -> Matrix:
        """The matrix with what a decoder is measured with where nobody says; how its users feel it is a hint."""
        model = self.template.preparation.model
        whole = bench_given.add_prompt(matrix, self.given, model=model)
        if whole is not matrix and not self.template.model.generation_problem:
            self.console.print(decoders.HINT, highlight=False, soft_wrap=True)
        return whole

    def label(self, data: Path, recipe: Judging) -> None:
        """Judge every cell on labelled data. Raises Usage when they do not fit the model."""
        run = self.template
        if isinstance(recipe, OwnJudge):
            run.judge = JudgeFile(
                bench_given.read_judge_source(recipe), recipe.path.name, recipe.function, recipe.lower_is_better
            )
        for number, preparation in enumerate(run.preparation.all):
            preparation.evaluation = bench_given.take_evaluation(
                preparation.model, data, recipe=recipe, folder=_folder(run.scratch, number), files=run.files
            )

    def calibrate(self, data: Path) -> None:
        """Read the ranges of static recipes off these samples. Raises Usage when they do not fit the model."""
        run = self.template
        for number, preparation in enumerate(run.preparation.all):
            samples, count = bench_given.take_calibration(
                preparation.model, data, folder=_folder(run.scratch, number), files=run.files
            )
            preparation.calibration = samples
        self._note(lambda made: {"calibration_sha256": made.calibration and made.calibration.sha256})
        if warn_of_few_samples(count):
            run.console.print(warn_of_few_samples(count), highlight=False, soft_wrap=True)

    def save(self, spec: CellSpec, folder: Path) -> Path:
        """Writes the model that a cell runs into a folder, and says where its main file is. Raises Usage."""
        bundle = self.template.preparation.variant(spec)
        for file in bundle.files:
            write_bytes(self.template.files.paths[file.sha256].read_bytes(), folder / file.name)
        return folder / bundle.main

    def _note(self, found: Callable[[Preparation], Mapping[str, object]]) -> None:
        """Adds to the facts of each model what was found of it."""
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


def compare_along(
    block: PlannedBlock,
    *,
    axis: str = "runtime",
    max_rounds: int = MAX_ROUNDS,
    rounds: int | None = None,
    is_of_pipeline: bool = False,
) -> PlannedBlock:
    """The block with its comparisons along one axis, and its A/A pair, which go on while one of them is undecided.

    `rounds`: what somebody asked for, so that no more are measured, whatever the budget has and other work disturbs.
    """
    pairs = tuple(comparison for comparison in block.comparisons if comparison.axis in (axis, TWIN))
    changes: dict[str, object] = {
        "comparisons": pairs,
        "is_of_pipeline": is_of_pipeline,
        "max_rounds": max(block.max_rounds, max_rounds),
    }
    compared = block.model_copy(update=changes)
    return compared if rounds is None else with_rounds(compared, rounds)


def with_rounds(block: PlannedBlock, rounds: int) -> PlannedBlock:
    """As somebody asked: no more rounds, and time for them on a busy machine too."""
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
    """A model, or two side by side with their comparisons alone, judged on labelled data where there are some.

    Raises Usage, Infrastructure and Stopped.
    """
    with open_workbench(subject, beside=beside, home=home, console=console) as bench:
        if evaluation is not None:
            bench.label(evaluation, recipe)
        plan = bench.plan(matrix)
        if beside is not None:
            plan = reshape_plan(plan, lambda block: compare_along(block, axis="model"))
        return bench.measure(plan)


def measure_for_search(
    bench: Bench, matrix: Matrix, reshape: Reshape, *, is_announced: bool = False
) -> tuple[Measured, Plan]:
    """A matrix as a search reads it, and its plan with each of its blocks changed. `is_announced`: what it takes."""
    plan = reshape_plan(bench.plan(matrix), reshape)
    if is_announced and (told := planner.describe_plan(plan)):
        print_lines(told, console=bench.console)
    document = bench.measure(plan)
    return Measured(matrix, document, positions_by_id(plan.blocks, plan.refused).__getitem__), plan


@dataclass
class Machine:
    """This machine as the bench of a search. `reshape`: a block with the comparisons and rounds that it needs."""

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
    """The subject, inspected, with its own scratch folder, until the `with` ends. Raises Usage, Infrastructure.

    `beside`: another model, measured in the same blocks and compared with the first.
    """
    if subject.expected is not None and subject.inputs is None:
        raise Usage("--expected holds the outputs of certain inputs: give those with --inputs.")
    with make_scratch_folder(home) as folder, bench.stop_on_signals() as is_stopped:
        files = bundle.LocalFiles()
        with progress.report_meanwhile(f"reading {subject.model.name}", console=console):
            facts, preparation = _taken_in(subject, folder=folder, files=files)
        if beside is not None:
            with progress.report_meanwhile(f"reading {beside.model.name}", console=console):
                other, preparation.beside = _taken_in(beside, folder=_folder(folder, 1), files=files)
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
        yield Workbench(template, releases=tuple(releases), given=preparation.given)


def _taken_in(subject: Subject, *, folder: Path, files: bundle.LocalFiles) -> tuple[ModelFacts, Preparation]:
    """The model with what is given beside it. Raises Usage, Infrastructure."""
    uploaded = bundle.import_model(subject.model, source=subject.source, folder=folder / "model", files=files)
    given = bench_given.take_given(
        uploaded, inputs=subject.inputs, expected=subject.expected, folder=folder, files=files
    )
    facts = uploaded.facts(inputs=given.inputs, inputs_batch=given.batch, sizes=given.sizes)
    if (prompts := subject.prompts or uploaded.prompts) is not None:
        kept, known = bench_given.take_prompts(uploaded, prompts, folder=folder, files=files)
        given, facts = replace(given, prompts=kept), facts.model_copy(update={"prompts": known})
    made = folder / "made"
    return facts, Preparation(model=uploaded, files=files, given=given, folder=made, say=lambda text: None)


def _side_by_side(facts: ModelFacts, other: ModelFacts, *, console: Console) -> tuple[ModelFacts, ModelFacts]:
    """Two models under names of their own, given the same where they take the same. Raises Usage."""
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
    """A folder of one's own under the home. Raises Infrastructure when the home takes none.

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
