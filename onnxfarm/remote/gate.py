"""Uploads the models of a gate to a farm, and measures them there."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console

from farm.rules.planning.planner import describe_plan
from farm.rules.planning.plans import positions_by_id
from farm.rules.searches.search import Experiment, Measured, Outcome, Search
from onnxfarm.outputs import print_lines
from onnxfarm.remote import operations
from onnxfarm.remote.account import find_account
from onnxfarm.remote.client import Client, make_run_request
from onnxfarm.remote.lookups import VERSION
from onnxfarm.remote.runs import follow_run, read_document
from onnxfarm.remote.uploads import Bundle, upload_and_inspect
from onnxfarm.subject import GateRequest, Subject


@contextlib.contextmanager
def open_remote_gate(request: GateRequest, *, server: str, team: str, console: Console) -> Iterator["RemoteGate"]:
    """Upload the model, and the base if it is a file. Yield a RemoteGate when the farm has inspected them.

    If both are the same version, this prints that nothing was measured, and raises typer.Exit with 0. Raises Usage,
    Infrastructure and TimedOut.
    """
    subject = request.subject
    # a UserJudge is never sent to a farm; the command refuses it before this
    recipe = request.recipe if request.evaluation and isinstance(request.recipe, str) else ""
    fields = {"team": team, "recipe": recipe, **request.origin}
    with Client(find_account(server)) as client:
        base = _find_base(client, request, fields, console=console)
        files = {**_list_files_by_role(subject), "evaluation": request.evaluation}
        # both become versions of one model on the farm
        bundle = Bundle(subject.model, files, fields if base is None else {**fields, "model": base.model})
        version = upload_and_inspect(client, bundle, console=console)
        if base == (version.model, version.number):
            print_lines(f"The gate passed: {subject.model} is {base}, byte for byte, and nothing was measured.")
            raise typer.Exit
        models = () if base is None else (str(base),)
        yield RemoteGate(client, request, version_id=version.id, console=console, models=models)


class _Base(NamedTuple):
    """The version to compare with."""

    model: str
    number: int

    def __str__(self) -> str:
        return f"{self.model}@{self.number}"


def _find_base(client: Client, request: GateRequest, fields: Mapping[str, str], *, console: Console) -> _Base | None:
    """Return the version to compare with; None if two runtimes are compared.

    If the base is a file, it is uploaded first. A base named MODEL@NUMBER is not looked up, because a gate's token may
    not read models. If there is no such version, planning fails.
    """
    if request.base is not None:
        note = "what it was compared with" if request.origin else ""
        base_fields = {**fields, "commit": request.base_commit, "note": note}
        bundle = Bundle(request.base.model, _list_files_by_role(request.base), base_fields)
        version = upload_and_inspect(client, bundle, console=console)
        return _Base(version.model, version.number)
    match = VERSION.fullmatch(request.base_version)
    return _Base(match["model"], int(match["number"])) if match else None


def _list_files_by_role(subject: Subject) -> dict[str, Path | None]:
    return {"inputs": subject.inputs, "expected": subject.expected}


@dataclass(frozen=True)
class RemoteGate:
    """A farm that measures for a gate: the version `version_id`, side by side with the versions in `models`.

    `models`: NAME@NUMBER of each; empty if two runtimes are compared. `waits_s`: how many seconds each run so far
    waited for a node.
    """

    client: Client
    request: GateRequest
    version_id: int
    console: Console
    models: tuple[str, ...] = ()
    waits_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        """Return the seconds of a clock without the runs' waits for a node; only differences mean anything."""
        return time.monotonic() - sum(self.waits_s)

    def measure(self, experiment: Experiment, search: Search[Outcome, Any]) -> Outcome:
        """Start a run for an experiment, follow it to its end, and return what the search reads in its results.

        Prints the plan's size and the run's address. Raises Usage, Infrastructure, and TimedOut after the request's
        deadline; the run goes on then.
        """
        matrix = replace(experiment.matrix, models=self.models).as_plain()
        plan = self.client.plan(self.version_id, matrix).parsed
        print_lines(describe_plan(plan), console=self.console)

        body = {**make_run_request(self.version_id, matrix), "seed": self.request.subject.seed}
        run = self.client.call(operations.START_RUN, json=body)
        run_id, deadline = str(run.id), self.request.deadline
        print_lines(f"Run {run_id}: {run.url}", console=self.console)
        timeout_s = None if deadline is None else max(0.0, deadline - time.monotonic())
        run = follow_run(self.client, run_id, console=self.console, timeout_s=timeout_s)
        if run.started_at is not None:
            self.waits_s.append((run.started_at - run.created_at).total_seconds())

        document = read_document(self.client, run_id)
        positions = positions_by_id(plan.blocks, plan.refused)
        return search.read(experiment.asked, Measured(experiment.matrix, document, positions.__getitem__))
