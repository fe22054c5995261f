"""A gate's measurements on a farm, with the model as one of its versions."""

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import Positions
from farm.rules.planning.plans import positions_of
from farm.rules.searches.search import Experiment, Measured, Outcome, Search
from onnxfarm.outputs import say
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client, order_of
from onnxfarm.remote.runs import follow, read_document
from onnxfarm.remote.uploads import Bundle, uploaded
from onnxfarm.subject import Given


@contextlib.contextmanager
def opened(given: Given, *, server: str, team: str, console: Console) -> Iterator["Remote"]:
    """The farm once it has inspected the model."""
    subject = given.subject
    bundle = Bundle(subject.model, {"inputs": subject.inputs, "expected": subject.expected}, {"team": team})
    with Client(find_account(server)) as client:
        version = uploaded(client, bundle, console=console)
        yield Remote(client, given, version=version.id, console=console)


@dataclass(frozen=True)
class Remote:
    """A farm."""

    client: Client
    given: Given
    version: int
    console: Console

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        order = {**order_of(self.version, experiment.matrix.as_plain()), "seed": self.given.subject.seed}
        run = self.client.call(operations.START_RUN, json=order)
        run_id = str(run.id)
        say(f"Run {run_id}: {run.url}", console=self.console)
        left = None if self.given.deadline is None else max(0.0, self.given.deadline - time.monotonic())
        follow(self.client, run_id, console=self.console, timeout_s=left)
        document = read_document(self.client, run_id)
        positions = functools.cache(lambda: self._positions(experiment.matrix))
        return search.read(experiment.asked, Measured(experiment.matrix, document, lambda cell: positions()[cell]))

    def _positions(self, matrix: Matrix) -> Mapping[str, Positions]:
        plan = self.client.plan(self.version, matrix.as_plain()).shape
        return positions_of(plan.blocks, plan.refused)
