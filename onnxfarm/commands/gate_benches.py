"""Where a gate measures: this machine, or a farm. Both answer with the same document."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from farm.contract.document import Document
from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.plans import PlannedBlock, RefusedPoint
from onnxfarm.gate import Bench
from onnxfarm.here import workbench
from onnxfarm.here.home import default_home
from onnxfarm.problems import TimedOut
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client
from onnxfarm.subject import Subject


@dataclass(frozen=True)
class Given:
    """The model with what stands beside it. `deadline`: of `time.monotonic`, None: no hurry."""

    subject: Subject
    deadline: float | None
    # of a block at most, on this machine, where somebody said how many; a farm's block has those of its budget
    rounds: int | None = None
    # runtimes that exist beyond those known here
    releases: tuple[str, ...] = ()

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() > self.deadline


@contextlib.contextmanager
def bench_for(given: Given, *, server: str | None, home: Path | None, console: Console) -> Iterator[Bench]:
    """The farm at `server`, or this machine. Raises TimedOut from its measuring once the deadline has passed."""
    if server is not None:
        with Client(find_account(server)) as client:
            yield Remote.uploaded(client, given, console=console)
        return
    with workbench.opened(
        given.subject,
        home=home or default_home(),
        console=console,
        releases=given.releases,
        is_late=lambda: given.is_late,
    ) as bench:
        yield Local(bench, given)


@dataclass(frozen=True)
class Local:
    """This machine."""

    bench: workbench.Bench
    given: Given

    def positions(self, matrix: Matrix) -> Mapping[str, Mapping[str, int]]:
        plan = self.bench.plan(matrix)
        return _positions(plan.blocks, plan.refused)

    def measure(self, matrix: Matrix) -> Document:
        plan = workbench.reshaped(
            self.bench.plan(matrix), lambda block: workbench.along(block, rounds=self.given.rounds)
        )
        try:
            return self.bench.measure(plan)
        finally:
            if self.given.is_late:
                raise TimedOut("The gate was not decided in the time that --timeout gives; nothing was judged.")


@dataclass(frozen=True)
class Remote:
    """A farm, with the model as one of its versions."""

    client: Client
    given: Given
    version: int
    console: Console

    @classmethod
    def uploaded(cls, client: Client, given: Given, *, console: Console) -> "Remote":
        """The farm once it has inspected the model."""
        from onnxfarm.commands.submit import uploaded_version

        roles = {"inputs": given.subject.inputs, "expected": given.subject.expected}
        named = {role: path for role, path in roles.items() if path is not None}
        version = uploaded_version(client, given.subject.model, console=console, roles=named)
        return cls(client, given, version=int(version["id"]), console=console)

    def positions(self, matrix: Matrix) -> Mapping[str, Mapping[str, int]]:
        plain = self.client.plan(self.version, matrix.as_plain())
        blocks = tuple(PlannedBlock.model_validate(block) for block in plain["blocks"])
        return _positions(blocks, tuple(RefusedPoint.model_validate(point) for point in plain["refused"]))

    def measure(self, matrix: Matrix) -> Document:
        from onnxfarm.commands.results import read_document
        from onnxfarm.commands.submit import address_of
        from onnxfarm.remote.runs import follow

        run = self.client.start(self.version, matrix.as_plain(), seed=self.given.subject.seed)
        run_id = str(run["id"])
        self.console.print(f"Run {run_id}: {address_of(run, self.client)}", highlight=False, soft_wrap=True)
        left = None if self.given.deadline is None else max(0.0, self.given.deadline - time.monotonic())
        follow(self.client, run_id, console=self.console, timeout_s=left)
        return read_document(self.client, run_id)


def _positions(blocks: tuple[PlannedBlock, ...], refused: tuple[RefusedPoint, ...]) -> dict[str, Mapping[str, int]]:
    measured: dict[str, Mapping[str, int]] = {arm.id: arm.positions for block in blocks for arm in block.arms}
    return measured | {point.id: point.positions for point in refused}
