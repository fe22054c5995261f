"""`onnxfarm node lend|take-back|lendings|agree|decline`: nodes that teams lend to each other."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import write_plain
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client

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
        found = [one for one in client.lendings() if one["team"] == team]
    print("\n".join(f"{one['node']}: {one['sentence']}" for one in found if node in (one["node"], str(one["node_id"]))))


def take_back(node: NodeArgument, team: TeamArgument, server: ServerOption = None) -> None:
    """Let a node of yours measure for a team no more."""
    with Client(find_account(server)) as client:
        _set_teams(client, node, remove=team)
    print(f"{node} no longer measures for {team}.")


def lendings(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List nodes that are lent or offered: yours to others, and others' to your teams."""
    with Client(find_account(server)) as client:
        found = client.lendings()
    if as_json:
        write_plain(found)
        return
    if not found:
        print("No node is lent: `onnxfarm node lend NODE TEAM` offers one.")
        return
    table = Table("lending", "node", "of", "for", "sandbox", "fingerprint", "status", box=None, pad_edge=False)
    for one in found:
        of = f"{one['owner'] or 'nobody'}, {one['from_team']}"
        words = (str(one["id"]), one["node"], of, one["team"], one["sandbox"], one["fingerprint"], one["sentence"])
        table.add_row(*words)
    Console(soft_wrap=True).print(table)


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
    with Client(find_account(server)) as client:
        done = client.answer_lending(lending, what)
    print(f"{done['node']}: {done['sentence']}")


def _set_teams(client: Client, wanted: str, *, add: str = "", remove: str = "") -> None:
    node = client.node_named(wanted)
    teams = [one["team"] for one in client.lendings() if one["node_id"] == node["id"]]
    if remove and remove not in teams:
        raise Usage(f"{node['name']} is not offered to {remove}: `onnxfarm node lendings` shows what is.")
    client.lend_node(node["id"], sorted({*teams, add} - {remove, ""}))
