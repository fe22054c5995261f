"""`onnxfarm node invite|list|approve|…|lend|take-back|…`: manages the nodes of a farm, from any machine."""

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any

import typer
from rich.console import Console

from farm.contract.api.fleet import LedgerOut, LendingOut, NodeOut
from farm.contract.node import NodeSettings
from farm.rules.planning.time_left import format_about
from farm.rules.wording.numbers import counted, duration
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption, split_list
from onnxfarm.outputs import print_lines, print_pairs, write_json
from onnxfarm.problems import Commands, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client, ask_farm
from onnxfarm.remote.lookups import find_node

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Its number or name, as `onnxfarm node list` shows.")]
TeamArgument = Annotated[str, typer.Argument(metavar="TEAM", help="The team it should measure for.")]
LendingArgument = Annotated[int, typer.Argument(metavar="LENDING", help="As `onnxfarm node lendings` numbers them.")]

TrialArgument = Annotated[int, typer.Argument(metavar="TRIAL", help="As `onnxfarm node trials` numbers them.")]


def _limit(metavar: str, words: str, low: float | None = None, high: float | None = None) -> Any:
    return typer.Option(metavar=metavar, help=words, show_default="unchanged", min=low, max=high)


HOURS = _limit("'HH:MM-HH:MM ZONE'", "When it works, in a zone such as Europe/Vienna; `always` ends it.")
MINUTES = _limit("MINUTES", "How long one block may take.", 0.5, 1440)
CELSIUS = _limit("CELSIUS", "Above it, it accepts no blocks; `any` ends it.")
MODEL_CACHE = _limit("GIB", "Size of its model cache.", 1, 2**20)
RUNTIME_CACHE = _limit("GIB", "Size of its runtime cache.", 1, 2**20)
TRIALS = _limit("ask|allow|never", "Whether it tries providers that others ask for.")
TAGS = _limit("TAG,TAG", "Tags beside those that it proves, in place of these; '' ends them.")
GIB = 1024**3
ALWAYS, ANY = "always", "any"


class Trials(StrEnum):
    """Whether a node tries providers that others ask for."""

    ASK = "ask"
    ALLOW = "allow"
    NEVER = "never"


TRIED = {Trials.ASK: "once its owner allowed it", Trials.ALLOW: "that anybody asks for", Trials.NEVER: "never"}
HEADS = ("node", "name", "state", "health", "tags", "fingerprint", "self-test")
ORDERS = {
    "approve": "Approve a node after comparing its fingerprint.",
    "drain": "Let a node finish its current block, then give it no more.",
    "resume": "Let a drained, quarantined or paused node accept blocks again.",
    "revoke": "Remove a node from the farm permanently.",
}
app = Commands(no_args_is_help=True, add_completion=False, help="Make this machine a node of a farm.")


