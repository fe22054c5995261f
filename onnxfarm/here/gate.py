"""Measures both sides of a gate on this machine."""

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
    """Import the models of a gate, and yield a LocalGate for them; the copies are deleted after the `with`.

    `releases`: runtimes that exist, but that this version does not know. Raises Usage and Infrastructure.
    """
    # if two models are compared, the one in use now comes first
    first, second = (request.subject, None) if request.base is None else (request.base, request.subject)
    with workbench.open_workbench(
        first, other=second, home=home, console=console, releases=releases, is_late=lambda: request.is_late
    ) as bench:
        if request.evaluation is not None:
            bench.set_evaluation(request.evaluation, request.recipe)
        bench.with_null_pair = request.is_of_pipeline
        yield LocalGate(bench, request)


@dataclass(frozen=True)
class LocalGate:
    """Measures the experiments of a gate on this machine."""

    bench: workbench.Bench
    request: GateRequest

    def clock(self) -> float:
        return self.bench.clock()

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Measure an experiment, and return what the search reads in it.

        Raises TimedOut if the measurement ends after the request's deadline, whatever was measured; otherwise Usage,
        Infrastructure and Stopped.
        """
        request = self.request
        reshape = partial(
            workbench.select_comparisons,
            axis="runtime" if request.base is None else "model",
            rounds=request.rounds,
            is_of_pipeline=request.is_of_pipeline,
        )
        try:
            return workbench.Machine(self.bench, reshape, prints_plan=True).measure(experiment, search)
        finally:
            if request.is_late:
                raise TimedOut("The gate was not decided within --timeout; nothing was judged.")
