"""`onnxfarm node invite|list|approve|drain|pause|resume|limits|revoke`: the farm's nodes, from anybody's terminal."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.table import Table

from onnxfarm.commands import lendings, limits
from onnxfarm.commands.limits import NodeArgument
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import write_plain
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.rows import Node
from onnxfarm.screen import console_for


def register(app: typer.Typer) -> None:
    """Put the commands into `onnxfarm node`."""
    app.command("invite")(main_guard()(invite))
    app.command("list")(main_guard()(show))
    for what, line in ORDERS.items():
        app.command(what, help=line)(main_guard()(_command(what)))
    limits.register(app)
    lendings.register(app)


def invite(
    team: Annotated[
        str, typer.Option(help="The team the machine will belong to.", show_default="the only one that you write in")
    ] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a one-time code; prints what to type on the machine that joins."""
    with Client(find_account(server)) as client:
        made = client.invite_node(team=team)
    if warning := made.get("warning"):
        print(f"onnxfarm: {warning}", file=sys.stderr)
    if as_json:
        write_plain(made)
        return
    if install := made.get("install"):
        print(f"On the machine that joins, where onnxfarm is not installed yet:\n{install}\nThen:", file=sys.stderr)
    print(made["command"])
    print(
        f"It lets one machine into team {made.get('team', team)}, until {made['expires_at']}. Then: onnxfarm node list",
        file=sys.stderr,
    )


def show(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the nodes of your teams."""
    with Client(find_account(server)) as client:
        nodes = client.nodes()
    if as_json:
        write_plain(nodes)
        return
    if not nodes:
        print("No nodes yet: `onnxfarm node invite` prints the command that lets a machine join.")
        return
    console_for().print(table_of_nodes(nodes))


def table_of_nodes(nodes: Sequence[Node]) -> Table:
    """One row a node; what people compare and type, fingerprint and name, is folded where it is narrow, never cut."""
    table = Table("node", "name", "state", "health", "tags", "fingerprint", "self-test", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for node in nodes:
        tags = " ".join([*node["tags"], *node["owner_tags"]]) or "none verified yet"
        tested = node["self_test"]["sentence"] if node["self_test"] else "not run yet"
        table.add_row(str(node["id"]), node["name"], node["state"], node["health"], tags, node["fingerprint"], tested)
    return table


ORDERS = {
    "approve": "Approve a node after comparing its fingerprint.",
    "drain": "Let a node finish its current block, then give it no more.",
    "resume": "Let a drained, quarantined or paused node accept blocks again.",
    "revoke": "Remove a node from the farm permanently.",
}


def _command(what: str) -> Callable[..., None]:
    def order(
        node: NodeArgument,
        fingerprint: Annotated[str, typer.Option(help="Only if the node has this fingerprint.")] = "",
        server: ServerOption = None,
    ) -> None:
        with Client(find_account(server)) as client:
            found = client.node_named(node)
            if fingerprint and fingerprint != found["fingerprint"]:
                raise Usage(f"{found['name']} has the fingerprint {found['fingerprint']}, not {fingerprint}.")
            done = _resumed(client, found) if what == "resume" else client.order_node(found["id"], what)
        print(limits.standing_of(done))

    return order


def _resumed(client: Client, node: Node) -> Node:
    """Ends a pause and whatever else keeps it; the farm refuses it for a node that nothing keeps."""
    was_paused = node["settings"]["is_paused"]
    if was_paused:
        node = client.change_node(node["id"], {"is_paused": False})
    return node if was_paused and node["health"] == "active" else client.order_node(node["id"], "resume")