@app.command()
def invite(
    team: Annotated[
        str, typer.Option(help="The team the machine will belong to.", show_default="the only one that you write in")
    ] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a one-time code; prints what to type on the machine that joins."""
    answer = ask_farm(server, operations.INVITE_NODE, json={"team": team})
    invitation = answer.parsed
    if invitation.warning:
        print(f"onnxfarm: {invitation.warning}", file=sys.stderr)
    if as_json:
        write_json(answer.json)
        return
    if invitation.install:
        print_lines("On the machine that joins, where onnxfarm is not installed yet:", invitation.install, "Then:")
    print(invitation.command)
    until = f"{invitation.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    print_lines(f"It lets one machine into team {invitation.team or team}, until {until}. Then: onnxfarm node list")


@app.command("list")
def show(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the nodes of your teams."""
    none = "No nodes yet: `onnxfarm node invite` prints the command that lets a machine join."
    show_rows(ask_farm(server, operations.NODES), HEADS, make_node_row, as_json=as_json, none=none)


def _make_order_command(order_name: str) -> Callable[..., None]:
    def order(
        node: NodeArgument,
        fingerprint: Annotated[str, typer.Option(help="Only if the node has this fingerprint.")] = "",
        server: ServerOption = None,
    ) -> None:
        with Client(find_account(server)) as client:
            before = find_node(client, node)
            if fingerprint and fingerprint != before.fingerprint:
                raise Usage(f"{before.name} has the fingerprint {before.fingerprint}, not {fingerprint}.")
            changed = _resume(client, before) if order_name == "resume" else _order(client, before, order_name)
        print(describe_node(changed))

    return order


for order_name, line in ORDERS.items():
    app.command(order_name, help=line)(_make_order_command(order_name))


@app.command()
def pause(node: NodeArgument, server: ServerOption = None) -> None:
    """Pause a node: it finishes its current block and accepts no more until it is resumed."""
    with Client(find_account(server)) as client:
        node_id = find_node(client, node).id
        paused = client.call(operations.CHANGE_NODE, json={"is_paused": True}, node=node_id)
    print(describe_node(paused))


@app.command()
def ledger(
    node: NodeArgument,
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days it covers.")] = 30,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what your node did, for whom and for how many minutes, what was installed on it, and what waits."""
    with Client(find_account(server)) as client:
        owned = find_node(client, node)
        answer = client.ask(operations.NODE_LEDGER, node=owned.id, params={"days": days})
    if as_json:
        write_json(answer.json)
        return
    print_lines(*format_ledger(owned.name, answer.parsed, days=days))


def format_ledger(name: str, ledger: LedgerOut, *, days: int) -> Iterator[str]:
    """Yield the lines of a node's ledger for people, in this order: what it measured, installed, does now, does next.

    `name`: the node's name. `days`: how many days the ledger covers.
    """
    blocks, total_time = counted(ledger.blocks, "block"), duration(round(60.0 * ledger.minutes))
    yield f"{name} measured {blocks} in {counted(days, 'day')}, {total_time} in all."
    for work in ledger.work:
        person = f"{work.person or 'a former user'} of {work.team}" + (f", {work.reason}" if work.reason else "")
        counts = f"{counted(work.runs, 'run')}, {counted(work.blocks, 'block')}"
        yield f"  {duration(round(60.0 * work.minutes))} for {person}: {counts}"
    for installed in ledger.installed:
        yield f"{installed.at:%Y-%m-%d %H:%M}: {installed.text}"
    yield f"Now: {ledger.now.removesuffix('.') or 'unknown, as the farm is older'}."
    for waiting in ledger.next:
        work_name = f"run {waiting.run}" if waiting.run is not None else f"a run of {waiting.team}"
        if waiting.begins_in_minutes is None or waiting.minutes is None:
            yield f"Waits: {work_name}, until its machine is free for it."
        else:
            begins, lasts = (format_about(60.0 * minutes) for minutes in (waiting.begins_in_minutes, waiting.minutes))
            yield f"Next: {work_name}, in {begins}, for {lasts}."
    if not ledger.next:
        yield "Nothing waits for it."


@app.command()
def limits(  # noqa: PLR0913  every option of the command
    node: NodeArgument,
    hours: Annotated[str | None, HOURS] = None,
    max_block: Annotated[float | None, MINUTES] = None,
    max_temperature: Annotated[str | None, CELSIUS] = None,
    model_cache: Annotated[float | None, MODEL_CACHE] = None,
    runtime_cache: Annotated[float | None, RUNTIME_CACHE] = None,
    tags: Annotated[str | None, TAGS] = None,
    trials: Annotated[Trials | None, TRIALS] = None,
    server: ServerOption = None,
) -> None:
    """Show a node's limits, or change those that are given."""
    changes: dict[str, object] = {} if hours is None else _parse_hours(hours)
    if max_block is not None:
        changes["max_block_s"] = 60.0 * _check_finite("--max-block", max_block)
    if max_temperature is not None:
        changes["max_temperature_c"] = _parse_celsius(max_temperature)
    if model_cache is not None:
        changes["cache_bytes"] = int(GIB * _check_finite("--model-cache", model_cache))
    if runtime_cache is not None:
        changes["runtimes_bytes"] = int(GIB * _check_finite("--runtime-cache", runtime_cache))
    if tags is not None:
        changes["tags"] = split_list(tags)
    if trials is not None:
        changes["trials"] = trials.value
    with Client(find_account(server)) as client:
        limited = find_node(client, node)
        if changes:
            limited = client.call(operations.CHANGE_NODE, json=changes, node=limited.id)
    _show_limits(limited)


@app.command()
def lend(node: NodeArgument, team: TeamArgument, server: ServerOption = None) -> None:
    """Offer a node of yours to another team; an admin there has to agree."""
    with Client(find_account(server)) as client:
        _set_teams(client, node, add=team)
        lendings = client.call(operations.LENDINGS)
    for lending in lendings:
        if lending.team == team and node in (lending.node, str(lending.node_id)):
            print(f"{lending.node}: {lending.sentence}")


@app.command()
def take_back(node: NodeArgument, team: TeamArgument, server: ServerOption = None) -> None:
    """Let a node of yours measure for a team no more."""
    with Client(find_account(server)) as client:
        _set_teams(client, node, remove=team)
    print(f"{node} no longer measures for {team}.")


@app.command()
def lendings(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List nodes that are lent or offered: yours to others, and others' to your teams."""

    def format_row(row: LendingOut) -> tuple[str, ...]:
        owner = f"{row.owner or 'nobody'}, {row.from_team}"
        return str(row.id), row.node, owner, row.team, row.sandbox, row.fingerprint, row.sentence

    heads = ("lending", "node", "of", "for", "sandbox", "fingerprint", "status")
    none = "No node is lent: `onnxfarm node lend NODE TEAM` offers one."
    show_rows(ask_farm(server, operations.LENDINGS), heads, format_row, as_json=as_json, none=none)


@app.command()
def agree(lending: LendingArgument, server: ServerOption = None) -> None:
    """Let a node of others measure your team's models, once its fingerprint was compared."""
    _answer_lending(lending, "agree", server)


@app.command()
def decline(lending: LendingArgument, server: ServerOption = None) -> None:
    """Let a node of others have none of your team's models, or no more of them."""
    _answer_lending(lending, "decline", server)


@app.command("try")
def try_(
    node: NodeArgument,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="An execution provider, e.g. openvino.")],
    server: ServerOption = None,
) -> None:
    """Ask a node's owner to let it try a provider; on a node that you manage, or that is allowed to, it tries it."""
    with Client(find_account(server)) as client:
        node_id = find_node(client, node).id
        print(client.call(operations.ASK_TRIAL, json={"provider": provider}, node=node_id).sentence)


@app.command()
def trials(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the providers that nodes of your teams try, were asked to try, or tried."""
    show_rows(
        ask_farm(server, operations.TRIALS),
        ("trial", "node", "provider", "state", "status"),
        lambda row: (str(row.id), row.node, row.provider, row.state, row.sentence),
        as_json=as_json,
        none="No trials yet: `onnxfarm node try NODE PROVIDER` asks for it.",
    )


@app.command()
def allow(trial: TrialArgument, server: ServerOption = None) -> None:
    """Let a node of yours try the provider that somebody asked for."""
    print(ask_farm(server, operations.ANSWER_TRIAL, trial=trial, what="allow").parsed.sentence)


@app.command()
def deny(trial: TrialArgument, server: ServerOption = None) -> None:
    """Let a node of yours not try a provider, or no more."""
    print(ask_farm(server, operations.ANSWER_TRIAL, trial=trial, what="decline").parsed.sentence)


def _answer_lending(lending: int, answer: str, server: str | None) -> None:
    answered = ask_farm(server, operations.ANSWER_LENDING, lending=lending, what=answer).parsed
    print(f"{answered.node}: {answered.sentence}")


def _set_teams(client: Client, number_or_name: str, *, add: str = "", remove: str = "") -> None:
    """Add or remove one of the teams that a node is offered to. Raises Usage if it is not offered to `remove`."""
    node = find_node(client, number_or_name)
    teams = [row.team for row in client.call(operations.LENDINGS) if row.node_id == node.id]
    if remove and remove not in teams:
        raise Usage(f"{node.name} is not offered to {remove}: `onnxfarm node lendings` shows what is.")
    offered = sorted({*teams, add} - {remove, ""})
    client.ask(operations.CHANGE_NODE, json={"teams": offered}, node=node.id)


def describe_node(node: NodeOut) -> str:
    """Describe a node's health, and its pause unless it is retired: `bench-2 is active. Paused by its owner.`"""
    pause = "" if node.health == "retired" else node.pause
    return " ".join(text for text in (f"{node.name} is {node.health}.", pause) if text)


def parse_settings(node: NodeOut) -> NodeSettings:
    """Return the settings of a node, without keys that this version does not know."""
    return NodeSettings.model_validate(node.settings, extra="ignore")


def _show_limits(node: NodeOut) -> None:
    settings = parse_settings(node)
    max_c = settings.max_temperature_c
    rows = {
        "hours": f"{settings.hours} {settings.timezone}" if settings.hours else ALWAYS,
        "longest block": f"{settings.max_block_s / 60:g} min",
        "highest temperature": ANY if max_c is None else f"{max_c:g} °C",
        "model cache": f"{settings.cache_bytes / GIB:g} GiB",
        "runtime cache": f"{settings.runtimes_bytes / GIB:g} GiB",
        "tags of its owner": ", ".join(node.owner_tags) or "none",
        "tries providers": TRIED[Trials(node.trials_allowed)],
    }
    console = Console(soft_wrap=True)
    console.print(describe_node(node), markup=False, highlight=False)
    print_pairs(rows.items(), console=console)


def _parse_hours(text: str) -> dict[str, object]:
    """Parse `20:00-06:00 Europe/Vienna`, or `always`, into settings. Without a zone, the node keeps its own.

    The farm checks whether hours and zone are valid. Raises Usage for more than two words, or none.
    """
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise Usage(f"--hours is {text!r}: write it like '20:00-06:00 Europe/Vienna', or `{ALWAYS}`.")
    zone = {"timezone": words[1]} if len(words) == 2 else {}
    return {"hours": "" if words[0] == ALWAYS else words[0], **zone}


def _check_finite(option: str, value: float) -> float:
    if not isfinite(value):
        raise Usage(f"{option} is {value}: give a number.")
    return value


def _parse_celsius(text: str) -> float | None:
    """Parse a temperature limit in °C; None: any temperature. Raises Usage."""
    if text == ANY:
        return None
    try:
        return _check_finite("--max-temperature", float(text))
    except ValueError as problem:
        raise Usage(f"--max-temperature is {text!r}: give a number of degrees, or `{ANY}`.") from problem


def make_node_row(node: NodeOut) -> tuple[str, ...]:
    """Make the cells of a node's row in the list, in the order of HEADS."""
    tags = " ".join([*node.tags, *node.owner_tags]) or "none verified yet"
    self_test = node.self_test.sentence if node.self_test else "not run yet"
    return str(node.id), node.name, node.state, node.health, tags, node.fingerprint, self_test


def _order(client: Client, node: NodeOut, order_name: str) -> NodeOut:
    return client.call(operations.ORDER_NODE, node=node.id, what=order_name)


def _resume(client: Client, node: NodeOut) -> NodeOut:
    """End a node's pause, and resume it if it was drained or quarantined. Return the changed node.

    The farm refuses to resume an active node, so a node that was only paused is not resumed.
    """
    was_paused = parse_settings(node).is_paused
    if was_paused:
        node = client.call(operations.CHANGE_NODE, json={"is_paused": False}, node=node.id)
    return node if was_paused and node.health == "active" else _order(client, node, "resume")
