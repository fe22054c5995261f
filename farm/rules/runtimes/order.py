"""The order of releases. Pure."""

import re

# what stands before the letters of a pre-release: 1.32.0rc1
_RELEASE = re.compile(r"^\d+(?:\.\d+)*")


def is_prerelease(version: str) -> bool:
    """Whether a version is a development, alpha, beta or candidate one."""
    return bool(re.search(r"(a|b|rc|dev)\d*", version.partition("+")[0]))


def release_order(version: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """A key that sorts versions by release; what comes before a release stands before it."""
    found = _RELEASE.match(version)
    release = found.group() if found else ""
    rest = tuple(int(part) for part in re.findall(r"\d+", version[len(release) :]))
    return tuple(int(part) for part in release.split(".") if part), not is_prerelease(version), rest


def goes_back(old: str, new: str) -> bool:
    """Whether the release that is compared is older than what it is compared with: what if we went back?"""
    return release_order(new) < release_order(old)
