"""Plug-in packages, each of which brings a provider in a separate library and is installed beside plain `onnxruntime`.

Such a package is a runtime like any other distribution: its releases are the axis. Beside a known one stands a pinned
ONNX Runtime, so that two releases of a plug-in differ by the plug-in alone. A user asks for another ONNX Runtime as
`NAME==0.2.0+onnxruntime==1.30.0`; the runtime's version then carries it as PEP 440's local part,
`0.2.0+onnxruntime.1.30.0`, so that both versions sort and stand in the cell's digest. The version of a third-party
plug-in always carries it.
"""

import re
from dataclasses import replace

from farm.contract.cells import Runtime
from farm.rules.runtimes import genai, indexes
from farm.rules.runtimes.provider import Plugin
from farm.rules.runtimes.provider_table import CPU, PLAIN, PROVIDERS

PLUGINS = CPU.plugins
# each plug-in and its provider's name, by package
_OF = {plugin.package: (plugin, entry.name) for entry in PROVIDERS if entry is not CPU for plugin in entry.plugins}
_OF[genai.DISTRIBUTION] = (genai.PACKAGE, CPU.name)
_LOCAL = re.compile(rf"([^+]+)\+{PLAIN.package}\.([0-9][0-9A-Za-z.]*)")


def split_pair(version: str) -> tuple[str, str]:
    """Split a version into the package's own and that of the ONNX Runtime beside it, which is empty where none is
    named."""
    match = _LOCAL.fullmatch(version)
    return (match[1], match[2]) if match is not None else (version, "")


def join_pair(version: str, core: str) -> str:
    return f"{version}+{PLAIN.package}.{core}"


def format_runtime(runtime: Runtime) -> str:
    own, core = split_pair(runtime.version)
    return f"{runtime.distribution}=={own}+{PLAIN.package}=={core}" if core else str(runtime)


def describe_version(version: str) -> str:
    own, core = split_pair(version)
    return f"{own} on ONNX Runtime {core}" if core else indexes.describe_version(own)


def describe_older_version(old: str, new: str) -> str:
    """Describe the older of two versions of a plug-in's runtime, by only the package that differs from the newer one.

    Both packages are named where both differ.
    """
    (old_own, old_core), (new_own, new_core) = split_pair(old), split_pair(new)
    if old_own == new_own and old_core != new_core and old_core:
        return f"on ONNX Runtime {old_core}"
    return indexes.describe_version(old_own) if old_core == new_core else describe_version(old)


def third_party_plugin(distribution: str) -> Plugin | None:
    """Return the table's third-party plug-in of this package; None for our known plug-ins and for unknown packages."""
    plugin = _OF.get(distribution)
    return plugin[0] if plugin is not None and plugin[0].beside else None


def plugin_of(runtime: Runtime) -> Plugin | None:
    """Return the plug-in that this runtime is, with its `core` as named; None for every other runtime, such as a build
    of ONNX Runtime (also an early release of a package that is a plug-in today) or a framework.

    A package that the table does not know is a plug-in where an ONNX Runtime is named beside it: its library is looked
    up as such packages usually offer it, by `library_path()` or `get_library_path()` of their module.
    """
    version, core = split_pair(runtime.version)
    plugin, _ = _OF.get(runtime.distribution, (None, ""))
    if plugin is None:
        module = re.sub(r"[-.]", "_", runtime.distribution)
        return (
            Plugin(runtime.distribution, library=f"{module}:", releases=(), core=core, beside=">=0") if core else None
        )
    major = re.match(r"\d+", version)
    if major is None or int(major[0]) < plugin.first_major:
        return None
    return replace(plugin, core=core) if core else plugin


def core_of(runtime: Runtime) -> Runtime:
    """Return the ONNX Runtime beside a plug-in, which loads the models; any other runtime comes back as it is, a
    framework too."""
    plugin = plugin_of(runtime)
    return runtime if plugin is None else Runtime(distribution=PLAIN.package, version=plugin.core)


def packages_of(runtime: Runtime) -> tuple[Runtime, ...]:
    """Return the packages to install for a runtime, by their own versions: its own, and the ONNX Runtime beside it."""
    if plugin_of(runtime) is None:
        return (runtime,)
    own = Runtime(distribution=runtime.distribution, version=split_pair(runtime.version)[0])
    return own, core_of(runtime)


def library_for(runtime: Runtime, provider: str) -> str | None:
    """Return the `module:function` that gives the library with this provider; None where the runtime needs none, or its
    plug-in has another provider.

    A plug-in that the table does not know has one provider, whatever its name; its function is left open.
    """
    plugin = plugin_of(runtime)
    if plugin is None or provider == CPU.name:
        return None
    _, name = _OF.get(plugin.package, (None, provider))
    return plugin.library if name == provider else None
