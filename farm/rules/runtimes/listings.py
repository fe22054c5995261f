"""Reads what pip lists of a distribution: the releases on offer, and those that were yanked.

The text comes from `pip index versions NAME -vv`, so that mirrors, proxies and certificates are those of pip's own
configuration. pip leaves yanked releases (PEP 592) out of its list; its lines about skipped links name their files and
the reason.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from farm.rules.runtimes.distributions import parse_version

# the words between the Python interpreter and the distribution, and what is added to pip's environment; with -P, no
# pip of the current folder is run
PIP_WORDS = ("-P", "-m", "pip", "index", "versions", "--no-input", "-vv", "--pre")
PIP_ENVIRONMENT = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1"}
MAX_REASON = 200
_LIST = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_YANKED = re.compile(r"^\s*Skipping link: yanked for reason: (.*): (\S+)(?: \(from .*)?$", re.MULTILINE)
_NO_REASON = "<none given>"


@dataclass(frozen=True, slots=True)
class Listing:
    """What pip lists of a distribution."""

    # versions with a file for the Python and the platform that asked
    offered: tuple[str, ...] = ()
    # yanked versions with the reason, which may be empty
    yanked: dict[str, str] = field(default_factory=dict)


def read_listing(text: str) -> Listing | None:
    """Read what pip printed; None where it lists no release, not even a yanked one.

    A release counts as yanked if files of it are yanked and pip does not offer it; the first file's reason counts, cut
    to MAX_REASON characters. Texts that are no version are left out. Offered releases stay in pip's order.
    """
    match = _LIST.search(text)
    parts = match.group(1).split(",") if match is not None else []
    offered = tuple(version for part in parts if (version := parse_version(part.strip())))
    yanked: dict[str, str] = {}
    for reason, address in _YANKED.findall(text):
        version = _read_version(address)
        if version and version not in offered:
            yanked.setdefault(version, "" if reason == _NO_REASON else " ".join(reason.split())[:MAX_REASON])
    return Listing(offered, yanked) if match is not None or yanked else None


def _read_version(address: str) -> str:
    """Return the version in the name of a wheel or source archive; empty where none can be read."""
    name = unquote(urlsplit(address).path.rpartition("/")[2])
    if name.endswith(".whl"):
        version = name.split("-")[1] if name.count("-") >= 4 else ""
    else:
        version = name.removesuffix(".tar.gz").removesuffix(".zip").rpartition("-")[2]
    return parse_version(version) or ""
