"""Packages of a runtime's environment as a node reports them: only names and versions that follow Python's rules.

Other pairs are dropped rather than refused, because a machine may have an odd package installed, and its measurements
are still valid. Pairs beyond MAX_PACKAGES are dropped too.
"""

import re
from typing import Annotated

from packaging.version import InvalidVersion, Version
from pydantic import BeforeValidator

MAX_PACKAGES = 512
# https://packaging.python.org/en/latest/specifications/name-normalization/
_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_VERSION = re.compile(r"^[A-Za-z0-9.!+_-]{1,64}\Z")


def is_pinned(name: str, version: str) -> bool:
    """Say whether pip would read `name==version` as one package, and not as an option, an address or a range."""
    return bool(_NAME.match(name)) and is_version(version)


def is_version(text: str) -> bool:
    """Say whether the text is one version by PEP 440, such as `1.29.0`, and no range."""
    if not _VERSION.match(text):
        return False
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _keep_packages(value: object) -> object:
    """Keep the pairs that are packages, MAX_PACKAGES at most. Pydantic refuses a value that is no mapping."""
    if not isinstance(value, dict):
        return value
    pairs = [pair for pair in value.items() if all(isinstance(part, str) for part in pair) and is_pinned(*pair)]
    return dict(pairs[:MAX_PACKAGES])


Packages = Annotated[dict[str, str], BeforeValidator(_keep_packages)]
