"""`onnxfarm docs CODE`: explains a refusal, with an example and the way out."""

from typing import Annotated

import typer

from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.reasons import REASONS
from onnxfarm.outputs import make_console, print_lines
from onnxfarm.problems import Usage, exit_with_problem


@exit_with_problem()
def docs(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="`reason.code` of a cell.", show_default="all of them")
    ] = "",
) -> None:
    """Explain why a cell was refused or did not finish, by its code."""
    entries = {str(name): entry for name, entry in REASONS.items()}
    if code and code not in entries:
        raise Usage(choice_sentence("code", code, entries))
    console = make_console()
    for name, entry in entries.items() if not code else ():
        print_lines(f"{name}: {entry.meaning}", console=console)
    if code:
        entry = entries[code]
        print_lines(entry.meaning, f"Example: {entry.example}", f"Way out: {entry.way_out}", console=console)
