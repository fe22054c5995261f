"""`onnxfarm login --server URL`: stores a farm's address and a token, so that later commands need neither."""

import os
import sys
from typing import Annotated

import typer

from onnxfarm.problems import exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import TOKEN_VARIABLE, Account, check_address, store_account
from onnxfarm.remote.client import Client


@exit_with_problem()
def login(
    server: Annotated[str, typer.Option("--server", metavar="URL", help="The farm's address.")],
    token: Annotated[
        str | None, typer.Option(help="Your token there.", show_default=f"${TOKEN_VARIABLE}, else it is asked for")
    ] = None,
) -> None:
    """Check a token with a farm, then remember both; later commands need no --server."""
    secret: str = token or os.environ.get(TOKEN_VARIABLE, "")
    if not secret:
        secret = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    account = Account(check_address(server), secret.strip())
    with Client(account) as client:
        me = client.call(operations.ME)
    path = store_account(account)
    teams = ", ".join(team.name for team in me.teams) or "no team"
    print(f"Signed in to {account.server} as {me.username} ({teams}); kept in {path}.", file=sys.stderr)
