"""`onnxfarm status [RUN]`: your runs, or how far one is."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from onnxfarm.commands.options import JsonOption
from onnxfarm.outcomes import judge_run
from onnxfarm.outputs import table_of, write_plain
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.rows import Run
from onnxfarm.remote.runs import address_of, follow, read_document, standing_of


@main_guard()
def status(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="The run's number; without it, all runs.")] = None,
    server: ServerOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show your newest runs, or how far one run is.

    Exit code with --wait: 0 when every planned cell is done; 1 when one failed or the run was cancelled.
    """
    console = Console(stderr=as_json)
    with Client(find_account(server)) as client:
        if run is None:
            answer: object = client.runs()
            show = _table(client.runs())
        else:
            found = follow(client, run, console=Console(stderr=True)) if wait else client.run(run)
            answer, show = found, f"{_words(found)}\n{address_of(found, client)}"
        document = read_document(client, run) if run is not None and wait else None
    if as_json:
        write_plain(answer)
    else:
        console.print(show, highlight=False, soft_wrap=True)
    if document is not None:
        judge_run(document, found)


def _words(run: Run) -> str:
    state = run.get("outcome") or run["state"]
    sentence = f" {run['sentence']}" if run.get("sentence") else ""
    return f"Run {run['id']}: {state}, {standing_of(run).words}.{sentence}"


def _table(runs: list[Run]) -> Table | str:
    if not runs:
        return "No runs yet. Start one: onnxfarm submit model.onnx --wait"
    table = table_of("run", "model", "state", "progress", "started")
    for run in runs:
        state, created = run.get("outcome") or run["state"], run["created_at"][:16].replace("T", " ")
        table.add_row(str(run["id"]), run["model"], state, standing_of(run).words, f"{created} UTC")
    return table
