"""A gate's measurements on this machine."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from farm.contract.document import Document
from farm.rules.matrices.matrix import Matrix
from onnxfarm.gate import Bench, Given, positions_of
from onnxfarm.here import workbench
from onnxfarm.here.home import default_home
from onnxfarm.problems import TimedOut


@contextlib.contextmanager
def opened(given: Given, *, home: Path | None, releases: tuple[str, ...], console: Console) -> Iterator[Bench]:
    """The machine with the model taken in. `releases`: runtimes that exist beyond those known here."""
    with workbench.opened(
        given.subject,
        home=home or default_home(),
        console=console,
        releases=releases,
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
        return positions_of(plan.blocks, plan.refused)

    def measure(self, matrix: Matrix) -> Document:
        plan = workbench.reshaped(
            self.bench.plan(matrix), lambda block: workbench.along(block, rounds=self.given.rounds)
        )
        try:
            return self.bench.measure(plan)
        finally:
            if self.given.is_late:
                raise TimedOut("The gate was not decided within --timeout; nothing was judged.")
