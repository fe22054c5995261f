"""The npm registry: what it says of a release, and the package of it, checked against its digest.

The registry is the operator's choice (ONNXFARM_NPM_REGISTRY); the package may come from no other host than that one,
so no redirect is followed.
"""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx2

from farm.base.downloads import read_until_timeout
from farm.contract.reasons import Reason, ReasonCode, ReasonedError

# of an answer, and of a whole package
ANSWER_S, FETCH_S = 60.0, 1800.0
MAX_ANSWER_BYTES = 4 * 1024**2
# the list of a package's versions without their descriptions
SHORT = "application/vnd.npm.install-v1+json"
# of a packed release; those of November 2026 have some 33 MB
MAX_PACKED_BYTES = 256 * 1024**2
# npm's own, whose name packages carry in every mirror's answers
PUBLIC = "registry.npmjs.org"
# the strongest first
ALGORITHMS = ("sha512", "sha384", "sha256")


class NpmError(ReasonedError):
    """The release cannot be had. The text is one sentence that names the registry."""

    def __init__(self, text: str, *, code: ReasonCode = ReasonCode.RUNTIME_INSTALL_FAILED) -> None:
        super().__init__(Reason(code=code, text=text[:2000]))


@dataclass(frozen=True, slots=True)
class Release:
    """Where a package lies, and its digest as Subresource Integrity writes it: `sha512-…`."""

    name: str
    version: str
    address: str
    integrity: str


def find_release(name: str, version: str, *, registry: str, client: httpx2.Client | None = None) -> Release:
    """What the registry says of a release. Raises NpmError: no such release, no digest, another host, no answer."""
    with client or _client() as asked:
        answer = _fetch_json(asked, f"{registry.rstrip('/')}/{name}/{version}", what=f"{name} {version}")
    dist = answer.get("dist")
    address, integrity = (dist.get(key) if isinstance(dist, dict) else None for key in ("tarball", "integrity"))
    if answer.get("version") != version or not isinstance(address, str):
        raise NpmError(f"{_host(registry)} answered something else than {name} {version}; check ONNXFARM_NPM_REGISTRY.")
    if not isinstance(integrity, str) or _strongest(integrity) is None:
        raise NpmError(f"{_host(registry)} gives no digest of {name} {version}, so it is not fetched.")
    return Release(name, version, _at_registry(address, registry=registry), integrity)


def list_versions(name: str, *, registry: str, client: httpx2.Client | None = None) -> dict[str, str]:
    """Every version that the registry offers, with why it should not be taken any more; empty where it may be.

    Raises NpmError.
    """
    with client or _client() as asked:
        answer = _fetch_json(asked, f"{registry.rstrip('/')}/{name}", what=name, accept=SHORT)
    offered = answer.get("versions")
    if not isinstance(offered, dict):
        raise NpmError(f"{_host(registry)} lists no releases of {name}; check ONNXFARM_NPM_REGISTRY.")
    return {version: _deprecated(entry) for version, entry in offered.items()}


def _deprecated(release: object) -> str:
    """npm's word for a version that nobody should take: a sentence, or true without one."""
    why = release.get("deprecated") if isinstance(release, dict) else None
    return "" if not why else " ".join(str(why).split())[:200] if isinstance(why, str) else "deprecated"


def download_release(release: Release, target: Path, *, client: httpx2.Client | None = None) -> None:
    """Writes the package to `target`. Raises NpmError: not what its digest says, too large, or not there."""
    algorithm, wanted = _strongest(release.integrity) or ("sha512", b"")
    seen, size = hashlib.new(algorithm), 0
    what = f"{release.name} {release.version}"
    try:
        with client or _client() as asked, asked.stream("GET", release.address) as response, target.open("wb") as file:
            if response.status_code != 200:
                raise NpmError(f"{_host(release.address)} answered {response.status_code} for the package of {what}.")
            for piece in read_until_timeout(response, response.iter_bytes(), within_s=FETCH_S):
                size += len(piece)
                if size > MAX_PACKED_BYTES:
                    raise NpmError(f"The package of {what} has more than {MAX_PACKED_BYTES:,} bytes; it is not kept.")
                seen.update(piece)
                file.write(piece)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _away(release.address, problem) from problem
    if not hmac.compare_digest(seen.digest(), wanted):
        raise NpmError(
            f"The package of {what} from {_host(release.address)} is not the one that its digest names "
            f"({algorithm}); it is not used. Look at the registry, or at what stands between."
        )


def _client() -> httpx2.Client:
    return httpx2.Client(timeout=httpx2.Timeout(ANSWER_S, connect=10.0))


def _fetch_json(
    client: httpx2.Client, address: str, *, what: str, accept: str = "application/json"
) -> dict[str, object]:
    """The registry's answer as an object. Raises NpmError."""
    try:
        with client.stream("GET", address, headers={"Accept": accept}) as response:
            if response.status_code == 404:
                text = f"{what} does not exist on {_host(address)}: name a release that npm has."
                raise NpmError(text, code=ReasonCode.UNKNOWN_RUNTIME)
            if response.status_code != 200:
                raise NpmError(f"{_host(address)} answered {response.status_code} when it was asked for {what}.")
            body = b""
            for piece in read_until_timeout(response, response.iter_bytes(), within_s=ANSWER_S):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise NpmError(f"{_host(address)} says more of {what} than any release needs.")
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _away(address, problem) from problem
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NpmError(f"{_host(address)} answered no JSON for {what}; check ONNXFARM_NPM_REGISTRY.")
    return answer


def _away(address: str, problem: Exception) -> NpmError:
    name = type(problem).__name__
    return NpmError(f"The npm registry {_host(address)} does not answer ({name}); set ONNXFARM_NPM_REGISTRY, or wait.")


def _strongest(integrity: str) -> tuple[str, bytes] | None:
    """The strongest digest that a text of Subresource Integrity holds: its algorithm and its bytes."""
    held = dict(part.partition("-")[::2] for part in integrity.split())
    for algorithm in ALGORITHMS:
        try:
            digest = base64.b64decode(held.get(algorithm, "").partition("?")[0], validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(digest) == hashlib.new(algorithm).digest_size:
            return algorithm, digest
    return None


def _at_registry(address: str, *, registry: str) -> str:
    """The package's address at the registry that is set. Raises NpmError where it lies elsewhere.

    A mirror may repeat npm's own address; like npm itself we then ask the mirror.
    """
    wanted, own = urlsplit(address), urlsplit(registry)
    if wanted.hostname == PUBLIC and own.hostname != PUBLIC:
        path = own.path.rstrip("/") + wanted.path
        return urlunsplit((own.scheme, own.netloc, path, wanted.query, ""))
    if wanted.hostname != own.hostname or wanted.scheme not in ("http", "https"):
        raise NpmError(f"{_host(registry)} sends on to {wanted.hostname or address[:80]!r}, which is not asked.")
    return address


def _host(address: str) -> str:
    return urlsplit(address).hostname or "the registry"
