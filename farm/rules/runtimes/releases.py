"""Finds which releases exist: those the farm knows by itself, and those that nodes or the package index added.

The nearest release is the one whose number is closest, prereleases among them; of two as close, it is the newer one.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from farm.contract.base import Message
from farm.contract.cells import Runtime, SpelledRuntime
from farm.rules.runtimes import engines, frameworks, genai, indexes, plugins, web
from farm.rules.runtimes.order import NPM_BUILD, is_prerelease, known_releases, minor_of, release_order

NONE_YANKED: Mapping[Runtime, str] = MappingProxyType({})
# PyPI, November 2026. Every other distribution numbers its releases after these; none of them has all.
ONNXRUNTIME = known_releases("onnxruntime")


NEWEST = Runtime(distribution="onnxruntime", version=ONNXRUNTIME[-1])


class Known(Message):
    """What the package index says beyond the lists here."""

    # releases that it offers, or did
    releases: tuple[SpelledRuntime, ...] = ()
    # releases that it took back, with the reason
    yanked: dict[SpelledRuntime, str] = {}
    # what is measured where a matrix names no runtime, and where it also says `pre`
    newest: SpelledRuntime = NEWEST
    newest_pre: SpelledRuntime | None = None
    # why it could not be asked, in one sentence; empty where it was
    silence: str = ""


NOTHING_MORE = Known()


def unknown_sentence(
    runtime: Runtime, *, extra: Iterable[Runtime] = (), yanked: Mapping[Runtime, str] = NONE_YANKED
) -> str | None:
    """Say that no such release is known, or that it was yanked, with the nearest one; None where it may be available.

    `extra` are further known releases, and `yanked` those that the index took back, with the reason. Only the list of
    `onnxruntime` is complete here. A release of another build is taken to exist if `onnxruntime` has one of the same
    minor version, and any release of a third-party engine; the installer decides. One for browsers or of a framework is
    also taken to exist if it is newer than all known ones. One from an added index, or of a known plug-in, has to be
    listed here or in `extra`. Of a pair, both packages are looked at, but of a third-party plug-in only whether it was
    yanked.
    """
    extra = tuple(extra)
    plugin = plugins.plugin_of(runtime)
    if plugin is not None and plugins.split_pair(runtime.version)[1]:
        # only the installer knows which releases a third-party package has
        own, core = plugins.packages_of(runtime)
        packages = [core] if plugin.beside and own not in yanked else [own, core]
        sentences = (unknown_sentence(package, extra=extra, yanked=yanked) for package in packages)
        return next(filter(None, sentences), None)
    more = _list_versions(runtime, extra)
    if frameworks.installed_as(runtime) in yanked:
        return yanked_sentence(runtime, yanked, more)
    elsewhere = _AT_INDEX if indexes.split_index(runtime.version)[1] else _ELSEWHERE.get(runtime.distribution)
    if elsewhere is not None:
        return elsewhere.unknown_sentence(runtime, more)
    if plugin is not None:
        if runtime.version in {*plugin.releases, *more}:
            return None
        return genai.too_old_sentence(runtime) or (
            f"{runtime} does not exist: this farm knows {', '.join(plugin.releases)}."
        )
    if runtime.version in more or runtime.version in ONNXRUNTIME:
        return None
    # only the installer knows which releases a third-party engine has
    is_known = bool(engines.engine_of(runtime).runner) or minor_of(runtime.version) in {
        minor_of(v) for v in ONNXRUNTIME
    }
    if runtime.distribution != "onnxruntime" and is_known:
        return None
    nearest = _find_nearest(runtime, {*ONNXRUNTIME, *more})
    return f"{runtime} does not exist: the nearest known release is {nearest}."


def _explain_unknown_on_npm(runtime: Runtime, more: set[str]) -> str | None:
    """Say that npm has no such release; releases newer than all known ones and dated builds are taken to exist."""
    there = {*web.RELEASES, *more}
    newest_known = max(there, key=release_order)
    is_newer = web.is_release(runtime.version) and release_order(runtime.version) > release_order(newest_known)
    if runtime.version in there or is_newer:
        return None
    if NPM_BUILD.fullmatch(runtime.version) and web.too_old_sentence(runtime.version) is None:
        return None
    if web.is_release(runtime.version) and (sentence := web.too_old_sentence(runtime.version)) is not None:
        return sentence
    return f"{runtime} does not exist as far as this farm knows: the nearest is {_find_nearest(runtime, there)}."


class _Elsewhere(NamedTuple):
    """The releases that the farm knows of a distribution, and what it says of one that it does not know."""

    releases: tuple[str, ...]
    unknown_sentence: Callable[[Runtime, set[str]], str | None]


def _explain_unknown_at_index(runtime: Runtime, more: set[str]) -> str | None:
    own, index = indexes.split_index(runtime.version)
    if runtime.version in more:
        return None
    return f"{runtime.distribution} {own} is not on the index {index}, as far as is known here."


# distributions that are not builds of ONNX Runtime on the package index
_ELSEWHERE: Mapping[str, _Elsewhere] = {
    web.DISTRIBUTION: _Elsewhere(web.RELEASES, _explain_unknown_on_npm),
    frameworks.DISTRIBUTION: _Elsewhere(frameworks.RELEASES, frameworks.unknown_sentence),
}
_AT_INDEX = _Elsewhere((), _explain_unknown_at_index)


def yanked_sentence(runtime: Runtime, yanked: Mapping[Runtime, str], more: Iterable[str] = ()) -> str:
    """Say why a yanked release is not taken, with the nearest one of its distribution that is on offer.

    `yanked` are reasons by runtime, this release among them (a framework's without its local part; KeyError otherwise);
    `more` are versions beyond those known here.
    """
    there, reason = _list_offered(runtime, yanked, more), yanked[frameworks.installed_as(runtime)]
    cause = f" ({reason.rstrip('.')})" if reason else ""
    advice = f"the nearest that was not is {_find_nearest(runtime, there)}" if there else "name another one"
    return f"{runtime} was yanked from the package index{cause}: {advice}."


def _list_offered(runtime: Runtime, yanked: Iterable[Runtime], more: Iterable[str]) -> set[str]:
    """Return the known versions of its distribution, and `more`, without those that the index took back."""
    plugin, elsewhere = plugins.plugin_of(runtime), _ELSEWHERE.get(runtime.distribution)
    listed = ONNXRUNTIME if elsewhere is None else elsewhere.releases
    return {*(listed if plugin is None else plugin.releases), *more} - _list_versions(runtime, yanked)


def _list_versions(runtime: Runtime, releases: Iterable[Runtime]) -> set[str]:
    return {release.version for release in releases if release.distribution == runtime.distribution}


def newest_release(
    runtime: Runtime, *, extra: Iterable[Runtime] = (), yanked: Iterable[Runtime] = ()
) -> Runtime | None:
    """Return the newest known finished release of the same distribution that was not yanked; None where there is none.

    Every build of ONNX Runtime, and every package that is not known, counts as having all releases of `onnxruntime`.
    `extra` are further known releases. The result names no ONNX Runtime beside a plug-in.
    """
    there = _list_offered(runtime, yanked, _list_versions(runtime, extra))
    finished = [version for version in there if not is_prerelease(version)]
    newest = max(finished, key=release_order, default=None)
    return None if newest is None else runtime.model_copy(update={"version": newest})


def nearest_release(
    runtime: Runtime, *, extra: Iterable[Runtime] = (), yanked: Iterable[Runtime] = ()
) -> Runtime | None:
    there = _list_offered(runtime, yanked, _list_versions(runtime, extra))
    return runtime.model_copy(update={"version": _find_nearest(runtime, there)}) if there else None


def _find_nearest(runtime: Runtime, there: set[str]) -> str:
    """Return the closest of the given releases; of two as close, the newer one."""
    number = _number_version(runtime.version)
    newest_first = sorted(there, key=release_order, reverse=True)
    return min(newest_first, key=lambda version: abs(_number_version(version) - number))


def _number_version(version: str) -> int:
    release = release_order(version)
    return (release.major * 10_000 + release.minor) * 10_000 + release.micro
