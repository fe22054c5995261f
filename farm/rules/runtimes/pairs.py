"""Two packages that make one runtime: one that needs an ONNX Runtime beside it, and that. Which of them moved? Pure.

A pair is a runtime whose version names both, as `plugins` writes it: `0.2.0+onnxruntime.1.30.0`. Watches follow the
releases of either; between two pairs of which both moved they go one step at a time, ONNX Runtime first.
"""

from collections.abc import Collection, Iterable

from packaging.specifiers import SpecifierSet

from farm.contract.cells import Runtime
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.plugins import beside, parted
from farm.rules.runtimes.provider_table import PLAIN

CORE = PLAIN.package


def is_pair(version: str) -> bool:
    """Whether a runtime's version names the ONNX Runtime beside the package."""
    return bool(parted(version)[1])


def packages(distribution: str, version: str) -> tuple[str, ...]:
    """The distributions whose releases change such a runtime."""
    return (distribution, CORE) if is_pair(version) else (distribution,)


def within(releases: SpecifierSet | None, cores: Iterable[str]) -> list[str]:
    """The releases of ONNX Runtime that a range takes; None takes all."""
    return [core for core in cores if releases is None or releases.contains(core, prereleases=True)]


def newest(reference: str, *, owns: Iterable[str], cores: Iterable[str]) -> str:
    """The newest of both packages, neither older than in the pair `reference`."""
    own, core = parted(reference)
    return beside(max([own, *owns], key=release_order), max([core, *cores], key=release_order))


def steps(old: str, new: str) -> list[str]:
    """The versions from `old`, left out, to `new`, in each of which one package moved; of no pairs `new` alone."""
    (old_own, old_core), (new_own, new_core) = parted(old), parted(new)
    if not (old_core and new_core) or old_own == new_own or old_core == new_core:
        return [new]
    return [beside(old_own, new_core), new]


def between(good: str, bad: str, *, owns: Collection[str], cores: Collection[str]) -> list[str]:
    """The pairs from `good` to `bad` over the releases of whichever moved, ONNX Runtime first, both ends among them."""
    (own, core), (last_own, last_core) = parted(good), parted(bad)
    by_core = [beside(own, version) for version in _from(core, last_core, cores)]
    by_own = [beside(version, last_core) for version in _from(own, last_own, owns)]
    return [good, *by_core, *by_own]


def _from(old: str, new: str, releases: Collection[str]) -> list[str]:
    """The releases after `old` up to `new`, in order."""
    start, end = release_order(old), release_order(new)
    return sorted({version for version in {*releases, new} if start < release_order(version) <= end}, key=release_order)


def moved(old: Runtime, new: Runtime) -> tuple[str, ...]:
    """Which packages differ between two runtimes; empty where they are not such pairs."""
    if old.distribution != new.distribution or not (is_pair(old.version) and is_pair(new.version)):
        return ()
    own, core = (before != after for before, after in zip(parted(old.version), parted(new.version), strict=True))
    return (*([old.distribution] if own else []), *([CORE] if core else []))


def moved_sentence(old: Runtime, new: Runtime) -> str:
    """Which of the two packages moved, and where the other one stayed; empty where the runtimes are not such pairs."""
    which, package = moved(old, new), old.distribution
    (own, core), (last_own, last_core) = parted(old.version), parted(new.version)
    if which == (CORE,):
        return f"ONNX Runtime moved, from {core} to {last_core}; {package} stayed at {own}."
    if which == (package,):
        return f"{package} moved, from {own} to {last_own}; ONNX Runtime stayed at {core}."
    both = f"Both moved: {package} from {own} to {last_own}, ONNX Runtime from {core} to {last_core}."
    return both if which else ""
