"""`onnxfarm status [RUN]`: lists your newest runs, or shows how far one run is."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from farm.contract.api.runs import RunOut
from onnxfarm.commands.listing import format_minute
from onnxfarm.commands.options import JsonOption
from onnxfarm.exit_codes import judge_run
from onnxfarm.outputs import make_table, write_json
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.runs import follow_run, format_status, make_progress, read_document


@exit_with_problem()
def status(
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="The run's number; without it, all runs.")] = None,
    server: ServerOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show your newest runs, or how far one run is.

    Exit code with --wait: 0 when every planned cell is done; 1 when one failed or the run was cancelled.
    """
    if wait and run is None:
        raise Usage("--wait follows one run: name it, as in onnxfarm status 12 --wait.")
    console = Console(stderr=as_json)
    with Client(find_account(server)) as client:
        if run is None:
            runs = client.ask(operations.RUNS)
            answer, show = runs.json, _make_table(runs.parsed)
        else:
            if wait:
                follow_run(client, run, console=Console(stderr=True))
            one_run = client.ask(operations.RUN, run=run)
            answer, shown_run = one_run.json, one_run.parsed
            # print the sentence only once if it is the same as the progress
            sentences = dict.fromkeys((f"{make_progress(shown_run).words}.", shown_run.sentence))
            texts = " ".join(filter(None, sentences))
            show = f"Run {shown_run.id}: {format_status(shown_run)}, {texts}\n{shown_run.url}"
        document = read_document(client, run) if run is not None and wait else None
    if as_json:
        write_json(answer)
    else:
        console.print(show, highlight=False, soft_wrap=True)
    if document is not None:
        judge_run(document, shown_run)


def _make_table(runs: list[RunOut]) -> Table | str:
    if not runs:
        return "No runs yet. Start one: onnxfarm submit model.onnx --wait"
    table = make_table("run", "model", "state", "progress", "submitted")
    for run in runs:
        progress, created = make_progress(run).words, format_minute(run.created_at)
        table.add_row(str(run.id), run.model, format_status(run), progress, f"{created} UTC")
    return table
