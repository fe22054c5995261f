"""Which releases exist: those the farm knows by itself, and those that nodes or the package index added."""

import re
from collections.abc import Iterable

from farm.contract.cells import Runtime
from farm.rules.runtimes import plugins

# PyPI, November 2026. Every other distribution numbers its releases after these; none of them has all.
ONNXRUNTIME = (
    "1.15.0",
    "1.15.1",
    "1.16.0",
    "1.16.1",
    "1.16.2",
    "1.16.3",
    "1.17.0",
    "1.17.1",
    "1.17.3",
    "1.18.0",
    "1.18.1",
    "1.19.0",
    "1.19.2",
    "1.20.0",
    "1.20.1",
    "1.21.0",
    "1.21.1",
    "1.22.0",
    "1.22.1",
    "1.23.0",
    "1.23.1",
    "1.23.2",
    "1.24.1",
    "1.24.2",
    "1.24.3",
    "1.24.4",
    "1.25.0",
    "1.25.1",
    "1.26.0",
    "1.27.0",
    "1.28.0",
    "1.29.0",
    "1.30.0",
    "1.31.0",
    "1.31.1",
)


def newest() -> Runtime:
    """What is measured when a matrix names no runtime."""
    return Runtime(distribution="onnxruntime", version=ONNXRUNTIME[-1])


def unknown_sentence(runtime: Runtime, *, extra: Iterable[str] = ()) -> str | None:
    """One sentence when no such release is known, with the nearest one; None when it is.

    `extra`: further releases as `distribution==version`. Only `onnxruntime`'s list is complete here; a release of
    another distribution is believed when `onnxruntime` has one of the same minor version, and the installer decides.
    Plug-ins number their releases by themselves.
    """
    more = {text.partition("==")[2] for text in extra if text.partition("==")[0] == runtime.distribution}
    plugin = plugins.plugin_of(runtime)
    if plugin is not None:
        if runtime.version in {*plugin.releases, *more}:
            return None
        return f"{runtime} does not exist as far as this farm knows: it has {', '.join(plugin.releases)}."
    if runtime.version in more or runtime.version in ONNXRUNTIME:
        return None
    if runtime.distribution != "onnxruntime" and _minor(runtime.version) in {_minor(v) for v in ONNXRUNTIME}:
        return None
    return f"{runtime} does not exist as far as this farm knows: the nearest is {_nearest(runtime, more)}."


def numbers(version: str) -> tuple[int, ...]:
    """The numeric parts of a version, for ordering."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])


def _minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def _nearest(runtime: Runtime, more: set[str]) -> str:
    """The closest release; of two as close, the newer one."""
    wanted = _place(runtime.version)
    ordered = sorted({*ONNXRUNTIME, *more}, key=numbers, reverse=True)
    return min(ordered, key=lambda version: abs(_place(version) - wanted))


def _place(version: str) -> int:
    """A version on a line where every part outweighs all smaller ones."""
    major, minor, patch = (*numbers(version), 0, 0, 0)[:3]
    return (major * 10_000 + minor) * 10_000 + patch
