"""`onnxfarm node lend|take-back|lendings|agree|decline`: nodes that teams lend to each other."""

from collections.abc import Callable
from typing import Annotated

import typer

from farm.contract.api.fleet import LendingOut
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client, ask_farm
from onnxfarm.remote.lookups import node_named

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Its number or name.")]
TeamArgument = Annotated[str, typer.Argument(metavar="TEAM", help="The team it should measure for.")]
LendingArgument = Annotated[int, typer.Argument(metavar="LENDING", help="As `onnxfarm node lendings` numbers them.")]


def register(app: typer.Typer) -> None:
    """Put the commands into `onnxfarm node`."""
    for name, command in COMMANDS.items():
        app.command(name)(main_guard()(command))


def lend(node: NodeArgument, team: TeamArgument, server: ServerOption = None) -> None:
    """Offer a node of yours to another team; an admin there has to agree."""
    with Client(find_account(server)) as client:
        _set_teams(client, node, add=team)
        found = [row for row in client.call(operations.LENDINGS) if row.team == team]
    print("\n".join(f"{row.node}: {row.sentence}" for row in found if node in (row.node, str(row.node_id))))


def take_back(node: NodeArgument, team: TeamArgument, server: ServerOption = None) -> None:
    """Let a node of yours measure for a team no more."""
    with Client(find_account(server)) as client:
        _set_teams(client, node, remove=team)
    print(f"{node} no longer measures for {team}.")


def lendings(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List nodes that are lent or offered: yours to others, and others' to your teams."""

    def cells(row: LendingOut) -> tuple[str, ...]:
        of = f"{row.owner or 'nobody'}, {row.from_team}"
        return str(row.id), row.node, of, row.team, row.sandbox, row.fingerprint, row.sentence

    heads = ("lending", "node", "of", "for", "sandbox", "fingerprint", "status")
    none = "No node is lent: `onnxfarm node lend NODE TEAM` offers one."
    show_rows(ask_farm(server, operations.LENDINGS), heads, cells, as_json=as_json, none=none)


def agree(lending: LendingArgument, server: ServerOption = None) -> None:
    """Let a node of others measure your team's models, once its fingerprint was compared."""
    _answer(lending, "agree", server)


def decline(lending: LendingArgument, server: ServerOption = None) -> None:
    """Let a node of others have none of your team's models, or no more of them."""
    _answer(lending, "decline", server)


COMMANDS: dict[str, Callable[..., None]] = {
    "lend": lend,
    "take-back": take_back,
    "lendings": lendings,
    "agree": agree,
    "decline": decline,
}


def _answer(lending: int, what: str, server: str | None) -> None:
    done = ask_farm(server, operations.ANSWER_LENDING, lending=lending, what=what).shape
    print(f"{done.node}: {done.sentence}")


def _set_teams(client: Client, wanted: str, *, add: str = "", remove: str = "") -> None:
    node = node_named(client, wanted)
    teams = [row.team for row in client.call(operations.LENDINGS) if row.node_id == node.id]
    if remove and remove not in teams:
        raise Usage(f"{node.name} is not offered to {remove}: `onnxfarm node lendings` shows what is.")
    offered = sorted({*teams, add} - {remove, ""})
    client.ask(operations.CHANGE_NODE, json={"teams": offered}, node=node.id)
