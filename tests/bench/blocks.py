"""Real blocks for figures: a planned block of twin arms, measured by the product's own path, here and now.

What is real: the workshop's inputs and references, the agent's execution with its sandbox, the staged runner, the
installed runtime, the judge. What may be another: the windows inside a process, shortened by `shortened_windows`, and
the staged runner, from a source that a test changed.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.judging.counted_rounds import Paired
from farm.rules.matrices import matrix as matrices
from farm.rules.planning import planner, plans
from farm.rules.planning.plans import PlannedBlock
from farm.workshop.samples import builders
from onnxfarm.here.bundle import LocalFiles, import_model
from onnxfarm.here.home import default_home
from onnxfarm.here.orders import Preparation, UserInputs
from worker.agent.execution import execute_block
from worker.agent.installation import stages
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.machine import facts, host_lock
from worker.agent.measurement import orders
from worker.agent.measurement import samples as sampling

REFERENCE_MODELS = Path(__file__).resolve().parents[1] / "models"
RUNTIME = "onnxruntime==1.31.1"
LOCK_PATIENCE_S = 3600.0

# the quick budget but for its times: a fifth of the window, half the warm-up
SHORT: dict[str, Any] = {
    "warmup_s": 0.1,
    "warmup_cap_s": 1.0,
    "window_s": 0.1,
    "window_runs": 3,
    "window_runs_slow": 3,
    "windows_agreeing": 1,
    "at_most_s": 5.0,
}
# for tests, whose outcome is no time: one block of warm-up, however unsteady it is, and a window of a few turns
BRIEF = SHORT | {"warmup_s": 0.0, "warmup_cap_s": 0.05, "window_s": 0.05}


@dataclass(frozen=True)
class Subject:
    """A model to measure: one of the reference models or a sample, and the sizes of its dynamic dimensions."""

    name: str
    shapes: tuple[tuple[str, int], ...] = ()
    batch: int = 1
    is_sample: bool = False


SUBJECTS = {
    one.name: one
    for one in (
        Subject("cnn_dyn"),
        Subject("encoder_dyn", shapes=(("seq", 32),)),
        Subject("lstm", batch=8),
        Subject("mlp_external", batch=8),
        Subject("transformer", is_sample=True),
        Subject("convnet", is_sample=True),
    )
}


@contextlib.contextmanager
def shortened_windows(windows: Mapping[str, Any] = SHORT) -> Iterator[None]:
    """Every sample of every budget takes these windows meanwhile; the number of rounds stays the budget's.

    A traced cell is profiled for ten runs. However long the machine takes for them: the time that a budget promises is
    another test's.
    """
    with (
        mock.patch.object(orders, "make_budget_part", return_value=dict(windows)),
        mock.patch.object(orders, "TRACE_S", 0.05),
        mock.patch.object(plans, "PROMISE_FACTOR", 100.0),
    ):
        yield


@contextlib.contextmanager
def without_gate() -> Iterator[None]:
    """No sample counts as disturbed meanwhile, so that every launch counts however busy the machine is.

    The product does so for cells of several threads or of other providers than the CPU's.
    """
    with mock.patch.object(sampling, "is_contention_judged", return_value=False):
        yield


@contextlib.contextmanager
def brief_windows() -> Iterator[None]:
    """For tests whose outcome depends neither on how long a sample measures nor on what else the machine does."""
    with shortened_windows(BRIEF), without_gate():
        yield


@dataclass(frozen=True)
class Measured:
    """A block that was measured: its judge, how many processes it launched, and the seconds that it took."""

    judge: BlockJudge
    launches: int
    wall_s: float

    def deciding(self, comparison: int) -> Paired:
        """The rounds of a comparison of the block that its verdict rests on, by the product's choice of times."""
        return self.judge.pair_rounds(self.judge.block.comparisons[comparison])

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """(original, twin) p50 in ms, by round; rounds with a disturbed sample are left out."""
        return self.judge.evidence.pairs(0, 1)

    def sample_counts(self) -> dict[str, int]:
        """Samples taken, measured again, still disturbed, and unstable."""
        samples = [sample for arm in self.judge.block.arms for sample in self.judge.evidence.samples(arm.arm)]
        return {
            "samples": len(samples),
            "remeasured": sum(sample.remeasured for sample in samples),
            "disturbed": sum(sample.is_disturbed for sample in samples),
            "unstable": sum(not sample.is_stable for sample in samples),
        }


