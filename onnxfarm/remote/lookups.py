"""Finds what a user names on the command line, by number or name.

Each function raises Usage if nothing or more than one thing has the name, and if the farm refuses the request.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from farm.contract.api.alerts import WatchOut
from farm.contract.api.fleet import NodeOut
from farm.contract.api.people import TeamWithMembersOut
from farm.contract.api.registry import ModelOut, VersionOut
from onnxfarm.problems import Usage
from onnxfarm.remote import operations
from onnxfarm.remote.client import Client

Named = TypeVar("Named")

# NAME@VERSION, a version of a model
VERSION = re.compile(r"(?P<model>.+)@v?(?P<number>\d{1,9})")


def find_team(client: Client, name: str) -> TeamWithMembersOut:
    """Find one of the user's teams by name, whether they manage it or not. Raises Usage.

    An empty name stands for their default team, and is refused if they do not manage that team.
    """
    teams = client.call(operations.TEAMS)
    for team in teams:
        is_found = team.name == name if name else team.is_default and team.may_manage
        if is_found:
            return team
    managed = [team.name for team in teams if team.may_manage]
    if not name and managed:
        raise Usage(f"No team was named: give --team; you manage {', '.join(managed)}.")
    names = ", ".join(team.name for team in teams) or "none"
    problem = f"There is no team “{name}” of yours" if name else "You manage no team"
    raise Usage(f"{problem}; your teams: {names}.")


def find_node(client: Client, number_or_name: str) -> NodeOut:
    """Find a node by number or name. Raises Usage.

    If one node has this number and another this name, the number wins. A retired node is found by name only if no other
    node has the name.
    """
    nodes = client.call(operations.NODES)
    named = [node for node in nodes if node.name == number_or_name]
    working = [node for node in named if node.health != "retired"]
    return _get_single(
        [node for node in nodes if str(node.id) == number_or_name] or working or named,
        none=f"There is no node “{number_or_name[:60]}” that you can access: `onnxfarm node list` shows them.",
        several=f"nodes are called {number_or_name}: give a number, as `onnxfarm node list` shows it.",
    )


def find_model(client: Client, number_or_name: str, *, is_removed: bool = False) -> ModelOut:
    """Find a model by number or name. Text that has only digits is a number. Raises Usage.

    A name must be written in full, and is found among the first 100 models that contain it. `is_removed`: look for the
    name among the deleted models. A number finds a model whether it is deleted or not.
    """
    models: list[ModelOut]
    if number_or_name.isdecimal():
        models = [client.call(operations.MODEL, model=number_or_name)]
    else:
        params = {"limit": 100, "removed": "true" if is_removed else "false", "search": number_or_name[:100]}
        models = client.call(operations.MODELS, params=params)
    named = [model for model in models if number_or_name in (model.name, str(model.id))]
    kind = "deleted model" if is_removed else "model"
    none = f"There is no {kind} “{number_or_name}” that you can access: `onnxfarm models` lists them."
    choices = ", ".join(f"{model.id} of team {model.team}" for model in named)
    return _get_single(named, none=none, several=f"models are called {number_or_name}: give a number, {choices}.")


def find_version_by_number(client: Client, model_id: int, number: int) -> VersionOut:
    """Find a version of a model by its number in the model, deleted or not. Raises Usage if there is none."""
    page = client.call(operations.MODEL, model=model_id)
    versions = {version.number: version for version in (*page.versions, *page.removed_versions)}
    if number not in versions:
        numbers = ", ".join(map(str, versions)) or "none"
        raise Usage(f"{page.name} has no version {number}; its versions: {numbers}.")
    return versions[number]


def find_version(client: Client, named: str) -> VersionOut:
    """Find the version that NAME@VERSION names. Raises Usage.

    NAME may also be the model's number. A deleted model is found by its number only; the version may be deleted.
    """
    match = VERSION.fullmatch(named)
    if match is None:
        raise Usage(f"“{named}” names no version: write NAME@VERSION, such as encoder@2.")
    return find_version_by_number(client, find_model(client, match["model"]).id, int(match["number"]))


def find_watch(client: Client, number_or_name: str) -> WatchOut:
    """Find a watch by number or name. Text that has only digits is a number. Raises Usage."""
    if number_or_name.isdecimal():
        return client.call(operations.WATCH, watch=number_or_name)
    return _get_single(
        [watch for watch in client.list_rows(operations.WATCHES).parsed if watch.name == number_or_name],
        none=f"There is no watch “{number_or_name}” that you can access: `onnxfarm watch list` shows yours.",
        several=f"watches are named “{number_or_name}”: give the number of one, as `onnxfarm watch list` does.",
    )


def _get_single(candidates: Sequence[Named], *, none: str, several: str) -> Named:
    if len(candidates) == 1:
        return candidates[0]
    raise Usage(f"{len(candidates)} {several}" if candidates else none)
