"""A gate's measurements on this machine."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from farm.contract.cells import Runtime
from farm.rules.searches.search import Experiment, Outcome, Search
from onnxfarm.here import workbench
from onnxfarm.problems import TimedOut
from onnxfarm.subject import GateRequest


@contextlib.contextmanager
def open_local(
    given: GateRequest, *, home: Path, releases: tuple[Runtime, ...], console: Console
) -> Iterator["LocalGate"]:
    """Read the model, and yield this machine to measure it. `releases`: runtimes beyond those known here."""
    # what is in use now comes first
    subject, beside = (given.subject, None) if given.beside is None else (given.beside, given.subject)
    with workbench.open_workbench(
        subject, beside=beside, home=home, console=console, releases=releases, is_late=lambda: given.is_late
    ) as bench:
        if given.evaluation is not None:
            bench.set_evaluation(given.evaluation, given.recipe)
        bench.with_null_pair = given.is_of_pipeline
        yield LocalGate(bench, given)


@dataclass(frozen=True)
class LocalGate:
    """This machine."""

    bench: workbench.Bench
    given: GateRequest

    def clock(self) -> float:
        return self.bench.clock()

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        axis = "runtime" if self.given.beside is None else "model"
        given = self.given
        along = partial(
            workbench.select_comparisons, axis=axis, rounds=given.rounds, is_of_pipeline=given.is_of_pipeline
        )
        machine = workbench.Machine(self.bench, along, is_announcing=True)
        try:
            return machine.measure(experiment, search)
        finally:
            if self.given.is_late:
                raise TimedOut("The gate was not decided within --timeout; nothing was judged.")
