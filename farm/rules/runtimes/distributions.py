"""Reads runtimes, and says which packages a node may install as one.

Names and versions are read as `packaging` reads them, never by hand: what an installer would understand differently
(an address, extras, a marker, a range, a second line) is no runtime here. A package that is not listed is installed
only where it is allowed by its name, by the farm's admin and by the node's owner, each for themselves; `build_of` gives
it a Build of its name alone.
"""

import re
from collections.abc import Collection

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from farm.contract.cells import Runtime
from farm.rules.runtimes import frameworks, plugins, web
from farm.rules.runtimes.allowances import NAME, allowed_range, newest_release_in, package_names
from farm.rules.runtimes.allowances import RuntimeProblem as RuntimeProblem
from farm.rules.runtimes.allowances import read_names as read_names
from farm.rules.runtimes.nearest import choice_sentence, shorten_repr
from farm.rules.runtimes.order import NPM_BUILD
from farm.rules.runtimes.provider import Build
from farm.rules.runtimes.provider_table import CPU, PLAIN

DEFAULT_DISTRIBUTION = PLAIN.package
# all known packages that nodes install: each runs models on the CPU too
EVERY_DISTRIBUTION = CPU.packages
_LISTED = (*EVERY_DISTRIBUTION, web.DISTRIBUTION, frameworks.DISTRIBUTION)
# the distributions that watches follow, that of browsers among them
WATCHED = (*EVERY_DISTRIBUTION, web.DISTRIBUTION)
_BUILDS = {build.package: build for build in CPU.builds}
# packages of which every release is a whole build of ONNX Runtime, and none a plug-in
BUILDS_ALONE = frozenset(_BUILDS) - {plugin.package for plugin in CPU.plugins}
# what the contract's Runtime takes; `packaging` alone would take an epoch and a leading v too
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,31}")
_BY_WHOM = "by a farm's admin (ONNXFARM_ALLOWED_PACKAGES) and by the owner of the machine (--allow-package)"
# `0.2.0+onnxruntime==1.30.0`: a plug-in's version, and the ONNX Runtime with which it is measured
_BESIDE = re.compile(rf"(.*?)\s*\+\s*{PLAIN.package}\s*==\s*(.*)", re.DOTALL)


def parse_runtime(text: str, *, allowed: Collection[str] = ()) -> Runtime:
    """Parse the text of a runtime, `distribution==version`; a bare version is one of `onnxruntime`.

    A plug-in may name the ONNX Runtime beside it, `NAME==0.2.0+onnxruntime==1.30.0`; a third-party plug-in without it
    gets the newest of its range. `allowed` are packages beyond the list, as `read_names` returns them. Raises
    RuntimeProblem where the text is no runtime or it may not be installed.
    """
    pair = _BESIDE.fullmatch(text.strip())
    distribution, version = _split_requirement(pair[1] if pair is not None else text.strip())
    if distribution is not None and (sentence := _explain_unknown(distribution, allowed)) is not None:
        raise RuntimeProblem(sentence)
    core = parse_version(pair[2]) if pair is not None else ""
    # an ONNX Runtime is named only once
    if distribution is None or version is None or core is None or (core and ("+" in core or "+" in version)):
        raise RuntimeProblem(unclear_sentence(text))
    version, local = plugins.split_pair(version)
    if (sentence := frameworks.local_problem(Runtime(distribution=distribution, version=version))) is not None:
        raise RuntimeProblem(sentence)
    return _add_core(Runtime(distribution=distribution, version=version), core or local, allowed=allowed)


def _add_core(runtime: Runtime, core: str, *, allowed: Collection[str]) -> Runtime:
    """Add the ONNX Runtime beside a plug-in to its version, where the plug-in does not pin one. Raises
    RuntimeProblem."""
    plugin = plugins.plugin_of(runtime) if runtime.distribution in EVERY_DISTRIBUTION else None
    if plugin is not None and core in ("", plugin.core):
        return runtime
    if plugin is None:
        range_ = allowed_range(runtime.distribution, allowed)
        core = core or (newest_release_in(range_) if range_ is not None else None) or ""
        if range_ is not None and not core:
            raise RuntimeProblem(
                f"No release of ONNX Runtime in {range_} is known here: name the one beside it, "
                f"`{runtime}+onnxruntime==…`."
            )
    if not core:
        return runtime
    version = plugins.join_pair(runtime.version, core)
    if not _VERSION.fullmatch(version):
        raise RuntimeProblem(f"{runtime}+onnxruntime=={core} is longer than a runtime's version may be.")
    runtime = Runtime(distribution=runtime.distribution, version=version)
    if (sentence := _explain_unfit(runtime, allowed)) is not None:
        raise RuntimeProblem(sentence)
    return runtime


