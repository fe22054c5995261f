"""ONNX Runtime Web: the build of npm that runs models in browsers.

It is a runtime like any other, but no node installs it: the farm fetches the package, keeps the files named here, and a
browser that is a node loads them from the farm. Dated builds of npm count as releases (`is_release` looks at the form
alone), but none of them is pinned.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.contract.cells import NO_POLICY, CellSpec, Runtime
from farm.contract.reasons import Reason
from farm.rules.runtimes.engine import Launched, OnnxRuntime, unsupported
from farm.rules.runtimes.models import ModelFacts
from farm.rules.runtimes.order import NPM_BUILD, known_releases, release_order
from farm.rules.runtimes.provider import Build, Provider

DISTRIBUTION = "onnxruntime-web"
# the only sandbox that a node without a Python agent has
BROWSER = "browser"
BUILD = Build(DISTRIBUTION, is_complete=True)
# the name of WebAssembly's provider in profiles of ONNX Runtime Web; elsewhere it is the native CPU provider's
NAME_IN_PROFILE = "CPUExecutionProvider"
PROVIDER = Provider(
    name="WasmExecutionProvider",
    short="wasm",
    title="WebAssembly",
    device="cpu",
    tag="wasm",
    aliases=("webassembly",),
    meant_by=("browser", "tab"),
    builds=(BUILD,),
    needs="a browser with WebAssembly SIMD that is open as a node",
)
# WebNN hands models on to the system's own machine learning; browsers have it behind a flag, or on some systems only
WEBNN = Provider(
    name="WebNNExecutionProvider",
    short="webnn",
    title="WebNN",
    device="npu",
    tag="webnn",
    builds=(BUILD,),
    needs="a browser open as a node whose WebNN computes",
)
# npm, November 2026, from the first release that is made of modules
RELEASES = known_releases(DISTRIBUTION)
# the files of the package's folder `dist` that a browser loads: the JavaScript module, the glue and the WebAssembly
MODULE, GLUE, BINARY = "ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"
FILES = (MODULE, GLUE, BINARY)
# the same for WebGPU and WebNN (npm, November 2026), from the first release that has WebGPU as the native provider
WEBGPU_FROM = "1.23.2"
WEBGPU_MODULE = "ort.webgpu.min.mjs"
WEBGPU_GLUE, WEBGPU_BINARY = "ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm"
WEBGPU_FILES = (WEBGPU_MODULE, WEBGPU_GLUE, WEBGPU_BINARY)
# the file with the sha256 of these files for each known release; deploy/lock-runtimes writes it
PINS, PINS_VERSION = Path(__file__).with_name("web.json"), 1
_RELEASE = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}")


class _InBrowsers(OnnxRuntime):
    """The build that tabs load."""

    def refusals(self, spec: CellSpec, model: ModelFacts, scenario: Launched, *, named: str) -> Iterator[Reason]:
        """Yield reasons for settings that ONNX Runtime Web would silently ignore."""
        session = spec.session
        asked = {
            "concurrency": spec.workload.concurrency != 1,
            "inter_op_threads": session.inter_op_threads != 1,
            "execution_mode: parallel": session.execution_mode == "parallel",
            "disabled_optimizers": bool(session.disabled_optimizers),
            "policy": session.policy != NO_POLICY,
            "memory-limit-mb": bool(session.memory_limit_mb),
            "options of providers": bool(spec.provider_options),
        }
        if unfit := [name for name, is_asked in asked.items() if is_asked]:
            yield unsupported(f"{DISTRIBUTION} has no {', '.join(unfit)}: leave that out for browsers.")


WEB = _InBrowsers("web", MODULE, DISTRIBUTION, "ONNX Runtime", is_browser=True)


def is_web(runtime: Runtime) -> bool:
    return runtime.distribution == DISTRIBUTION


def is_release(version: str) -> bool:
    return _RELEASE.fullmatch(version) is not None or NPM_BUILD.fullmatch(version) is not None


def list_files(version: str) -> tuple[str, ...]:
    return (*FILES, *WEBGPU_FILES) if has_webgpu(version) else FILES


def pins_of(version: str) -> Mapping[str, str]:
    return _read_pins().get(version, {})


def is_unpinned(runtime: Runtime) -> bool:
    return runtime.distribution == DISTRIBUTION and not pins_of(runtime.version)


def mismatch_sentence(version: str, files: Mapping[str, str]) -> str | None:
    """Say which of these files (the sha256 of each by its name) is not the one that is pinned for the release.

    Only the first is named; one that is missing counts. None where all pinned files match, and for an unpinned release.
    """
    for name, pin in pins_of(version).items():
        if (actual := files.get(name, "none")) != pin:
            return (
                f"{name} of {DISTRIBUTION} {version} is not the one that this farm knows ({actual[:12]}… and not "
                f"{pin[:12]}…); the release is not used. Look at ONNXFARM_NPM_REGISTRY, or at what stands between."
            )
    return None


def has_webgpu(version: str) -> bool:
    return release_order(version) >= release_order(WEBGPU_FROM)


def too_old_sentence(version: str) -> str | None:
    """Say why a release cannot be loaded here; None where it can."""
    if release_order(version) >= release_order(RELEASES[0]):
        return None
    return f"{DISTRIBUTION} {version} is not made of modules: take {RELEASES[0]} or newer."


@functools.cache
def _read_pins() -> dict[str, dict[str, str]]:
    pins: dict[str, dict[str, str]] = json.loads(PINS.read_text(encoding="utf-8"))["sha256"] if PINS.exists() else {}
    return pins
