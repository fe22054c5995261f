"""`onnxfarm cancel RUN` and `onnxfarm more RUN`: stop a run, or measure more of it."""

import sys
from typing import Annotated

import typer

from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's number.")]


@main_guard()
def cancel(run: RunArgument, server: ServerOption = None) -> None:
    """Stop a run; what was measured stays."""
    with Client(find_account(server)) as client:
        answer = client.cancel(run)
    print(f"Run {run}: {answer.get('outcome') or answer.get('state')}.", file=sys.stderr)


@main_guard()
def more(
    run: RunArgument,
    rounds: Annotated[int, typer.Option(help="How many more rounds to measure in each block.")] = 8,
    block: Annotated[list[str] | None, typer.Option(help="Only this block; repeat for several.")] = None,
    server: ServerOption = None,
) -> None:
    """Measure more rounds of a finished run's blocks, so that undecided comparisons may be decided."""
    if not 1 <= rounds <= 96:
        raise Usage(f"--rounds is {rounds}: give 1 to 96.")
    with Client(find_account(server)) as client:
        answer = client.more(run, rounds=rounds, blocks=block or [])
    print(f"Run {run}: {answer.get('state')}; follow it with `onnxfarm status {run} --wait`.", file=sys.stderr)
