"""`onnxfarm results RUN --json | --csv`: what a run came to."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from farm.contract.document import SCHEMA, Document
from onnxfarm.problems import Infrastructure, Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client

STDOUT = Path("-")


@main_guard()
def results(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's number.")],
    server: ServerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the bench document as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the cells as CSV.")] = False,
    timings: Annotated[
        str, typer.Option(metavar="CELL", help="Print every timing of one cell as CSV, in nanoseconds.")
    ] = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write there instead of printing; - is stdout.")
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
            write_json(document, output)
            return
        from onnxfarm.screen import console_for, show

        show(document, console=console_for(), address=f"{client.account.server}/runs/{run}/")


def read_document(client: Client, run_id: str) -> Document:
    """The bench document of a run, checked. Raises Infrastructure when the farm writes another version of it."""
    plain = client.document(run_id)
    try:
        return Document.model_validate(plain)
    except ValidationError as problem:
        raise Infrastructure(
            f"The farm's results have the schema {plain.get('schema')!r} and this client reads {SCHEMA}: "
            "install the farm's version of onnxfarm."
        ) from problem


def write_json(document: Document, path: Path) -> None:
    """Write a document to a file; - is stdout."""
    write_text(document.to_json() + "\n", path)


def write_text(text: str, path: Path) -> None:
    """Write text to a file, whole or not at all; - is stdout. Raises Usage when the file cannot be written."""
    if path == STDOUT:
        sys.stdout.write(text)
        return
    try:
        draft = path.with_name(f".{path.name}.part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a file.") from problem
