"""Measures a gate on this machine."""

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
def open_local_gate(
    request: GateRequest, *, home: Path, releases: tuple[Runtime, ...], console: Console
) -> Iterator["LocalGate"]:
    """Import the models, and yield this machine to measure them. `releases`: runtimes beyond those known here."""
    # the model in use now comes first
    first, second = (request.subject, None) if request.base is None else (request.base, request.subject)
    with workbench.open_workbench(
        first, beside=second, home=home, console=console, releases=releases, is_late=lambda: request.is_late
    ) as bench:
        if request.evaluation is not None:
            bench.set_evaluation(request.evaluation, request.recipe)
        bench.with_null_pair = request.is_of_pipeline
        yield LocalGate(bench, request)


@dataclass(frozen=True)
class LocalGate:
    """This machine, as the bench of a gate's search."""

    bench: workbench.Bench
    request: GateRequest

    def clock(self) -> float:
        return self.bench.clock()

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Measure an experiment of the search.

        Raises TimedOut after the request's deadline, even if the measurement ended, only later.
        """
        request = self.request
        reshape = partial(
            workbench.select_comparisons,
            axis="runtime" if request.base is None else "model",
            rounds=request.rounds,
            is_of_pipeline=request.is_of_pipeline,
        )
        try:
            return workbench.Machine(self.bench, reshape, is_announcing=True).measure(experiment, search)
        finally:
            if request.is_late:
                raise TimedOut("The gate was not decided within --timeout; nothing was judged.")
