"""Lists releases on the npm registry and downloads their packages, checked against their digests.

The operator chooses the registry (ONNXFARM_NPM_REGISTRY). Packages may come from no other host, so no redirect is
followed.
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

# how long an answer of the registry, and a whole package, may take
ANSWER_S = 60.0
FETCH_S = 1800.0
MAX_ANSWER_BYTES = 4 * 1024**2
# the list of a package's versions without their descriptions
SHORT = "application/vnd.npm.install-v1+json"
# limit of a packed release; those of November 2026 have some 33 MB
MAX_PACKED_BYTES = 256 * 1024**2
# npm's own registry, which mirrors name in their answers too
PUBLIC = "registry.npmjs.org"
# the strongest first
ALGORITHMS = ("sha512", "sha384", "sha256")


class NpmError(ReasonedError):
    """The reason, in one sentence that names the registry, why a release cannot be listed or downloaded."""

    def __init__(self, text: str, *, code: ReasonCode = ReasonCode.RUNTIME_INSTALL_FAILED) -> None:
        super().__init__(Reason(code=code, text=text[:2000]))


@dataclass(frozen=True, slots=True)
class Release:
    """A release with the address and the digest of its package; the digest is written as `sha512-<base64>`."""

    name: str
    version: str
    address: str
    integrity: str


def find_release(name: str, version: str, *, registry: str, client: httpx2.Client | None = None) -> Release:
    """Ask the registry for a release of a package. `client` is closed at the end, as in the other functions.

    Raises NpmError where there is no such release or no answer, and where its package has no digest or lies on another
    host.
    """
    with client or _make_client() as session:
        answer = _fetch_json(session, f"{registry.rstrip('/')}/{name}/{version}", label=f"{name} {version}")
    dist = answer.get("dist")
    address, integrity = (dist.get(key) if isinstance(dist, dict) else None for key in ("tarball", "integrity"))
    if answer.get("version") != version or not isinstance(address, str):
        raise NpmError(f"{_host(registry)} answered something else than {name} {version}; check ONNXFARM_NPM_REGISTRY.")
    if not isinstance(integrity, str) or _parse_strongest_digest(integrity) is None:
        raise NpmError(f"{_host(registry)} gives no digest of {name} {version}, so it is not fetched.")
    return Release(name, version, _check_address(address, registry=registry), integrity)


def list_versions(name: str, *, registry: str, client: httpx2.Client | None = None) -> dict[str, str]:
    """Map the versions that the registry offers to the reason why they are deprecated, empty where they are not.

    Pre-releases are included. Raises NpmError where the registry does not answer or has no list of versions.
    """
    with client or _make_client() as session:
        answer = _fetch_json(session, f"{registry.rstrip('/')}/{name}", label=name, accept=SHORT)
    releases = answer.get("versions")
    if not isinstance(releases, dict):
        raise NpmError(f"{_host(registry)} lists no releases of {name}; check ONNXFARM_NPM_REGISTRY.")
    return {version: _explain_deprecation(entry) for version, entry in releases.items()}


def _explain_deprecation(release: object) -> str:
    """Return why a version is deprecated, "deprecated" where npm gives no reason; empty where it is not deprecated."""
    deprecated = release.get("deprecated") if isinstance(release, dict) else None
    if isinstance(deprecated, str):
        return " ".join(deprecated.split())[:200]
    return "deprecated" if deprecated else ""


def download_release(release: Release, target: Path, *, client: httpx2.Client | None = None) -> None:
    """Download the package of a release to the file `target`, without unpacking it.

    Raises NpmError where the registry does not answer or has no package, and where the package is too large, takes too
    long or has another digest. The file `target` stays then with the bytes that came.
    """
    algorithm, expected_digest = _parse_strongest_digest(release.integrity) or ("sha512", b"")
    digest, size = hashlib.new(algorithm), 0
    label = f"{release.name} {release.version}"
    try:
        with (
            client or _make_client() as session,
            session.stream("GET", release.address) as response,
            target.open("wb") as file,
        ):
            if response.status_code != 200:
                raise NpmError(f"{_host(release.address)} answered {response.status_code} for the package of {label}.")
            for piece in read_until_timeout(response, response.iter_bytes(), timeout_s=FETCH_S):
                size += len(piece)
                if size > MAX_PACKED_BYTES:
                    raise NpmError(f"The package of {label} has more than {MAX_PACKED_BYTES:,} bytes; it is not kept.")
                digest.update(piece)
                file.write(piece)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(release.address, problem) from problem
    if not hmac.compare_digest(digest.digest(), expected_digest):
        raise NpmError(
            f"The package of {label} from {_host(release.address)} is not the one that its digest names "
            f"({algorithm}); it is not used. Look at the registry, or at what stands between."
        )


def _make_client() -> httpx2.Client:
    return httpx2.Client(timeout=httpx2.Timeout(ANSWER_S, connect=10.0))


def _fetch_json(
    client: httpx2.Client, address: str, *, label: str, accept: str = "application/json"
) -> dict[str, object]:
    """Return the registry's answer, a JSON object. Raises NpmError for any other answer; its text names `label`."""
    try:
        with client.stream("GET", address, headers={"Accept": accept}) as response:
            if response.status_code == 404:
                text = f"{label} does not exist on {_host(address)}: name a release that npm has."
                raise NpmError(text, code=ReasonCode.UNKNOWN_RUNTIME)
            if response.status_code != 200:
                raise NpmError(f"{_host(address)} answered {response.status_code} when it was asked for {label}.")
            body = b""
            for piece in read_until_timeout(response, response.iter_bytes(), timeout_s=ANSWER_S):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise NpmError(f"{_host(address)} says more of {label} than any release needs.")
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(address, problem) from problem
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NpmError(f"{_host(address)} answered no JSON for {label}; check ONNXFARM_NPM_REGISTRY.")
    return answer


def _make_no_answer_error(address: str, problem: Exception) -> NpmError:
    name = type(problem).__name__
    return NpmError(f"The npm registry {_host(address)} does not answer ({name}); set ONNXFARM_NPM_REGISTRY, or wait.")


def _parse_strongest_digest(integrity: str) -> tuple[str, bytes] | None:
    """Return algorithm and bytes of the strongest digest in an integrity text; None where it holds none."""
    digests = dict(part.partition("-")[::2] for part in integrity.split())
    for algorithm in ALGORITHMS:
        try:
            digest = base64.b64decode(digests.get(algorithm, "").partition("?")[0], validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(digest) == hashlib.new(algorithm).digest_size:
            return algorithm, digest
    return None


def _check_address(address: str, *, registry: str) -> str:
    """Return the package's address at the registry that is set. Raises NpmError where it lies on another host.

    A mirror may repeat npm's own address; like npm itself, the farm then asks the mirror.
    """
    target, source = urlsplit(address), urlsplit(registry)
    if target.hostname == PUBLIC and source.hostname != PUBLIC:
        path = source.path.rstrip("/") + target.path
        return urlunsplit((source.scheme, source.netloc, path, target.query, ""))
    if target.hostname != source.hostname or target.scheme not in ("http", "https"):
        raise NpmError(f"{_host(registry)} sends on to {target.hostname or address[:80]!r}, which is not asked.")
    return address


def _host(address: str) -> str:
    return urlsplit(address).hostname or "the registry"
