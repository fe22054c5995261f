"""`onnxfarm results RUN --json | --csv`: what a run came to."""

from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import STDOUT, write_document, write_text
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.runs import read_document


@main_guard()
def results(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's number.")],
    server: ServerOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the cells as CSV.")] = False,
    timings: Annotated[
        str, typer.Option(metavar="CELL", help="Print every timing of one cell as CSV, in nanoseconds.")
    ] = "",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of printing; - is stdout."),
    ] = STDOUT,
) -> None:
    """Print a run's cells and comparisons; what is finished so far while it still goes on."""
    if sum((as_json, as_csv, bool(timings))) > 1:
        raise Usage("--json, --csv and --timings exclude each other: ask for one.")
    with Client(find_account(server)) as client:
        if as_csv:
            write_text(client.csv(run), output)
            return
        if timings:
            write_text(client.timings(run, timings), output)
            return
        document = read_document(client, run)
        if as_json:
            write_document(document, output)
            return
        from onnxfarm.screen import console_for, show

        show(document, console=console_for(), address=f"{client.account.server}/runs/{run}/")
