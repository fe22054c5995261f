"""Measures the blocks of a plan on this machine, as a farm's node would, and makes the bench document of them."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from rich.console import Console

from farm.contract.blocks import BlockOrder
from farm.contract.document import Document
from farm.contract.reports import Facts, Reply, Report
from farm.rules.judging.block_verdicts import BlockJudge
from farm.rules.planning.plans import Plan, PlannedBlock
from farm.rules.reporting import documents, timings
from farm.rules.reporting.records import BlockRecord, RunRecord
from farm.rules.runtimes.models import ModelFacts
from onnxfarm.here.bundle import LocalFiles
from onnxfarm.here.orders import Preparation
from onnxfarm.here.progress import Follower, follow_blocks
from onnxfarm.here.release_index import WHEELS
from onnxfarm.problems import Infrastructure, Stopped
from worker.agent.execution import execute_block
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.environment import JudgeFile, NodeEnvironment
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.installation.stages import stage_runner
from worker.agent.machine import host_lock
from worker.agent.machine.facts import read_facts

# how many seconds to wait while another measurement has the machine
LOCK_PATIENCE_S = 3600.0


class Execute(Protocol):
    """Measures a block by its order: `worker.agent.execution.execute_block`, or a function that does only a part."""

    def __call__(
        self,
        order: BlockOrder,
        *,
        report: Callable[[Report], Reply],
        environment: NodeEnvironment,
        is_cancelled: Callable[[], bool],
    ) -> None: ...


@dataclass(frozen=True)
class Home:
    """The folder in which commands that measure here store runtimes, wheels and runners for their next call.

    `stages`: the folder of the runners. None of the folders has to exist.
    """

    folder: Path

    @property
    def runtimes(self) -> Path:
        return self.folder / "runtimes"

    @property
    def wheels(self) -> Path:
        return self.folder / WHEELS

    @property
    def stages(self) -> Path:
        return self.folder / "runners"


@dataclass
class Measurer:
    """Measures plans on this machine with these settings.

    `scratch`: a folder for temporary files. `model`: what planning knows of the model. `preparation`: makes the orders
    of blocks, with variants and inputs.
    """

    home: Home
    scratch: Path
    files: LocalFiles
    model: ModelFacts
    preparation: Preparation
    console: Console
    # further models, which are measured in the same blocks
    other_models: tuple[ModelFacts, ...] = ()
    seed: int = 0
    # the command that the user typed, for the document
    command: str = ""
    # measuring ends once this returns True
    is_cancelled: Callable[[], bool] = lambda: False
    # the folder for a CSV file of each cell with all its timings; None: no such files
    timings_dir: Path | None = None
    # measures a block, or only judges it on labelled data
    execute: Execute = execute_block
    # packages that are allowed as runtimes in addition to the known distributions
    allowed_packages: frozenset[str] = frozenset()
    # the user's function that judges in place of a recipe
    judge: JudgeFile | None = None
    _facts: Facts | None = field(default=None, init=False)
    _waited_s: float = field(default=0.0, init=False)
    _waiting_since: float | None = field(default=None, init=False)

    def clock(self) -> float:
        """Return the seconds of a clock that stops while another measurement has the machine.

        Only differences of two readings mean anything.
        """
        return (self._waiting_since or time.monotonic()) - self._waited_s

    def measure(self, plan: Plan) -> Document:
        """Measure every block of a plan, show the progress, and return the bench document.

        Once `is_cancelled` returns True, measuring ends, and the document has what was measured until then; nothing is
        raised. A block that only waited for the machine then is left out. Arms that cannot be prepared are in the
        document with the reason. Raises Infrastructure if another measurement has the machine for more than
        LOCK_PATIENCE_S seconds, or if the timings cannot be written.
        """
        records: list[BlockRecord] = []
        with follow_blocks(plan.blocks, console=self.console) as follower:
            for preparation in self.preparation.all:
                preparation.on_activity = follower.show_activity
            for number, block in enumerate(plan.blocks, start=1):
                if self.is_cancelled():
                    break
                follower.start_block(block, number=number)
                with contextlib.suppress(Stopped):
                    records.append(self._measure_block(block, follower=follower))
        facts = self._facts or read_facts(busy_window_s=0)
        references: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for preparation in self.preparation.all:
            references |= preparation.references
            sizes |= preparation.sizes
        return documents.assemble(
            RunRecord(
                model=self.model,
                other_models=self.other_models,
                blocks=records,
                refused=plan.refused,
                machine=facts.model_dump(mode="json"),
                seed=self.seed,
                budget=plan.budget,
                references=references,
                sizes=sizes,
                created_at=datetime.now(UTC).isoformat(timespec="seconds"),
                command=self.command,
            )
        )

    def _measure_block(self, block: PlannedBlock, *, follower: Follower) -> BlockRecord:
        judge = BlockJudge(block)
        reports: list[Report] = []

        def report(message: Report) -> Reply:
            reports.append(message)
            follower.count_report(message)
            return judge.take(message)

        order, refused = self.preparation.make_order(block, seed=self.seed)
        for check in refused:
            report(check)
        if order is not None:
            with self._hold_machine(follower):
                self.execute(
                    order, report=report, environment=self._make_environment(follower), is_cancelled=self.is_cancelled
                )
        if self.timings_dir is not None:
            write_timing_files(judge, self.timings_dir)
        return BlockRecord(block=block, reports=tuple(reports), node=self._facts.hostname if self._facts else None)

    def _make_environment(self, follower: Follower) -> NodeEnvironment:
        def read_and_store_facts() -> Facts:
            self._facts = read_facts()
            return self._facts

        say = follower.show_activity
        return NodeEnvironment(
            runtimes=RuntimeStore(self.home.runtimes, say=say, allowed=self.allowed_packages, wheels=self.home.wheels),
            cache=ArtifactCache(self.scratch / "cache", fetch=self.files.fetch),
            stage=stage_runner(self.home.stages),
            work_dir=self.scratch / "work",
            read_facts=read_and_store_facts,
            say=say,
            judge=self.judge,
        )

    @contextlib.contextmanager
    def _hold_machine(self, follower: Follower) -> Iterator[None]:
        """Lock the machine inside the `with`. Raises Stopped on Ctrl-C, and Infrastructure if others keep the lock."""
        self._waiting_since = time.monotonic()
        try:
            with host_lock.hold_machine(
                patience_s=LOCK_PATIENCE_S, is_cancelled=self.is_cancelled, on_wait=follower.show_wait
            ):
                self._waited_s += time.monotonic() - self._waiting_since
                self._waiting_since = None
                follower.clear_activity()
                yield
        except host_lock.BusyError as problem:
            if self.is_cancelled():
                raise Stopped("Stopped before the end.") from problem
            raise Infrastructure(f"{problem} Try again when it has ended.") from problem


def write_timing_files(judge: BlockJudge, folder: Path) -> None:
    """Write all timings of each arm of a block into the existing `folder`, to ID.timings.csv. ID: the cell's id.

    Raises Infrastructure if that fails.
    """
    try:
        for arm in judge.block.arms:
            with (folder / f"{arm.id}.timings.csv").open("w", encoding="utf-8") as file:
                file.writelines(timings.format_csv_lines(judge.evidence, arm.arm))
    except OSError as problem:
        raise Infrastructure(
            f"Timings cannot be written to {folder} ({problem.strerror}): is the disk full?"
        ) from problem


@contextlib.contextmanager
def catch_stop_signals(
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
) -> Iterator[Callable[[], bool]]:
    """Catch signals inside the `with`, and yield a function that returns True once one has come.

    A measurement can then end properly, and what was measured is not lost. In a thread other than the main one, no
    signal is caught, and the function always returns False.
    """
    stop = threading.Event()
    # Python lets only the main thread set handlers
    signals = signals if threading.current_thread() is threading.main_thread() else ()
    earlier_handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        yield stop.is_set
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)
