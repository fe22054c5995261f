"""`onnxfarm docs CODE`: what a refusal means, with an example and the way out."""

from typing import Annotated

import typer

from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.reasons import REASONS
from onnxfarm.outputs import console_for, say
from onnxfarm.problems import Usage, main_guard


@main_guard()
def docs(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="`reason.code` of a cell.", show_default="all of them")
    ] = "",
) -> None:
    """Explain why a cell was refused or did not finish, by its code."""
    known = {str(name): told for name, told in REASONS.items()}
    if code and code not in known:
        raise Usage(choice_sentence("code", code, known))
    console = console_for()
    for name, told in known.items() if not code else ():
        say(f"{name}: {told.meaning}", console=console)
    if code:
        told = known[code]
        say(told.meaning, f"Example: {told.example}", f"Way out: {told.way_out}", console=console)
