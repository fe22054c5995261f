"""Names runtimes, providers and settings for people."""

from collections.abc import Mapping
from typing import Protocol

from farm.contract.cells import Call, Runtime
from farm.rules.runtimes import distributions, engines, frameworks, indexes, plugins, providers
from farm.rules.wording.numbers import counted

# the ways in which a program asks for an inference
CALLS: Mapping[Call, str] = {"bound": "io-binding", "run": "session.run"}
# Returns `CPU` or `CUDA`, or an unknown provider's own name.
provider = providers.title


def runtime(runtime: Runtime) -> str:
    """Return a short name: `1.31.1` for `onnxruntime==1.31.1`; another distribution keeps its own part of the name.

    A plug-in that names the ONNX Runtime beside it has both: `ggml 0.2.0 on 1.30.0`. A build of another index names the
    index: `1.33.0.dev1 from nightly`. Without a version, the name is the whole distribution.
    """
    own = runtime.distribution.removeprefix(distributions.DEFAULT_DISTRIBUTION).strip("-")
    release, core = plugins.split_pair(runtime.version)
    if not runtime.version:
        return runtime.distribution
    return f"{own} {release} on {core}" if core else f"{own} {indexes.describe_version(runtime.version)}".strip()


def format_since(distribution: str, *, good: str, bad: str, first_bad: str = "") -> str:
    """Say since which release something is bad.

    It is `since 1.30.0` where `first_bad` is known from a bisection, or else `between 1.29.0 and 1.32.0`.
    """
    before, after, first = (runtime(Runtime.of(f"{distribution}=={version}")) for version in (good, bad, first_bad))
    return f"since {first}" if first_bad else f"between {before} and {after}"


def runtime_in_words(runtime: Runtime) -> str:
    """Return the full name: `ONNX Runtime 1.31.1`, `ONNX Runtime 1.24.1 (onnxruntime-openvino)`, `PyTorch 2.13.0
    (eager)`. Without a version, it is the distribution."""
    distribution, version = runtime.distribution, runtime.version
    if not version:
        return distribution
    if plugins.split_pair(version)[1]:
        return f"{distribution} {plugins.describe_version(version)}"
    return engines.engine_of(runtime).describe(runtime)


def runtime_before(old: Runtime, new: Runtime) -> str:
    """Name the older runtime in a text that names the newer one; its version is enough if the distribution is the same.

    Runtimes of a framework such as PyTorch keep their full name.
    """
    if old.distribution == new.distribution != frameworks.DISTRIBUTION:
        return plugins.describe_older_version(old.version, new.version)
    return runtime_in_words(old)


class Setting(Protocol):
    """What distinguishes one measured setting of a model from another."""

    @property
    def runtime(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def batch(self) -> int | None: ...
    @property
    def threads(self) -> int | None: ...


def setting(setting: Setting) -> str:
    """Return a setting in words: `1.31.1, CPU, int8-dynamic, batch 8, 1 thread`."""
    batch = [f"batch {setting.batch}"] if setting.batch is not None else []
    threads = [counted(setting.threads, "thread")] if setting.threads is not None else []
    return ", ".join(
        [runtime(Runtime.of(setting.runtime)), provider(setting.provider), setting.precision, *batch, *threads]
    )
