"""Downloads a page, or a file known by its sha256, over HTTP: within limits of size, time and host."""

import contextlib
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx2

CONNECT_S = 10.0
MAX_REDIRECTS = 3


class DownloadError(Exception):
    """A page or file could not be downloaded. The message names no more of the address than its host."""


def download_page(address: str, *, accept: str, limit_bytes: int, within_s: float) -> tuple[bytes, str]:
    """Download a page; return its body and its Content-Type. No redirect is followed.

    Raises DownloadError for any status but 200, a body of more than `limit_bytes`, and a host that does not answer
    within `within_s` seconds.
    """
    try:
        with _make_client(within_s) as client, client.stream("GET", address, headers={"Accept": accept}) as response:
            _refuse_unless_ok(response, address)
            body = b""
            for piece in read_until_timeout(response, response.iter_raw(), within_s=within_s):
                body += piece
                if len(body) > limit_bytes:
                    raise DownloadError(f"{_host(address)} answered more than {limit_bytes:,} bytes; it is not read.")
            return body, response.headers.get("content-type", "")
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(address, problem) from problem


def download_file(
    address: str,
    target: Path,
    *,
    sha256: str,
    limit_bytes: int,
    within_s: float,
    may_follow: Callable[[str], bool],
) -> None:
    """Download a file to `target` and check its sha256.

    `may_follow` is asked about the address of each redirect. Raises DownloadError for a redirect that it refuses, any
    status but 200, more than `limit_bytes`, more than `within_s` seconds, and another sha256; what was
    written to `target` stays.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with (
            _make_client(within_s) as client,
            target.open("wb") as file,
            contextlib.closing(_open_after_redirects(client, address, may_follow)) as response,
        ):
            for piece in read_until_timeout(response, response.iter_raw(), within_s=within_s):
                size += len(piece)
                if size > limit_bytes:
                    raise DownloadError(f"The file of {_host(address)} has more than {limit_bytes:,} bytes.")
                digest.update(piece)
                file.write(piece)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(address, problem) from problem
    if not hmac.compare_digest(digest.hexdigest(), sha256):
        raise DownloadError(
            f"{target.name} of {_host(address)} has the sha256 {digest.hexdigest()[:12]}… and not {sha256[:12]}…, "
            "which it had when it was listed; it is not used."
        )


def read_until_timeout(response: httpx2.Response, body: Iterator[bytes], *, within_s: float) -> Iterator[bytes]:
    """Yield the pieces of `body` as they come. Raises ReadTimeout at a piece that comes after `within_s` seconds.

    Between two pieces the client's own timeout applies.
    """
    until = time.monotonic() + within_s
    for piece in body:
        if time.monotonic() > until:
            raise httpx2.ReadTimeout(f"not read within {within_s:.0f} s", request=response.request)
        yield piece


def _open_after_redirects(client: httpx2.Client, address: str, may_follow: Callable[[str], bool]) -> httpx2.Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(client.build_request("GET", address), stream=True)
        if not response.is_redirect:
            _refuse_unless_ok(response, address)
            return response
        response.close()
        onward = urljoin(address, response.headers.get("location", ""))
        if not may_follow(onward):
            raise DownloadError(f"{_host(address)} redirects to {_host(onward)}, which is not allowed.")
        address = onward
    raise DownloadError(f"{_host(address)} redirects more than {MAX_REDIRECTS} times.")


def _refuse_unless_ok(response: httpx2.Response, address: str) -> None:
    if response.status_code != 200:
        response.close()
        raise DownloadError(f"{_host(address)} answered {response.status_code}.")


def _make_client(within_s: float) -> httpx2.Client:
    # not compressed, as a small body could unpack to any length
    headers = {"Accept-Encoding": "identity"}
    return httpx2.Client(timeout=httpx2.Timeout(within_s, connect=CONNECT_S), headers=headers)


def _make_no_answer_error(address: str, problem: Exception) -> DownloadError:
    return DownloadError(f"{_host(address)} does not answer ({type(problem).__name__}).")


def _host(address: str) -> str:
    """Return the host alone, without a password before it or a token after it."""
    try:
        return urlsplit(address).hostname or "the host"
    except ValueError:
        return "the host"
