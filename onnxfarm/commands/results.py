"""`onnxfarm results RUN`: shows the cells and comparisons of a run, or writes them as JSON or CSV."""

from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import STDOUT, write_bytes, write_document, write_text
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.runs import read_document


@exit_with_problem()
def results(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's number.")],
    server: ServerOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the cells as CSV.")] = False,
    timings: Annotated[
        str, typer.Option(metavar="CELL", help="Print every timing of one cell as CSV, in nanoseconds.")
    ] = "",
    compiled: Annotated[
        str, typer.Option(metavar="CELL", help="Fetch the model that a provider compiled for a cell; name -o FILE.")
    ] = "",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of printing; - is stdout."),
    ] = STDOUT,
) -> None:
    """Print a run's cells and comparisons; what is finished so far while it still goes on."""
    if sum((as_json, as_csv, bool(timings), bool(compiled))) > 1:
        raise Usage("--json, --csv, --timings and --compiled exclude each other: name only one.")
    if output != STDOUT and not (as_json or as_csv or timings or compiled):
        raise Usage("-o needs to know what to write: name one of --json, --csv, --timings, --compiled.")
    if compiled and output == STDOUT:
        raise Usage("--compiled fetches a file: name it with -o model.onnx.")
    with Client(find_account(server)) as client:
        if as_csv:
            write_text(client.call(operations.RESULTS_CSV, run=run), output)
            return
        if timings:
            write_text(client.call(operations.TIMINGS, run=run, cell=timings), output)
            return
        if compiled:
            write_bytes(client.call(operations.COMPILED, run=run, cell=compiled), output)
            return
        document = read_document(client, run)
        if as_json:
            write_document(document, output)
            return
        from onnxfarm.outputs import make_console
        from onnxfarm.screen import show

        show(document, console=make_console(), address=f"{client.account.server}/runs/{run}/")
