"""Plug-in packages: a provider in a library of its own, installed beside plain `onnxruntime`. Pure.

Such a package is a runtime like any other distribution: its releases are the axis, and the ONNX Runtime beside it is
pinned here, so that two releases of a plug-in differ by the plug-in alone.
"""

import re

from farm.contract.cells import Runtime
from farm.rules.runtimes.provider import Plugin
from farm.rules.runtimes.provider_table import CPU, PLAIN, PROVIDERS

PLUGINS = CPU.plugins
_BY_PACKAGE = {one.package: one for one in PLUGINS}
_PROVIDER_OF = {plugin.package: entry.name for entry in PROVIDERS if entry is not CPU for plugin in entry.plugins}


def plugin_of(runtime: Runtime) -> Plugin | None:
    """The plug-in that this runtime is; None for a build of ONNX Runtime itself."""
    found = _BY_PACKAGE.get(runtime.distribution)
    major = re.match(r"\d+", runtime.version)
    return found if found is not None and major is not None and int(major[0]) >= found.first_major else None


def core_of(runtime: Runtime) -> Runtime:
    """The ONNX Runtime that loads the models: the runtime itself, or what stands beside a plug-in."""
    found = plugin_of(runtime)
    return runtime if found is None else Runtime(distribution=PLAIN.package, version=found.core)


def library_for(runtime: Runtime, provider: str) -> str | None:
    """The `module:function` that gives the library with this provider; None where the runtime needs none."""
    found = plugin_of(runtime)
    return found.library if found is not None and _PROVIDER_OF[found.package] == provider else None
