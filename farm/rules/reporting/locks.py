"""The lock files of a report: the runtime and numpy of a cell, pinned, as pip takes them. Pure.

Whoever unpacks a report installs them, so nothing stands here but published builds of ONNX Runtime, by the farm's own
list, and numpy in a version by PEP 440. What else was installed is in document.json; pip resolves it anew.
"""

from pydantic import ValidationError

from farm.contract.cells import Runtime
from farm.contract.document_cells import Cell
from farm.contract.packages import is_pinned
from farm.rules.runtimes import plugins, providers

NUMPY = "numpy"
UNPUBLISHED = "# The runtime of this cell is not a published build of ONNX Runtime: install it yourself."


def lock(cell: Cell) -> str:
    """The pins of a cell, a line each; a runtime that is no published build is named in a comment."""
    runtimes = _runtimes(cell.runtime)
    pins = {**runtimes, NUMPY: cell.packages.get(NUMPY, "")}
    lines = [f"{name}=={version}" for name, version in sorted(pins.items()) if is_pinned(name, version)]
    return "".join(f"{line}\n" for line in (lines if runtimes else [UNPUBLISHED, *lines]))


def _runtimes(runtime: Runtime) -> dict[str, str]:
    """The runtime, and the ONNX Runtime beside it where it is a plug-in; none where it is not a published one."""
    try:
        Runtime.model_validate(runtime.model_dump())
    except ValidationError:
        return {}
    is_own_build = "+" in runtime.version and plugins.plugin_of(runtime) is None
    if runtime.distribution not in providers.EVERY_DISTRIBUTION or is_own_build:
        return {}
    return {package.distribution: package.version for package in plugins.packages_of(runtime)}
