"""Imports engines, scenarios, judges and passes when they are needed.

Those of other packages are files that the agent put beside the runner's own.
"""

import importlib
from typing import Any, Literal

from worker.runner import faults

# the folder of what came from outside
OUTSIDE = "worker.runner.outside"
Sort = Literal["engine", "scenario", "accuracy"]


def import_own(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)


def import_outside(sort: Sort, name: str) -> Any:
    """Import the object `Outside` of another package's file. Raises Refusal where there is no such file."""
    folder = f"{OUTSIDE}.{sort}"
    try:
        # a name that no matrix chose: it is one of an entry that the farm and the node have
        return importlib.import_module(f"{folder}.{name}").Outside
    except ModuleNotFoundError as missing:
        if missing.name not in (OUTSIDE, folder, f"{folder}.{name}"):
            raise faults.Refusal("internal", f"the {sort} {name!r} cannot be imported here: {missing}") from missing
        called = "accuracy metric" if sort == "accuracy" else sort
        text = (
            f"the runner knows no {called} named {name!r}: install the package that brings it beside the node's agent"
        )
        raise faults.Refusal("not_supported", text) from missing
