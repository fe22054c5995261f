"""`onnxfarm report ALERT`: downloads a zip that reproduces an alert, and the text of an issue for upstream."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.outputs import STDOUT, write_text
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.client import ask_farm


@exit_with_problem()
def report(
    alert: Annotated[int, typer.Argument(metavar="ALERT", min=1, help="The alert's number.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The zip.", show_default="alert-‹number›.zip")
    ] = None,
    issue: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write only the issue text to this file; - is stdout.")
    ] = None,
    server: ServerOption = None,
) -> None:
    """Fetch an alert's report: the model, its inputs, samples, facts, lock files, and one command that repeats it."""
    if issue is not None and output is not None:
        raise Usage("--issue writes only the text, which is in the zip as well: leave out --issue or --output.")
    path = output or Path(f"alert-{alert}.zip")
    if issue is None and path == STDOUT:
        raise Usage("A zip cannot be printed: give --output the path of a file.")
    if issue is not None:
        write_text(ask_farm(server, operations.ALERT_ISSUE, alert=alert).parsed, issue)
        return
    content = ask_farm(server, operations.ALERT_REPORT, alert=alert).parsed
    try:
        path.write_bytes(content)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a .zip.") from problem
    print(f"{path}: unpack it and run `python repeat.py`; issue.md is the text for the issue tracker.", file=sys.stderr)
