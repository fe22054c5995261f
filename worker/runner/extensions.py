"""Imports engines, scenarios, judges and passes when they are needed.

Extensions are engines, scenarios and judges of other packages, in files that the agent staged with the runner.
"""

import importlib
from typing import Any, Literal

from worker.runner import faults

# the package with the files of extensions
OUTSIDE = "worker.runner.outside"
ExtensionKind = Literal["engine", "scenario", "accuracy"]


def import_builtin(target: str) -> Any:
    """Import an object of the runner itself. `target` is MODULE:NAME, where the module is below worker.runner."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)


def import_extension(kind: ExtensionKind, name: str) -> Any:
    """Import the object `Outside` from the file of an extension, by the name of its entry.

    Raises Refusal where there is no such file, or where it imports a module that is missing.
    """
    folder = f"{OUTSIDE}.{kind}"
    try:
        # importing by this name is safe: it is an entry's on the farm and on the node, and no user chooses it
        return importlib.import_module(f"{folder}.{name}").Outside
    except ModuleNotFoundError as missing:
        if missing.name not in (OUTSIDE, folder, f"{folder}.{name}"):
            raise faults.Refusal("internal", f"the {kind} {name!r} cannot be imported here: {missing}") from missing
        called = "accuracy metric" if kind == "accuracy" else kind
        text = (
            f"the runner knows no {called} named {name!r}: install the package that brings it beside the node's agent"
        )
        raise faults.Refusal("not_supported", text) from missing
