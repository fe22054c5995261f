"""Blocks for tests: real runtimes, real runners, files of the reference models."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime
from farm.contract.reports import CheckReport, EndReport, Facts, Reply, Report, RoundReport, TraceReport
from farm.workshop.divergence import find_first_divergence
from worker.agent.execution import execute_block
from worker.agent.installation.cache import ArtifactCache
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.installation.runtimes import RuntimeStore
from worker.agent.installation.stages import stage_runner

MODELS = Path(__file__).resolve().parents[2] / "models"
FACTS = Facts(hostname="test", os="test", arch="x86_64")
Kind = TypeVar("Kind", bound=Report)


def runtime_store() -> RuntimeStore:
    """Runtimes shared by all test runs of this user: installing one takes seconds and 140 MB."""
    chosen = os.environ.get("ONNXFARM_TEST_RUNTIMES")
    return RuntimeStore(Path(chosen or Path(tempfile.gettempdir()) / f"onnxfarm-test-runtimes-{os.getuid()}"))


def share_runtimes(home: Path) -> None:
    """Has a node's home, which may not be there yet, use them too."""
    shared = runtime_store().folder
    for folder in (shared, home):
        folder.mkdir(parents=True, exist_ok=True)
    (home / "runtimes").symlink_to(shared)


class Workbench:
    """A node without a farm: files by digest from a dictionary, reports into a list."""

    def __init__(self, folder: Path, *, stage: Path | None = None) -> None:
        self.files: dict[str, Path] = {}
        self.traces: dict[tuple[int, int], bytes] = {}
        self.environment = NodeEnvironment(
            runtimes=runtime_store(),
            cache=ArtifactCache(folder / "cache", fetch=lambda digest, to: shutil.copyfile(self.files[digest], to)),
            stage=stage or stage_runner(folder / "stage"),
            work_dir=folder / "work",
            store_trace=self._store,
            read_facts=lambda: FACTS,
            search=find_first_divergence,
        )

    def ref(self, path: Path, *, name: str | None = None) -> FileRef:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        self.files[digest] = path
        return FileRef(name=name or path.name, sha256=digest, bytes=len(content))

    def bundle(self, model: Path, *data: Path) -> Bundle:
        return Bundle(main=model.name, files=tuple(self.ref(path) for path in (model, *data)))

    def arm(
        self,
        number: int,
        model: Path,
        *,
        inputs: Path | None = None,
        expected: Path | None = None,
        data: Iterable[Path] = (),
        runtime: str = "onnxruntime==1.31.1",
        source: Path | None = None,
        **cell: Any,
    ) -> ArmOrder:
        """An arm of a reference model; `expected` is compared with when it is there."""
        bundle = self.bundle(model, *data)
        distribution, _, version = runtime.partition("==")
        reference = expected or model.with_name(f"{model.stem}.expected.npz")
        return ArmOrder(
            arm=number,
            cell=CellSpec(
                artifact_sha256=bundle.digest, runtime=Runtime(distribution=distribution, version=version), **cell
            ),
            bundle=bundle,
            source=self.bundle(source) if source else bundle,
            inputs=self.ref(inputs or model.with_name(f"{model.stem}.inputs.npz")),
            reference=self.ref(reference) if reference.exists() else None,
        )

    def execute(
        self,
        arms: Sequence[ArmOrder],
        *,
        rounds: int = 1,
        answer: Callable[[Report], Reply] | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        **order: Any,
    ) -> list[Report]:
        """Execute a block of these arms; what was reported, in order."""
        reports: list[Report] = []

        def report(message: Report) -> Reply:
            reports.append(message)
            if answer is not None:
                return answer(message)
            return Reply(go_on=not (isinstance(message, RoundReport) and message.round >= rounds - 1))

        block = BlockOrder(block="block", attempt=1, arms=tuple(arms), max_rounds=rounds, **order)
        execute_block(block, report=report, environment=self.environment, is_cancelled=is_cancelled)
        return reports

    def execute_until(self, arms: Sequence[ArmOrder], kind: type[Report], **order: Any) -> list[Report]:
        """As `execute`, but cancelled once every arm that loads has a report of this kind: no rounds are measured."""
        seen: list[Report] = []
        refused: list[int] = []

        def answer(message: Report) -> Reply:
            if isinstance(message, CheckReport) and message.reason is not None:
                refused.append(message.arm)
            if isinstance(message, kind):
                seen.append(message)
            return Reply()

        def is_over() -> bool:
            return len(seen) + (0 if kind is CheckReport else len(refused)) >= len(arms)

        return self.execute(arms, answer=answer, is_cancelled=is_over, **order)

    def _store(self, arm: int, trace_round: int, path: Path) -> str:
        self.traces[arm, trace_round] = path.read_bytes()
        return hashlib.sha256(self.traces[arm, trace_round]).hexdigest()


def of_kind(reports: Iterable[Report], kind: type[Kind]) -> list[Kind]:
    return [report for report in reports if isinstance(report, kind)]


def checks(reports: Iterable[Report]) -> dict[int, CheckReport]:
    return {report.arm: report for report in of_kind(reports, CheckReport)}


def traces(reports: Iterable[Report]) -> dict[int, TraceReport]:
    return {report.arm: report for report in of_kind(reports, TraceReport)}


def end(reports: Sequence[Report]) -> EndReport:
    last = reports[-1]
    assert isinstance(last, EndReport)
    return last
