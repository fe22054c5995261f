"""The releases that the farm knows by itself, and the order of versions, which is that of `packaging`."""

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from farm.rules.runtimes import indexes

# a text that is no version sorts before every release: a watch that has measured none yet has one, and old rows
NO_RELEASE: Final = Version("0.dev0")
# a dated build on npm with its commit, as npm writes it: `1.26.0-dev.20260416-b7804b056c`
NPM_BUILD: Final = re.compile(r"([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})-dev\.([0-9]{8})-([0-9a-f]{6,10})")


@cache
def known_releases(package: str) -> tuple[str, ...]:
    """Return the known releases of a package, by its name on the index, the oldest first. Raises KeyError for a package
    whose releases are not listed here."""
    return tuple(json.loads(Path(__file__).with_name("releases.json").read_text(encoding="utf-8"))[package])


@lru_cache(maxsize=1024)
def release_order(version: str) -> Version:
    """Return a key that sorts versions. A prerelease comes before its release, and a text that is no version first."""
    build = NPM_BUILD.fullmatch(version)
    try:
        return Version(version if build is None else f"{build[1]}.dev{build[2]}+{build[3]}")
    except InvalidVersion:
        return NO_RELEASE


def minor_of(version: str) -> tuple[int, int]:
    """Return (1, 31) for 1.31.1: the part that decides which operators and interpreters a release supports.

    Return (0, 0) for a text that is no version.
    """
    release = release_order(version)
    return release.major, release.minor


def is_prerelease(version: str) -> bool:
    """Whether a version is a development, alpha, beta or candidate release, or any from an index that an admin
    added."""
    order = release_order(version)
    return order is not NO_RELEASE and (order.is_prerelease or bool(indexes.split_index(version)[1]))


def is_downgrade(old: str, new: str) -> bool:
    return release_order(new) < release_order(old)
