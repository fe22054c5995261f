"""What others serve over HTTP: a page, or a file by its sha256; never longer, slower or from elsewhere than allowed."""

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
    """It cannot be had. The message is one sentence that names the host alone."""


def download_page(address: str, *, accept: str, limit_bytes: int, within_s: float) -> tuple[bytes, str]:
    """A page and its media type. No redirect is followed. Raises DownloadError."""
    try:
        with _client(within_s) as client, client.stream("GET", address, headers={"Accept": accept}) as response:
            _refuse_unless_ok(response, address)
            body = b""
            for piece in read_within(response, response.iter_raw(), within_s=within_s):
                body += piece
                if len(body) > limit_bytes:
                    raise DownloadError(f"{_host(address)} answered more than {limit_bytes:,} bytes; it is not read.")
            return body, response.headers.get("content-type", "")
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _away(address, problem) from problem


def download_file(
    address: str,
    target: Path,
    *,
    sha256: str,
    limit_bytes: int,
    within_s: float,
    may_follow: Callable[[str], bool],
) -> None:
    """Writes the file of this digest. Raises OSError, DownloadError, for a redirect that `may_follow` refuses too."""
    seen, size = hashlib.sha256(), 0
    try:
        with (
            _client(within_s) as client,
            target.open("wb") as file,
            contextlib.closing(_followed(client, address, may_follow)) as response,
        ):
            for piece in read_within(response, response.iter_raw(), within_s=within_s):
                size += len(piece)
                if size > limit_bytes:
                    raise DownloadError(f"The file of {_host(address)} has more than {limit_bytes:,} bytes.")
                seen.update(piece)
                file.write(piece)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise _away(address, problem) from problem
    if not hmac.compare_digest(seen.hexdigest(), sha256):
        raise DownloadError(
            f"{target.name} of {_host(address)} has the sha256 {seen.hexdigest()[:12]}… and not {sha256[:12]}…, which "
            "it had when it was listed; it is not used."
        )


def read_within(response: httpx2.Response, body: Iterator[bytes], *, within_s: float) -> Iterator[bytes]:
    """The body of a response as it comes. Raises ReadTimeout where it drips for longer."""
    until = time.monotonic() + within_s
    for piece in body:
        if time.monotonic() > until:
            raise httpx2.ReadTimeout(f"not read within {within_s:.0f} s", request=response.request)
        yield piece


def _followed(client: httpx2.Client, address: str, may_follow: Callable[[str], bool]) -> httpx2.Response:
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(client.build_request("GET", address), stream=True)
        if not response.is_redirect:
            _refuse_unless_ok(response, address)
            return response
        response.close()
        onward = urljoin(address, response.headers.get("location", ""))
        if not may_follow(onward):
            raise DownloadError(f"{_host(address)} sends on to {_host(onward)}, which is not asked.")
        address = onward
    raise DownloadError(f"{_host(address)} sends on more than {MAX_REDIRECTS} times.")


def _refuse_unless_ok(response: httpx2.Response, address: str) -> None:
    if response.status_code != 200:
        response.close()
        raise DownloadError(f"{_host(address)} answered {response.status_code}.")


def _client(within_s: float) -> httpx2.Client:
    # a body as it is: what is unpacked on the way may be any length
    heads = {"Accept-Encoding": "identity"}
    return httpx2.Client(timeout=httpx2.Timeout(within_s, connect=CONNECT_S), headers=heads)


def _away(address: str, problem: Exception) -> DownloadError:
    return DownloadError(f"{_host(address)} does not answer ({type(problem).__name__}).")


def _host(address: str) -> str:
    """Without a password that may stand before it, or a token that may follow."""
    try:
        return urlsplit(address).hostname or "It"
    except ValueError:
        return "It"
