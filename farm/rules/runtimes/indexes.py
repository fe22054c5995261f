"""Package indexes in addition to the usual one, such as a nightly feed: their names, addresses and lists of files.

A build from such an index is a runtime of its own, whose version names the index as PEP 440's local part,
`1.33.0.dev1+at.nightly`. An index is not trusted: a file counts only if it has the name of a wheel of the package that
was asked for, a sha256, and an address that may be fetched.
"""

import json
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pydantic import ValidationError

from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime

# indexes answer with JSON (PEP 691) or HTML (PEP 503)
ACCEPT: Final = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
MAX_LIST_BYTES, MAX_WHEEL_BYTES = 8 * 1024**2, 2 * 1024**3
MAX_FILES = 64
NAME = r"[a-z][a-z0-9]{0,9}"
_AT = re.compile(rf"([^+]+(?:\+[^+]+)?)[+.]at\.({NAME})")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")


class IndexProblem(ValueError):
    """An index or its answer cannot be used. The message is one sentence that does not repeat the address."""


def split_index(version: str) -> tuple[str, str]:
    """Split a runtime's version into the version on its index and the index's name, which is empty for the usual
    index."""
    match = _AT.fullmatch(version)
    return (match[1], match[2]) if match is not None else (version, "")


def describe_version(version: str) -> str:
    own, index = split_index(version)
    return f"{own} from {index}" if index else version


def read_name(text: str) -> str:
    """Return the name of an index as it stands. Raises IndexProblem where the text is no such name."""
    if not re.fullmatch(NAME, text):
        raise IndexProblem("An index's name has 1 to 10 small letters and digits, a letter first, such as nightly.")
    return text


def read_address(text: str) -> str:
    """Return the address of an index's simple pages, with a slash at its end.

    Raises IndexProblem, whose message never repeats the address, where it is malformed, holds a password or may not be
    fetched.
    """
    text = text.strip()
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise IndexProblem(
            "The address holds a name or a password, which would be shown to others: leave it out, and let a proxy of "
            "yours add it."
        )
    if not may_be_fetched(text, beside=text) or set("?#") & set(text) or len(text) > 300:
        raise IndexProblem(
            "The address is not that of an index: write https://HOST/PATH/ of its simple pages, without `?` and `#`."
        )
    return text.rstrip("/") + "/"


def read_addresses(text: str) -> dict[str, str]:
    """Return addresses by name, from `NAME=ADDRESS` parts separated by commas or spaces.

    Raises IndexProblem where a part is malformed or a name comes twice.
    """
    addresses: dict[str, str] = {}
    for part in re.split(r"[,\s]+", text.strip()) if text.strip() else ():
        name, sign, address = part.partition("=")
        if not sign or name in addresses:
            raise IndexProblem("Indexes are written NAME=ADDRESS, each once, with commas between them.")
        addresses[read_name(name)] = read_address(address)
    return addresses


def page_address(index: str, distribution: str) -> str:
    return f"{index}{distribution}/"


def read_page(
    body: bytes, media_type: str, *, address: str, distribution: str, index: str
) -> dict[str, tuple[WheelFile, ...]]:
    """Return the wheels of a distribution that an index page lists, by the runtime's version.

    A page is JSON where `media_type` has that word, and else HTML. Left out are files that are yanked, malformed,
    without a sha256, of another package or at an address that may not be fetched, versions that no runtime may have,
    and files beyond MAX_FILES of a version. Versions and files stand in the page's order. Raises IndexProblem where a
    JSON page cannot be read or has no list of files.
    """
    entries = _read_json(body) if "json" in media_type else _read_html(body)
    by_version: dict[str, list[WheelFile]] = {}
    for entry in entries:
        if (wheel := _read_wheel(entry, address=address, distribution=distribution)) is None:
            continue
        version = _make_runtime_version(str(parse_wheel_filename(wheel.name)[1]), index)
        if version and len(by_version.setdefault(version, [])) < MAX_FILES:
            by_version[version].append(wheel)
    return {version: tuple(wheels) for version, wheels in by_version.items()}


def may_be_fetched(address: str, *, beside: str) -> bool:
    """Whether a file may be fetched from an address that was named at the address `beside`.

    HTTPS addresses may; HTTP ones only on this machine, where the index is on it over HTTP too. Never with a user or
    password, the port 0, a space or characters beyond ASCII.
    """
    try:
        asked, named = urlsplit(address), urlsplit(beside)
        hosts = (asked.hostname, named.hostname)
        is_plain = asked.username is None and asked.password is None and asked.port != 0
    except ValueError:
        return False
    if not is_plain or not asked.hostname or not address.isascii() or not address.isprintable() or " " in address:
        return False
    is_here = asked.scheme == named.scheme == "http" and all(host in _THIS_MACHINE for host in hosts)
    return asked.scheme == "https" or is_here


def _make_runtime_version(version: str, index: str) -> str:
    """Return the version of the runtime; empty where it is invalid or too long."""
    text = f"{version}{'.' if '+' in version else '+'}at.{index}"
    try:
        return Runtime(distribution="onnxruntime", version=text).version
    except ValidationError:
        return ""


def _read_wheel(entry: Mapping[str, Any], *, address: str, distribution: str) -> WheelFile | None:
    try:
        # names with `..` do not parse; the package is compared below
        project = parse_wheel_filename(entry["name"])[0]
        wheel = WheelFile(name=entry["name"], url=urljoin(address, entry["url"]), sha256=entry["sha256"])
    except (InvalidWheelFilename, ValidationError, ValueError, TypeError, AttributeError):
        return None
    fits = project == distribution and may_be_fetched(wheel.url, beside=address)
    return wheel if fits and not entry["yanked"] else None


def _read_json(body: bytes) -> Iterator[dict[str, Any]]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    files = parsed.get("files") if isinstance(parsed, dict) else None
    if not isinstance(files, list):
        raise IndexProblem("The index answered something else than a list of files.")
    for file in files:
        if isinstance(file, dict):
            hashes = file.get("hashes")
            sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
            yield {"name": file.get("filename"), "url": file.get("url"), "sha256": sha256, "yanked": file.get("yanked")}


def _read_html(body: bytes) -> Iterator[dict[str, Any]]:
    links = _Links()
    links.feed(body.decode("utf-8", "replace"))
    for attributes in links.found:
        url, _, digest = (attributes.get("href") or "").partition("#")
        name, sha256 = unquote(url.partition("?")[0].rpartition("/")[2]), digest.removeprefix("sha256=")
        yield {"name": name, "url": url, "sha256": sha256, "yanked": "data-yanked" in attributes}


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))
