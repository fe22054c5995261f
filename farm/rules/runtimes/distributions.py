"""Which packages a node may install as a runtime, and how one is written. Pure.

Names and versions are read as `packaging` reads them, never by hand: what an installer would understand differently
(an address, extras, a marker, a range, a second line) is no runtime here. A package that is not listed is installed
only where it is allowed by its name, by the farm's admin and by the node's owner, each for themselves.
"""

import re
from collections.abc import Collection

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from farm.contract.cells import Runtime
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.provider import Build
from farm.rules.runtimes.provider_table import CPU, PLAIN

DEFAULT_DISTRIBUTION = PLAIN.package
# every package runs models on the CPU too
EVERY_DISTRIBUTION = CPU.packages
_BUILDS = {build.package: build for build in CPU.builds}
# what the contract's Runtime takes; `packaging` alone would take an epoch, a leading v and capital letters too
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,31}")


class RuntimeProblem(ValueError):
    """The text is no runtime, or one that may not be installed. The message is one sentence."""


def read(text: str, *, allowed: Collection[str] = ()) -> Runtime:
    """The runtime of `distribution==version`; a bare version is `onnxruntime`'s. `allowed`: names beyond the list.

    Raises RuntimeProblem.
    """
    distribution, version = _parts(text.strip())
    if distribution is not None and (sentence := _unknown(distribution, allowed)) is not None:
        raise RuntimeProblem(sentence)
    if distribution is None or version is None:
        raise RuntimeProblem(unclear_sentence(text))
    return Runtime(distribution=distribution, version=version)


def unclear_sentence(value: object) -> str:
    """What is said of a value that names no single release."""
    return f"The runtime {_shown(value)} is not one version: write it like `1.31.1` or `onnxruntime-openvino==1.24.1`."


def refusal(runtime: Runtime, *, allowed: Collection[str] = ()) -> str | None:
    """One sentence when nobody allowed this package, or its version is none; None when it may be installed.

    For runtimes that come from elsewhere: a stored cell, an order.
    """
    if (sentence := _unknown(runtime.distribution, allowed)) is not None:
        return sentence
    if read_version(runtime.version) is None:
        return f"{runtime.version!r} of {runtime.distribution} is not a version of a package: write it like `1.31.1`."
    return None


def is_known(distribution: str, allowed: Collection[str] = ()) -> bool:
    """Whether the package is on the list, or allowed by its name."""
    return distribution in EVERY_DISTRIBUTION or distribution in allowed


def build_of(distribution: str) -> Build:
    """How a build of ONNX Runtime is installed; one that is not on the list with all that it depends on."""
    return _BUILDS.get(distribution) or Build(distribution)


def read_version(text: str) -> str | None:
    """A version in its normal form, as far as a runtime may have it; None for anything else."""
    try:
        version = str(Version(text)) if _VERSION.fullmatch(text) else ""
    except InvalidVersion:
        return None
    return version if _VERSION.fullmatch(version) else None


def read_names(text: str) -> frozenset[str]:
    """Names of packages, separated by commas, in their normal form. Raises RuntimeProblem."""
    return frozenset(_name_of(part.strip()) for part in text.split(",") if part.strip())


def _name_of(text: str) -> str:
    try:
        name = canonicalize_name(text, validate=True) if text.isascii() else ""
    except InvalidName:
        name = ""
    if not _NAME.fullmatch(name):
        raise RuntimeProblem(f"{_shown(text)} is not the name of a package: write it like `onnxruntime-training`.")
    return name


def _unknown(distribution: str, allowed: Collection[str]) -> str | None:
    if is_known(distribution, allowed):
        return None
    listed = choice_sentence("distribution", distribution, EVERY_DISTRIBUTION)
    return (
        f"{listed} Another package has to be allowed by its name: by a farm's admin (ONNXFARM_ALLOWED_PACKAGES) and by "
        "the owner of the machine (--allow-package)."
    )


def _parts(text: str) -> tuple[str | None, str | None]:
    """Distribution and version, either None where the text does not name exactly one."""
    if not text.isascii():
        return None, None
    if text[:1].isdigit():
        return (DEFAULT_DISTRIBUTION, version) if (version := read_version(text)) else (None, None)
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None, None
    if found.url or found.extras or found.marker:
        return None, None
    name = canonicalize_name(found.name)
    pins = [read_version(one.version) for one in found.specifier if one.operator == "=="]
    is_pinned = len(pins) == len(found.specifier) == 1
    return (name if _NAME.fullmatch(name) else None), (pins[0] if is_pinned else None)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"