def _explain_unfit(runtime: Runtime, allowed: Collection[str]) -> str | None:
    """Say why this ONNX Runtime may not stand beside this package; None where it may, or none is named."""
    version, core = plugins.split_pair(runtime.version)
    if not core:
        return None
    package = f"{runtime.distribution}=={version}"
    if plugins.plugin_of(runtime) is None or runtime.distribution in BUILDS_ALONE:
        return f"{package} is a build of ONNX Runtime: onnxruntime=={core} cannot stand beside it, leave it out."
    range_ = allowed_range(runtime.distribution, allowed, version=version)
    if range_ is None or range_.contains(core, prereleases=True):
        return None
    newest = newest_release_in(range_)
    alternative = f"write `{package}+onnxruntime=={newest}`, or " if newest else ""
    return (
        f"{package} takes ONNX Runtime {range_} here, and {core} is not in it: {alternative}have another range allowed."
    )


def unclear_sentence(value: object) -> str:
    text = shorten_repr(value)
    return f"The runtime {text} is not one version: write it like `1.31.1` or `onnxruntime-openvino==1.24.1`."


def refusal(runtime: Runtime, *, allowed: Collection[str] = ()) -> str | None:
    """Say why a runtime of a stored cell or an order may not be installed; None where it may.

    A runtime is refused if nobody allowed its package, its version is not valid, or the ONNX Runtime beside it may not
    stand there.
    """
    if (sentence := _explain_unknown(runtime.distribution, allowed)) is not None:
        return sentence
    if normalise_version(runtime.distribution, runtime.version) is None:
        return f"{runtime.version!r} of {runtime.distribution} is not a version of a package: write it like `1.31.1`."
    return frameworks.local_problem(runtime) or _explain_unfit(runtime, allowed)


def is_known(distribution: str, allowed: Collection[str] = ()) -> bool:
    """Whether a package is in the farm's list or allowed by name; third-party plug-ins are not in the list."""
    return distribution in _LISTED or distribution in package_names(allowed)


def build_of(distribution: str) -> Build:
    return _BUILDS.get(distribution) or Build(distribution)


def parse_version(text: str) -> str | None:
    """Return a version in its normal form, a local part kept; None for an epoch, a leading `v` or a long text."""
    try:
        version = str(Version(text)) if _VERSION.fullmatch(text) else ""
    except InvalidVersion:
        return None
    return version if _VERSION.fullmatch(version) else None


def normalise_version(distribution: str, text: str) -> str | None:
    """Return a version of this distribution in its normal form, or None; dated builds of npm stay as they are."""
    if distribution == web.DISTRIBUTION and NPM_BUILD.fullmatch(text):
        return text
    return parse_version(text)


def _explain_unknown(distribution: str, allowed: Collection[str]) -> str | None:
    if is_known(distribution, allowed):
        return None
    if plugins.third_party_plugin(distribution) is not None:
        return not_allowed_sentence(distribution)
    listed = choice_sentence("distribution", distribution, _LISTED)
    return f"{listed} Another package has to be allowed by its name: {_BY_WHOM}."


def not_allowed_sentence(distribution: str) -> str:
    return f"{distribution} is other people's code, which has to be allowed by its name: {_BY_WHOM}."


def _split_requirement(text: str) -> tuple[str | None, str | None]:
    """Return distribution and version; either is None where the text does not name exactly one."""
    if not text.isascii():
        return None, None
    if text[:1].isdigit():
        return (DEFAULT_DISTRIBUTION, version) if (version := parse_version(text)) else (None, None)
    name, _, build = (part.strip() for part in text.partition("=="))
    if NPM_BUILD.fullmatch(build):
        return name, normalise_version(name, build)
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None, None
    if requirement.url or requirement.extras or requirement.marker:
        return None, None
    name = canonicalize_name(requirement.name)
    pins = [parse_version(clause.version) for clause in requirement.specifier if clause.operator == "=="]
    is_pinned = len(pins) == len(requirement.specifier) == 1
    return (name if NAME.fullmatch(name) else None), (pins[0] if is_pinned else None)