class Workplace:
    """One machine with its runtimes; `runner` is the source of the staged runner where it is not the product's."""

    def __init__(self, folder: Path, *, runtimes: Path, runner: Path = stages.RUNNER) -> None:
        self._folder = folder
        self._runtimes = RuntimeStore(runtimes)
        self._stage = stages.stage_runner(folder / "stage", source=runner)
        self._prepared: dict[Subject, tuple[Preparation, Any]] = {}

    def twin_block(self, subject: Subject, *, seed: int, budget: str = "quick", threads: int = 1) -> PlannedBlock:
        """A block of the model on one runtime and its A/A twin, as the farm plans it."""
        _, model = self._preparation(subject)
        declared: dict[str, Any] = {"runtime": [RUNTIME], "provider": ["cpu"], "threads": [threads]}
        declared |= {"batch": [subject.batch]}
        declared |= {"shapes": [dict(subject.shapes)]} if subject.shapes else {}
        matrix = matrices.parse({"budget": budget, "matrix": declared})
        (block,) = planner.plan(matrix, model, seed=0, with_null_pair=True).blocks
        # the order of the rounds is drawn from the block's name and seed
        return block.model_copy(update={"id": f"{subject.name}-{seed}"})

    def measure_twins(self, number: int, *, seed: int, pairs: int = 1) -> tuple[Subject, Measured]:
        """A model against itself, in so many pairs; number and seed say which model, and the order of its rounds."""
        subject = list(SUBJECTS.values())[number % len(SUBJECTS)]
        order_seed = 1_000 * seed + number
        block = with_pairs(self.twin_block(subject, seed=order_seed), pairs)
        return subject, self.measure(subject, block, seed=order_seed)

    def measure(self, subject: Subject, block: PlannedBlock, *, seed: int) -> Measured:
        """Measures the block while nothing else measures on this machine. Raises SystemExit when an arm fails."""
        preparation, _ = self._preparation(subject)
        order, refused = preparation.make_order(block, seed=seed)
        if order is None or refused:
            raise SystemExit(f"{subject.name} could not be prepared: {refused[0].reason}")
        judge = BlockJudge(block)
        with host_lock.hold_machine(patience_s=LOCK_PATIENCE_S):
            began = time.monotonic()
            execute_block(order, report=judge.take, environment=self._environment(), is_cancelled=lambda: False)
            wall_s = time.monotonic() - began
        for arm in block.arms:
            if (failure := judge.evidence.failure(arm.arm)) is not None:
                raise SystemExit(f"{subject.name}, arm {arm.arm}: {failure.text}")
        return Measured(judge, launches=_launches(judge), wall_s=wall_s)

    def _preparation(self, subject: Subject) -> tuple[Preparation, Any]:
        if subject not in self._prepared:
            folder = self._folder / subject.name
            files = LocalFiles()
            uploaded = import_model(_model_of(subject, folder / "source"), folder=folder / "model", files=files)
            made = Preparation(
                model=uploaded,
                files=files,
                user_inputs=UserInputs(),
                folder=folder / "made",
                on_activity=lambda text: None,
            )
            self._prepared[subject] = made, uploaded.make_facts(inputs=None, inputs_batch=None)
        return self._prepared[subject]

    def _environment(self) -> NodeEnvironment:
        files = {digest: path for made, _ in self._prepared.values() for digest, path in made.files.paths.items()}

        def fetch(digest: str, to: Path) -> None:
            to.write_bytes(files[digest].read_bytes())

        return NodeEnvironment(
            runtimes=self._runtimes,
            cache=ArtifactCache(self._folder / "cache", fetch=fetch),
            stage=self._stage,
            work_dir=self._folder / "work",
            read_facts=lambda: facts.read_facts(busy_window_s=0),
        )


def with_pairs(block: PlannedBlock, pairs: int) -> PlannedBlock:
    """A block of one cell and its twin, with so many pairs that share no launch: arms 0 and 1, 2 and 3, …"""
    first, (compared,) = block.arms[0], block.comparisons
    more = [
        first.model_copy(update={"arm": number, "id": f"{first.id}.twin{number}", "twin_of": 0})
        for number in range(2, 2 * pairs)
    ]
    return block.model_copy(
        update={
            "arms": (*block.arms, *more),
            "comparisons": tuple(
                compared.model_copy(update={"baseline": 2 * pair, "candidate": 2 * pair + 1}) for pair in range(pairs)
            ),
        }
        | {name: pairs * getattr(block, name) for name in ("minutes", "block_timeout_s", "once_s", "round_s")}
    )


def runtimes_of_bench() -> Path:
    """Where `onnxfarm bench` keeps its runtimes, so that a figure installs nothing twice."""
    return default_home() / "runtimes"


def digest_of_runner(source: Path = stages.RUNNER) -> str:
    """Names the runner that measured: figures of two runners are not one figure."""
    parts = [path.read_bytes() for path in sorted(source.glob("*.py"))]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _model_of(subject: Subject, folder: Path) -> Path:
    if subject.is_sample:
        return builders.write_model(subject.name, folder)
    return REFERENCE_MODELS / f"{subject.name}.onnx"


def _launches(judge: BlockJudge) -> int:
    """Processes of the samples, those that were measured again included."""
    places = [place for report in judge.evidence.rounds.values() for place in report.samples]
    return sum(1 + place.sample.remeasured for place in places if place.sample is not None)
