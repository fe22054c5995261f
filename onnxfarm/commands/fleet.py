"""`onnxfarm node invite|list|approve|drain|pause|resume|limits|revoke`: the farm's nodes, from anybody's terminal."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from farm.contract.api.fleet import NodeOut
from onnxfarm.commands import lendings, limits
from onnxfarm.commands.limits import NodeArgument
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import say, write_plain
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client, ask_farm
from onnxfarm.remote.lookups import node_named


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
    answer = ask_farm(server, operations.INVITE_NODE, json={"team": team})
    made = answer.shape
    if made.warning:
        print(f"onnxfarm: {made.warning}", file=sys.stderr)
    if as_json:
        write_plain(answer.plain)
        return
    if made.install:
        say(f"On the machine that joins, where onnxfarm is not installed yet:\n{made.install}\nThen:")
    print(made.command)
    until = f"{made.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    say(f"It lets one machine into team {made.team or team}, until {until}. Then: onnxfarm node list")


def show(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the nodes of your teams."""
    none = "No nodes yet: `onnxfarm node invite` prints the command that lets a machine join."
    show_rows(ask_farm(server, operations.NODES), HEADS, cells_of, as_json=as_json, none=none)


def cells_of(node: NodeOut) -> tuple[str, ...]:
    """A node's line, under HEADS."""
    tags = " ".join([*node.tags, *node.owner_tags]) or "none verified yet"
    tested = node.self_test.sentence if node.self_test else "not run yet"
    return str(node.id), node.name, node.state, node.health, tags, node.fingerprint, tested


HEADS = ("node", "name", "state", "health", "tags", "fingerprint", "self-test")
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
            found = node_named(client, node)
            if fingerprint and fingerprint != found.fingerprint:
                raise Usage(f"{found.name} has the fingerprint {found.fingerprint}, not {fingerprint}.")
            done = _resumed(client, found) if what == "resume" else _order(client, found, what)
        print(limits.standing_of(done))

    return order


def _order(client: Client, node: NodeOut, what: str) -> NodeOut:
    return client.call(operations.ORDER_NODE, node=node.id, what=what)


def _resumed(client: Client, node: NodeOut) -> NodeOut:
    """Ends a pause and whatever else keeps it; the farm refuses it for a node that nothing keeps."""
    was_paused = limits.limits_of(node).is_paused
    if was_paused:
        node = client.call(operations.CHANGE_NODE, json={"is_paused": False}, node=node.id)
    return node if was_paused and node.health == "active" else _order(client, node, "resume")
