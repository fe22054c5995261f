"""`onnxfarm cancel RUN` and `onnxfarm more RUN`: stop a run, or measure more rounds of it."""

import sys
from typing import Annotated

import typer

from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.client import ask_farm
from onnxfarm.remote.runs import format_status

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's number.")]


@exit_with_problem()
def cancel(run: RunArgument, server: ServerOption = None) -> None:
    """Stop a run; the rounds that were measured stay."""
    answer = ask_farm(server, operations.CANCEL_RUN, run=run).parsed
    print(f"Run {run}: {format_status(answer)}.", file=sys.stderr)


@exit_with_problem()
def more(
    run: RunArgument,
    rounds: Annotated[int, typer.Option(help="How many more rounds to measure in each block.")] = 8,
    block: Annotated[list[str] | None, typer.Option(help="Only this block; repeat for several.")] = None,
    server: ServerOption = None,
) -> None:
    """Measure more rounds of a finished run's blocks, so that undecided comparisons may be decided."""
    if not 1 <= rounds <= 96:
        raise Usage(f"--rounds is {rounds}: give 1 to 96.")
    order = {"rounds": rounds} | ({"blocks": block} if block else {})
    answer = ask_farm(server, operations.MORE_ROUNDS, json=order, run=run).parsed
    print(f"Run {run}: {format_status(answer)}; follow it with `onnxfarm status {run} --wait`.", file=sys.stderr)
