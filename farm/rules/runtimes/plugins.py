"""Plug-in packages: a provider in a library of its own, installed beside plain `onnxruntime`. Pure.

Such a package is a runtime like any other distribution: its releases are the axis, and the ONNX Runtime beside it is
pinned here, so that two releases of a plug-in differ by the plug-in alone.
Source: the packages' own descriptions on PyPI, November 2026.
"""

import re
from dataclasses import dataclass

from farm.contract.cells import Runtime

# what stands beside every plug-in; another one would make other cells of the same digest
CORE = Runtime(distribution="onnxruntime", version="1.31.1")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One package. `module` finds the library (`get_library_path`); `oldest`: the first ONNX Runtime that loads it.

    `first_major`: releases before it were builds of ONNX Runtime themselves.
    """

    package: str
    provider: str
    module: str
    oldest: str
    releases: tuple[str, ...]
    first_major: int = 0


PLUGINS = (
    Plugin(
        package="onnxruntime-ep-webgpu",
        provider="WebGpuExecutionProvider",
        module="onnxruntime_ep_webgpu",
        oldest="1.24.4",
        releases=("0.1.0", "0.2.1", "0.3.0", "0.4.0"),
    ),
    Plugin(
        package="onnxruntime-ep-openvino",
        provider="OpenVINOExecutionProvider",
        module="onnxruntime_ep_openvino",
        oldest="1.23.0",
        releases=("1.4.0", "1.4.1", "1.5.2", "1.6.1", "1.7.0", "1.8.0", "1.8.1"),
    ),
    Plugin(
        package="onnxruntime-qnn",
        provider="QNNExecutionProvider",
        module="onnxruntime_qnn",
        oldest="1.24.1",
        releases=("2.0.0", "2.1.0", "2.1.1", "2.2.0", "2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0"),
        first_major=2,
    ),
)
PACKAGES = tuple(one.package for one in PLUGINS)
_BY_PACKAGE = {one.package: one for one in PLUGINS}


def plugin_of(runtime: Runtime) -> Plugin | None:
    """The plug-in that this runtime is; None for a build of ONNX Runtime itself."""
    found = _BY_PACKAGE.get(runtime.distribution)
    major = re.match(r"\d+", runtime.version)
    return found if found is not None and major is not None and int(major[0]) >= found.first_major else None


def core_of(runtime: Runtime) -> Runtime:
    """The ONNX Runtime that loads the models: the runtime itself, or what stands beside a plug-in."""
    return CORE if plugin_of(runtime) else runtime


def module_for(runtime: Runtime, provider: str) -> str | None:
    """The module whose library brings this provider to the runtime; None where it needs none."""
    found = plugin_of(runtime)
    return found.module if found is not None and found.provider == provider else None
