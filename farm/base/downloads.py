"""Downloads pages, and files whose sha256 is known, over HTTP, with limits on size, time and redirects."""

import contextlib
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx2

CONNECT_S = 10.0
MAX_REDIRECTS = 3


class DownloadError(Exception):
    """A page or file could not be downloaded. The message names no more of the address than its host."""


class Page(NamedTuple):
    """A downloaded page, with its Content-Type; empty where the host sends none."""

    body: bytes
    content_type: str


def download_page(address: str, *, accept: str, max_bytes: int, timeout_s: float) -> Page:
    """Download a page without following redirects; `accept` is the Accept header.

    Raises DownloadError for any status but 200, a body of more than `max_bytes`, and a host that does not send all of
    it within `timeout_s` seconds.
    """
    try:
        with _make_client(timeout_s) as client, client.stream("GET", address, headers={"Accept": accept}) as response:
            _refuse_unless_ok(response, address)
            body = b""
            for piece in read_until_timeout(response, response.iter_raw(), timeout_s=timeout_s):
                body += piece
                if len(body) > max_bytes:
                    raise DownloadError(f"{_host(address)} answered more than {max_bytes:,} bytes; it is not read.")
            return Page(body, response.headers.get("content-type", ""))
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(address, problem) from problem


def download_file(
    address: str, target: Path, *, sha256: str, max_bytes: int, timeout_s: float, may_redirect_to: Callable[[str], bool]
) -> None:
    """Download a file to `target` and check its sha256.

    `may_redirect_to` is called with the address of each redirect. Raises DownloadError for a redirect that it refuses,
    any status but 200, more than `max_bytes`, more than `timeout_s` seconds, and another sha256; what was written to
    `target` stays. Raises OSError where `target` cannot be written.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with (
            _make_client(timeout_s) as client,
            target.open("wb") as file,
            contextlib.closing(_open_after_redirects(client, address, may_redirect_to)) as response,
        ):
            for piece in read_until_timeout(response, response.iter_raw(), timeout_s=timeout_s):
                size += len(piece)
                if size > max_bytes:
                    raise DownloadError(f"The file of {_host(address)} has more than {max_bytes:,} bytes.")
                digest.update(piece)
                file.write(piece)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _make_no_answer_error(address, problem) from problem
    if not hmac.compare_digest(digest.hexdigest(), sha256):
        raise DownloadError(
            f"{target.name} of {_host(address)} has the sha256 {digest.hexdigest()[:12]}… and not {sha256[:12]}…, "
            "which it had when it was listed; it is not used."
        )


def read_until_timeout(response: httpx2.Response, body: Iterator[bytes], *, timeout_s: float) -> Iterator[bytes]:
    """Yield the pieces of `body` as they come. Raises ReadTimeout at the first piece after `timeout_s` seconds.

    While waiting for a piece, only the client's own timeout applies.
    """
    until = time.monotonic() + timeout_s
    for piece in body:
        if time.monotonic() > until:
            raise httpx2.ReadTimeout(f"not read within {timeout_s:.0f} s", request=response.request)
        yield piece


def _open_after_redirects(
    client: httpx2.Client, address: str, may_redirect_to: Callable[[str], bool]
) -> httpx2.Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(client.build_request("GET", address), stream=True)
        if not response.is_redirect:
            _refuse_unless_ok(response, address)
            return response
        response.close()
        onward = urljoin(address, response.headers.get("location", ""))
        if not may_redirect_to(onward):
            raise DownloadError(f"{_host(address)} redirects to {_host(onward)}, which is not allowed.")
        address = onward
    raise DownloadError(f"{_host(address)} redirects more than {MAX_REDIRECTS} times.")


def _refuse_unless_ok(response: httpx2.Response, address: str) -> None:
    if response.status_code != 200:
        response.close()
        raise DownloadError(f"{_host(address)} answered {response.status_code}.")


def _make_client(timeout_s: float) -> httpx2.Client:
    # not compressed, as a small body could unpack to any length
    headers = {"Accept-Encoding": "identity"}
    return httpx2.Client(timeout=httpx2.Timeout(timeout_s, connect=CONNECT_S), headers=headers)


def _make_no_answer_error(address: str, problem: Exception) -> DownloadError:
    return DownloadError(f"{_host(address)} does not answer ({type(problem).__name__}).")


def _host(address: str) -> str:
    """Return the host alone, without a password before it or a token after it."""
    try:
        return urlsplit(address).hostname or "the host"
    except ValueError:
        return "the host"
