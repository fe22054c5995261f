"""Imports engines, scenarios, judges and passes when they are needed.

Those of other packages are in files that the agent staged with the runner.
"""

import importlib
from typing import Any, Literal

from worker.runner import faults

# the folder of files of other packages
OUTSIDE = "worker.runner.outside"
Sort = Literal["engine", "scenario", "accuracy"]


def import_own(place: str) -> Any:
    """Import an object of the runner by its place, MODULE:NAME below worker.runner."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)


def import_outside(sort: Sort, name: str) -> Any:
    """Import the object `Outside` of another package's file. Raises Refusal where there is no such file."""
    folder = f"{OUTSIDE}.{sort}"
    try:
        # the name is not a user's: it is that of an entry on the farm and on the node
        return importlib.import_module(f"{folder}.{name}").Outside
    except ModuleNotFoundError as missing:
        if missing.name not in (OUTSIDE, folder, f"{folder}.{name}"):
            raise faults.Refusal("internal", f"the {sort} {name!r} cannot be imported here: {missing}") from missing
        called = "accuracy metric" if sort == "accuracy" else sort
        text = (
            f"the runner knows no {called} named {name!r}: install the package that brings it beside the node's agent"
        )
        raise faults.Refusal("not_supported", text) from missing
