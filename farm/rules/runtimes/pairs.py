"""Compares runtimes that consist of two packages, a plug-in and the ONNX Runtime beside it, and finds which changed.

Such a pair is a runtime whose version names both packages: `0.2.0+onnxruntime.1.30.0`. Watches follow the releases of
both. Between two pairs that differ in both packages, they change one package at a time, ONNX Runtime first. The newest
pair has the newest release of each, those of the reference among them.
"""

from collections.abc import Collection, Iterable

from packaging.specifiers import SpecifierSet

from farm.contract.cells import Runtime
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.plugins import join_pair, split_pair
from farm.rules.runtimes.provider_table import PLAIN

CORE = PLAIN.package


def is_pair(version: str) -> bool:
    return bool(split_pair(version)[1])


def changing_packages(distribution: str, version: str) -> tuple[str, ...]:
    return (distribution, CORE) if is_pair(version) else (distribution,)


def select_cores(releases: SpecifierSet | None, cores: Iterable[str]) -> list[str]:
    """Return the releases of ONNX Runtime that lie in the range, in their order, prereleases too; with None, all."""
    return [core for core in cores if releases is None or releases.contains(core, prereleases=True)]


def newest_pair(reference: str, *, owns: Iterable[str], cores: Iterable[str]) -> str:
    own, core = split_pair(reference)
    return join_pair(max([own, *owns], key=release_order), max([core, *cores], key=release_order))


def list_steps(old: str, new: str) -> list[str]:
    """List the versions after `old` up to `new`, in each of which one package changed; without pairs, only `new`."""
    (old_own, old_core), (new_own, new_core) = split_pair(old), split_pair(new)
    if not (old_core and new_core) or old_own == new_own or old_core == new_core:
        return [new]
    return [join_pair(old_own, new_core), new]


def list_pairs_between(good: str, bad: str, *, owns: Collection[str], cores: Collection[str]) -> list[str]:
    """List the pairs from `good` to `bad`, both included, each one release after the one before it.

    ONNX Runtime goes up first, then the package itself. `owns` and `cores` are the releases of the two. Neither package
    may be older in `bad` than in `good`: such a step is left out.
    """
    (own, core), (last_own, last_core) = split_pair(good), split_pair(bad)
    by_core = [join_pair(own, version) for version in _list_releases_between(core, last_core, cores)]
    by_own = [join_pair(version, last_core) for version in _list_releases_between(own, last_own, owns)]
    return [good, *by_core, *by_own]


def _list_releases_between(old: str, new: str, releases: Collection[str]) -> list[str]:
    start, end = release_order(old), release_order(new)
    return sorted({version for version in {*releases, new} if start < release_order(version) <= end}, key=release_order)


def moved_packages(old: Runtime, new: Runtime) -> tuple[str, ...]:
    """Return the packages that differ between two pairs of one distribution, its own first; empty for all others."""
    if old.distribution != new.distribution or not (is_pair(old.version) and is_pair(new.version)):
        return ()
    own, core = (
        before != after for before, after in zip(split_pair(old.version), split_pair(new.version), strict=True)
    )
    return (*([old.distribution] if own else []), *([CORE] if core else []))


def moved_sentence(old: Runtime, new: Runtime) -> str:
    """Say which of the two packages changed, and at which version the other stayed.

    It is empty where none changed, or where the runtimes are not two pairs of one distribution.
    """
    moved, package = moved_packages(old, new), old.distribution
    (own, core), (new_own, new_core) = split_pair(old.version), split_pair(new.version)
    if not moved:
        return ""
    if moved == (CORE,):
        return f"ONNX Runtime moved, from {core} to {new_core}; {package} stayed at {own}."
    if moved == (package,):
        return f"{package} moved, from {own} to {new_own}; ONNX Runtime stayed at {core}."
    return f"Both moved: {package} from {own} to {new_own}, ONNX Runtime from {core} to {new_core}."
