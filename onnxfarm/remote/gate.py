"""A gate's measurements on a farm, with the model as one of its versions."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from farm.rules.planning.planner import describe_plan
from farm.rules.planning.plans import positions_by_id
from farm.rules.searches.search import Experiment, Measured, Outcome, Search
from onnxfarm.outputs import print_lines
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client, make_order
from onnxfarm.remote.lookups import VERSION
from onnxfarm.remote.runs import follow_run, read_document
from onnxfarm.remote.uploads import Bundle, upload_and_inspect
from onnxfarm.subject import GateRequest, Subject


@contextlib.contextmanager
def open_remote(given: GateRequest, *, server: str, team: str, console: Console) -> Iterator["RemoteGate"]:
    """Upload the model, and the base where it is a file, and yield the farm once it has inspected them.

    Where both are the same version, it says so and raises typer.Exit with 0.
    """
    subject, judged = given.subject, {"evaluation": given.evaluation}
    # a judge of the user's own is refused before: it never leaves their machine
    recipe = given.recipe if given.evaluation and isinstance(given.recipe, str) else ""
    fields = {"team": team, "recipe": recipe, **given.origin}
    with Client(find_account(server)) as client:
        base = _base(client, given, fields, console=console)
        line = {"model": base[0]} if base is not None else {}
        bundle = Bundle(subject.model, {**_list_files_beside(subject), **judged}, {**fields, **line})
        version = upload_and_inspect(client, bundle, console=console)
        if base == (version.model, version.number):
            print_lines(
                f"The gate passed: {subject.model} is {_format_version(base)}, byte for byte, and nothing was measured."
            )
            raise typer.Exit
        models = () if base is None else (_format_version(base),)
        yield RemoteGate(client, given, version=version.id, console=console, models=models)


def _format_version(version: tuple[str, int]) -> str:
    return "{}@{}".format(*version)


def _base(client: Client, given: GateRequest, fields: Mapping[str, str], *, console: Console) -> tuple[str, int] | None:
    """Return model and number of the version to compare with; None where two runtimes of one model are compared.

    A base that is a file is uploaded first. One given as MODEL@NUMBER is not looked up, which the token of a gate may
    not: planning fails where there is none.
    """
    if given.beside is not None:
        base_fields = {
            **fields,
            "commit": given.base_commit,
            "note": "what it was compared with" if given.origin else "",
        }
        version = upload_and_inspect(
            client, Bundle(given.beside.model, _list_files_beside(given.beside), base_fields), console=console
        )
        return version.model, version.number
    match = VERSION.fullmatch(given.version)
    return (match["model"], int(match["number"])) if match else None


def _list_files_beside(subject: Subject) -> dict[str, Path | None]:
    return {"inputs": subject.inputs, "expected": subject.expected}


@dataclass(frozen=True)
class RemoteGate:
    """A gate that a farm measures."""

    client: Client
    given: GateRequest
    version: int
    console: Console
    # what the version is measured beside
    models: tuple[str, ...] = ()
    # so long each run waited for a node
    waits_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        """Return seconds of a clock that stood still while a run waited for a node."""
        return time.monotonic() - sum(self.waits_s)

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        matrix = replace(experiment.matrix, models=self.models)
        plan = self.client.plan(self.version, matrix.as_plain()).shape
        print_lines(describe_plan(plan), console=self.console)
        order = {**make_order(self.version, matrix.as_plain()), "seed": self.given.subject.seed}
        run = self.client.call(operations.START_RUN, json=order)
        run_id = str(run.id)
        print_lines(f"Run {run_id}: {run.url}", console=self.console)
        left = None if self.given.deadline is None else max(0.0, self.given.deadline - time.monotonic())
        run = follow_run(self.client, run_id, console=self.console, timeout_s=left)
        if run.started_at is not None:
            self.waits_s.append((run.started_at - run.created_at).total_seconds())
        document = read_document(self.client, run_id)
        positions = positions_by_id(plan.blocks, plan.refused)
        return search.read(experiment.asked, Measured(experiment.matrix, document, positions.__getitem__))
