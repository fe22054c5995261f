"""`onnxfarm node pause|limits`: what a node's owner allows, from any terminal."""

from collections.abc import Mapping
from math import isfinite
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from farm.contract.api.fleet import NodeOut
from farm.contract.node import NodeSettings
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import node_named

NodeArgument = Annotated[str, typer.Argument(metavar="NODE", help="Its number or name, as `onnxfarm node list` shows.")]
HoursOption = Annotated[
    str | None,
    typer.Option(
        metavar="'HH:MM-HH:MM ZONE'",
        help="When it works, in a zone such as Europe/Vienna; `always` ends it.",
        show_default="unchanged",
    ),
]
MinutesOption = Annotated[
    float | None,
    typer.Option(metavar="MINUTES", min=0.5, max=1440, help="How long one block may take.", show_default="unchanged"),
]
CelsiusOption = Annotated[
    str | None,
    typer.Option(metavar="CELSIUS", help="Above it, it accepts no blocks; `any` ends it.", show_default="unchanged"),
]
ModelCacheOption = Annotated[
    float | None,
    typer.Option(metavar="GIB", min=1, max=2**20, help="Size of its model cache.", show_default="unchanged"),
]
RuntimeCacheOption = Annotated[
    float | None,
    typer.Option(metavar="GIB", min=1, max=2**20, help="Size of its runtime cache.", show_default="unchanged"),
]
TagsOption = Annotated[
    str | None,
    typer.Option(
        metavar="TAG,TAG",
        help="Tags beside those that it proves, in place of these; '' ends them.",
        show_default="unchanged",
    ),
]
GIB = 1024**3
ALWAYS, ANY = "always", "any"


def register(app: typer.Typer) -> None:
    """Put the commands into `onnxfarm node`."""
    app.command("pause")(main_guard()(pause))
    app.command("limits")(main_guard()(limits))


def pause(node: NodeArgument, server: ServerOption = None) -> None:
    """Pause a node: it finishes its current block and accepts no more until it is resumed."""
    with Client(find_account(server)) as client:
        found = node_named(client, node)
        done = client.call(operations.CHANGE_NODE, json={"is_paused": True}, node=found.id)
    print(standing_of(done))


def limits(
    node: NodeArgument,
    hours: HoursOption = None,
    max_block: MinutesOption = None,
    max_temperature: CelsiusOption = None,
    model_cache: ModelCacheOption = None,
    runtime_cache: RuntimeCacheOption = None,
    tags: TagsOption = None,
    server: ServerOption = None,
) -> None:
    """Show a node's limits, or change those that are given."""
    asked = {
        "max_block_s": None if max_block is None else 60.0 * _finite("--max-block", max_block),
        "cache_bytes": None if model_cache is None else int(GIB * _finite("--model-cache", model_cache)),
        "runtimes_bytes": None if runtime_cache is None else int(GIB * _finite("--runtime-cache", runtime_cache)),
        "tags": None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()],
    }
    changes: dict[str, object] = {name: value for name, value in asked.items() if value is not None}
    changes |= {} if hours is None else _hours(hours)
    if max_temperature is not None:
        changes["max_temperature_c"] = _celsius(max_temperature)
    with Client(find_account(server)) as client:
        found = node_named(client, node)
        if changes:
            found = client.call(operations.CHANGE_NODE, json=changes, node=found.id)
    _show(found)


def standing_of(node: NodeOut) -> str:
    """`bench-2 is active. Paused by its owner.`"""
    why = "" if node.health == "retired" else node.pause
    return " ".join(text for text in (f"{node.name} is {node.health}.", why) if text)


def limits_of(node: NodeOut) -> NodeSettings:
    """What the node's owner set."""
    return NodeSettings.model_validate(node.settings, extra="ignore")


def _show(node: NodeOut) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for label, value in _rows(limits_of(node), node.owner_tags).items():
        table.add_row(label, value)
    Console(soft_wrap=True).print(standing_of(node), markup=False, highlight=False)
    Console(soft_wrap=True).print(table)


def _rows(said: NodeSettings, tags: list[str]) -> Mapping[str, str]:
    heat = said.max_temperature_c
    return {
        "hours": f"{said.hours} {said.timezone}" if said.hours else ALWAYS,
        "longest block": f"{said.max_block_s / 60:g} min",
        "highest temperature": ANY if heat is None else f"{heat:g} °C",
        "model cache": f"{said.cache_bytes / GIB:g} GiB",
        "runtime cache": f"{said.runtimes_bytes / GIB:g} GiB",
        "tags of its owner": ", ".join(tags) or "none",
    }


def _hours(text: str) -> dict[str, object]:
    """`20:00-06:00 Europe/Vienna`; without a zone it stays. The farm judges both."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise Usage(f"--hours is {text!r}: write it like '20:00-06:00 Europe/Vienna', or `{ALWAYS}`.")
    zone = {"timezone": words[1]} if len(words) == 2 else {}
    return {"hours": "" if words[0] == ALWAYS else words[0], **zone}


def _finite(option: str, value: float) -> float:
    if not isfinite(value):
        raise Usage(f"{option} is {value}: give a number.")
    return value


def _celsius(text: str) -> float | None:
    if text == ANY:
        return None
    try:
        return _finite("--max-temperature", float(text))
    except ValueError as problem:
        raise Usage(f"--max-temperature is {text!r}: give a number of degrees, or `{ANY}`.") from problem
