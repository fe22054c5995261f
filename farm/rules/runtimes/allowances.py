"""Reads what an admin or a machine's owner allows beyond the known packages.

An allowance is the name of a package. For a plug-in it may also be `NAME+onnxruntime>=1.29,<1.31`: the package is then
installed only beside a release of ONNX Runtime in that range. In a range, prereleases count, and the newest release of
one is the newest that the farm knows by itself.
"""

import re
from collections.abc import Collection

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidName, canonicalize_name

from farm.rules.runtimes import plugins
from farm.rules.runtimes.nearest import shorten_repr
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.provider_table import CPU, PLAIN
from farm.rules.runtimes.releases import ONNXRUNTIME

# what the contract's Runtime takes; `packaging` alone would take capital letters too
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_BESIDE = f"+{PLAIN.package}"
_BUILDS = frozenset(build.package for build in CPU.builds)


class RuntimeProblem(ValueError):
    """A text is no runtime or allowance, or names a runtime that may not be installed. The message is one sentence."""


def read_names(text: str) -> frozenset[str]:
    """Return the allowances in a text, which are separated by commas, in their normal form.

    Raises RuntimeProblem where a part is no package name, or its range holds no release of ONNX Runtime.
    """
    # a range has commas of its own: `>=1.29,<1.31`
    parts = re.split(r",(?!\s*[<>=!~])", text)
    allowances = set()
    for name, plus, beside in (part.strip().partition("+") for part in parts if part.strip()):
        package = _read_name(name.strip())
        allowances.add(f"{package}{_BESIDE}{_parse_range(package, beside)}" if plus else package)
    return frozenset(allowances)


def package_names(allowed: Collection[str]) -> frozenset[str]:
    return frozenset(name.partition("+")[0] for name in allowed)


def allowed_range(distribution: str, allowed: Collection[str], *, version: str = "") -> SpecifierSet | None:
    """Return the releases of ONNX Runtime that may stand beside a third-party plug-in; None where they are not known.

    An allowance with a range decides (of several, the first in the order of text), or else the table's entry of the
    plug-in. That entry does not count for a `version` newer than the releases that it lists.
    """
    for allowance in sorted(allowed):
        name, _, text = allowance.partition(_BESIDE)
        if name == distribution and text:
            return SpecifierSet(text)
    plugin = plugins.third_party_plugin(distribution)
    if plugin is None or (version and release_order(version) > max(map(release_order, plugin.releases))):
        return None
    return SpecifierSet(plugin.beside)


def newest_release_in(releases: SpecifierSet) -> str | None:
    fitting = [version for version in ONNXRUNTIME if releases.contains(version, prereleases=True)]
    return max(fitting, key=release_order, default=None)


def _begins_after_all(releases: SpecifierSet) -> bool:
    """Whether a range begins after every known release, so that it may hold releases that are not known yet."""
    last = release_order(ONNXRUNTIME[-1])
    starts = (clause for clause in releases if clause.operator in (">=", ">", "==", "~="))
    return any(release_order(clause.version.removesuffix(".*")) > last for clause in starts)


def _read_name(text: str) -> str:
    try:
        name = canonicalize_name(text, validate=True) if text.isascii() else ""
    except InvalidName:
        name = ""
    if not NAME.fullmatch(name):
        raise RuntimeProblem(
            f"{shorten_repr(text)} is not the name of a package: write it like `onnxruntime-training`."
        )
    return name


def _parse_range(package: str, text: str) -> SpecifierSet:
    """Parse the range of an allowance. Raises RuntimeProblem."""
    if package in _BUILDS:
        raise RuntimeProblem(f"{package} is a build of ONNX Runtime: no other one can stand beside it.")
    name, releases = re.fullmatch(r"\s*([A-Za-z0-9._-]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        range_ = SpecifierSet(releases) if name == PLAIN.package and releases.strip() and releases.isascii() else None
    except InvalidSpecifier:
        range_ = None
    if range_ is None:
        raise RuntimeProblem(
            f"{shorten_repr(text)} is not a range of ONNX Runtime: write it like `{package}+onnxruntime>=1.29,<1.31`."
        )
    if newest_release_in(range_) is None and not _begins_after_all(range_):
        span = f"{ONNXRUNTIME[0]} to {ONNXRUNTIME[-1]}"
        raise RuntimeProblem(f"No known release of ONNX Runtime lies in {range_}: there are {span} for {package}.")
    return range_
