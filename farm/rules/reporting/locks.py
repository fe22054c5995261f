"""Makes the lock files of a report: the runtime and numpy of a cell, pinned, as pip takes them.

Readers of a report install from them, so they hold only numpy and builds of ONNX Runtime that the farm's own list names
as published. document.json lists the other installed packages, whose versions pip resolves anew.
"""

from pydantic import ValidationError

from farm.contract.cells import Runtime
from farm.contract.document_cells import Cell
from farm.contract.packages import is_pinned
from farm.rules.runtimes import plugins, providers

NUMPY = "numpy"
UNPUBLISHED = "# The runtime of this cell is not a published build of ONNX Runtime: install it yourself."


def make_lock(cell: Cell) -> str:
    """Return the text of a cell's lock file, a pin a line by name; an unpublished runtime is the comment UNPUBLISHED.

    A package is left out where its name and version make no valid pin, as numpy is where its version is not known.
    """
    runtimes = _find_published(cell.runtime)
    pins = {**runtimes, NUMPY: cell.packages.get(NUMPY, "")}
    lines = [f"{name}=={version}" for name, version in sorted(pins.items()) if is_pinned(name, version)]
    return "".join(f"{line}\n" for line in (lines if runtimes else [UNPUBLISHED, *lines]))


def _find_published(runtime: Runtime) -> dict[str, str]:
    """Return the versions by package of a runtime, and of the ONNX Runtime beside a plug-in; empty where the runtime is
    not a published one."""
    try:
        Runtime.model_validate(runtime.model_dump())
    except ValidationError:
        return {}
    is_own_build = "+" in runtime.version and plugins.plugin_of(runtime) is None
    if runtime.distribution not in providers.EVERY_DISTRIBUTION or is_own_build:
        return {}
    return {package.distribution: package.version for package in plugins.packages_of(runtime)}
