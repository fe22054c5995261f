"""The order of releases, as `packaging` has it. Pure."""

from functools import lru_cache
from typing import Final

from packaging.version import InvalidVersion, Version

# what is no version stands before every release: a watch that has measured none yet, a row of long ago
NO_RELEASE: Final = Version("0.dev0")


@lru_cache(maxsize=1024)
def release_order(version: str) -> Version:
    """A key that sorts versions by release; what comes before a release stands before it."""
    try:
        return Version(version)
    except InvalidVersion:
        return NO_RELEASE


def minor_of(version: str) -> tuple[int, int]:
    """(1, 31) of 1.31.1: what decides which operators and interpreters a release has."""
    release = release_order(version)
    return release.major, release.minor


def is_prerelease(version: str) -> bool:
    """Whether a version is a development, alpha, beta or candidate one."""
    order = release_order(version)
    return order is not NO_RELEASE and order.is_prerelease


def goes_back(old: str, new: str) -> bool:
    """Whether the release that is compared is older than what it is compared with: what if we went back?"""
    return release_order(new) < release_order(old)
