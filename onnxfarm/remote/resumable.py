"""Sends requests with retries, and uploads large files in pieces by the protocol tus 1.0.

If the connection breaks, one piece is sent again. The keys of unfinished uploads are stored in a file in the user's
cache, so that the same command continues them.
"""

import base64
import contextlib
import hashlib
import io
import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import httpx2

from farm.base.private_files import write_private_file
from onnxfarm.problems import Infrastructure, Usage

TRIES = 6
FIRST_WAIT_S = 0.3
MAX_WAIT_S = 8.0
UNAVAILABLE = (502, 503, 504)
# a bundle that is larger than this many pieces is sent in pieces
MAX_PIECES_AT_ONCE: Final = 4
PIECE_BYTES: Final = 8 * 1024**2
TUS: Final = {"Tus-Resumable": "1.0.0"}
MAX_REMEMBERED: Final = 100
# statuses for a piece that does not fit what has arrived: the client asks for the offset and continues there
OFFSET_CONFLICT: Final = (409, 460)
GONE: Final = (404, 410)

Progress = Callable[[int], None]


def iterate_retry_delays() -> Iterator[float | None]:
    """Yield the seconds to wait after each of TRIES tries, growing and with jitter; after the last try, yield None."""
    for number in range(TRIES - 1):
        yield min(MAX_WAIT_S, FIRST_WAIT_S * 2**number) * random.uniform(0.8, 1.2)
    yield None


def send_with_retries(
    send: Callable[[], httpx2.Response],
    *,
    server: str,
    sleep: Callable[[float], None],
    is_repeatable: bool = True,
    accepted: tuple[int, ...] = (),
    reports_last_answer: bool = True,
) -> httpx2.Response:
    """Call `send` until the farm answers, at most TRIES times, with growing pauses. Return the answer.

    The answer is successful, or has a status in `accepted`. A request that is not `is_repeatable` is only sent again if
    no connection was made. `reports_last_answer`: if the farm stays unavailable, the error has the text of its last
    answer. Raises Usage if the farm refuses, and Infrastructure if it stays unavailable, fails, or may have received a
    request that must not be repeated.
    """
    for wait_s in iterate_retry_delays():
        try:
            response = send()
        except httpx2.TransportError as problem:
            is_unsent = isinstance(problem, (httpx2.ConnectError, httpx2.ConnectTimeout))
            if not (is_repeatable or is_unsent):
                raise Infrastructure(
                    f"{server} stopped responding ({problem}) and may have accepted the request: "
                    "check `onnxfarm status` before sending it again."
                ) from problem
            last = problem
        else:
            if response.status_code in accepted:
                return response
            if response.status_code not in UNAVAILABLE or not is_repeatable or (reports_last_answer and wait_s is None):
                return check_response(response)
            last = httpx2.TransportError(f"status {response.status_code}")
        if wait_s is not None:
            sleep(wait_s)
    raise Infrastructure(f"{server} cannot be reached ({last}): is the farm running?") from last


def check_response(response: httpx2.Response) -> httpx2.Response:
    """Return the response if it is successful. Raises Usage for a status of 4xx, with the farm's own sentence.

    Raises Infrastructure for any other status, and for redirects, because the token is sent to no other address.
    """
    if response.is_success:
        return response
    if response.is_redirect:
        raise Infrastructure(
            f"{response.request.url} redirects to {response.headers['Location'][:200]}, where no token is sent: "
            "is this the address of a farm? Give its own address, with https:// and the full host name, in --server."
        )
    words = _describe_refusal(response)
    if 400 <= response.status_code < 500:
        raise Usage(words)
    raise Infrastructure(words)


def _describe_refusal(response: httpx2.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        body = {}
    if isinstance(body, dict) and isinstance(body.get("detail"), str):
        return f"{body['detail']} {body.get('hint') or ''}".strip()
    return f"{response.request.url} answered {response.status_code} without a reason: is this the address of a farm?"


class Sender:
    """Uploads the files of one bundle in pieces.

    `progress` is called with the number of bytes that arrived since its last call, which is negative if the farm has
    fewer than before. The first call for a file also counts what an earlier command uploaded.
    """

    def __init__(
        self,
        http: httpx2.Client,
        *,
        server: str,
        sleep: Callable[[float], None],
        progress: Progress | None = None,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._http = http
        self._piece_bytes = piece_bytes
        self._server = server
        self._sleep = sleep
        self._progress = progress
        self._fingerprints: list[str] = []

    def send(self, path: Path, *, name: str, team: str = "") -> str:
        """Upload a file, or the rest of it if an earlier command began to. Return the key of its upload.

        `name`: the file's name on the farm. The key is stored on disk until `forget`. Raises Usage, Infrastructure,
        and FileNotFoundError if there is no such file.
        """
        keys = _read_upload_keys()
        # a file that changed since has another fingerprint, and is uploaded from its beginning
        stat = path.stat()
        fingerprint = f"{self._server} {team} {name} {path.resolve()} {stat.st_size} {stat.st_mtime_ns}"
        self._fingerprints.append(fingerprint)
        key = keys.get(fingerprint, "")
        offset = self._find_offset(key) if key else None
        if offset is None:
            key = self._begin_upload(path, name=name, team=team)
            offset = 0
            _write_upload_keys({**keys, fingerprint: key})
        with open_file(path) as file:
            self._send_from(file, key, offset=offset, size=path.stat().st_size)
        return key

    def forget(self) -> None:
        """Remove this bundle's uploads from the stored keys, because the farm has made a version of them."""
        keys = _read_upload_keys()
        _write_upload_keys({name: key for name, key in keys.items() if name not in self._fingerprints})

    def _begin_upload(self, path: Path, *, name: str, team: str) -> str:
        metadata = {"filename": name, **({"team": team} if team else {})}
        encoded = ",".join(f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in metadata.items())
        headers = {**TUS, "Upload-Length": str(path.stat().st_size), "Upload-Metadata": encoded}
        response = self._send_with_retries(lambda: self._http.post("/uploads/files", headers=headers))
        return response.headers["Location"].rstrip("/").rpartition("/")[2]

    def _find_offset(self, key: str) -> int | None:
        response = self._send_with_retries(lambda: self._http.head(f"/uploads/files/{key}", headers=TUS), accepted=GONE)
        return None if response.status_code in GONE else int(response.headers["Upload-Offset"])

    def _send_from(self, file: BinaryIO, key: str, *, offset: int, size: int) -> None:
        self._report_progress(offset)
        failures = 0
        while offset < size:
            file.seek(offset)
            piece = file.read(self._piece_bytes)
            if not piece:
                raise Usage(f"{file.name} became shorter while it was being sent: run the command again.")
            next_offset = self._send_piece(key, piece, offset=offset)
            failures = failures + 1 if next_offset <= offset else 0
            if failures > TRIES:
                raise Infrastructure(f"{self._server} does not take {file.name} beyond {offset:,} bytes.")
            if failures:
                self._sleep(min(MAX_WAIT_S, FIRST_WAIT_S * 2**failures))
            self._report_progress(next_offset - offset)
            offset = next_offset

    def _send_piece(self, key: str, piece: bytes, *, offset: int) -> int:
        """Send one piece, and return how many bytes the farm has now. After a failure, ask the farm for that number."""
        headers = {
            **TUS,
            "Content-Type": "application/offset+octet-stream",
            "Upload-Offset": str(offset),
            "Upload-Checksum": f"sha256 {base64.b64encode(hashlib.sha256(piece).digest()).decode()}",
        }
        try:
            response = self._http.patch(f"/uploads/files/{key}", content=piece, headers=headers)
        except httpx2.TransportError:
            return self._get_offset(key)
        if response.status_code in (*OFFSET_CONFLICT, *UNAVAILABLE):
            return self._get_offset(key)
        return int(check_response(response).headers["Upload-Offset"])

    def _get_offset(self, key: str) -> int:
        offset = self._find_offset(key)
        if offset is None:
            raise Infrastructure(f"{self._server} lost the upload: run the command again.")
        return offset

    def _send_with_retries(
        self, send: Callable[[], httpx2.Response], *, accepted: tuple[int, ...] = ()
    ) -> httpx2.Response:
        return send_with_retries(
            send, server=self._server, sleep=self._sleep, accepted=accepted, reports_last_answer=False
        )

    def _report_progress(self, size: int) -> None:
        if self._progress is not None and size:
            self._progress(size)


class _CountedFile(io.FileIO):
    """A file that calls `progress` with the number of bytes of each read."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self._progress = progress

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self._progress(len(piece))
        return piece


def is_sent_in_pieces(paths: list[Path], *, piece_bytes: int = PIECE_BYTES) -> bool:
    """Say whether these files together are so large that they are uploaded in pieces. Folders are not counted."""
    return sum(path.stat().st_size for path in paths if path.is_file()) > MAX_PIECES_AT_ONCE * piece_bytes


def locate_uploads_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "onnxfarm" / "uploads.json"


def _read_upload_keys() -> dict[str, str]:
    """Read the keys of unfinished uploads by the fingerprint of the file; empty if there is no valid file."""
    with contextlib.suppress(OSError, ValueError):
        keys: object = json.loads(locate_uploads_file().read_text())
        if isinstance(keys, dict):
            return {str(fingerprint): str(key) for fingerprint, key in keys.items()}
    return {}


def _write_upload_keys(keys: Mapping[str, str]) -> None:
    """Store the keys of unfinished uploads by fingerprint. If that fails, uploads begin anew next time."""
    newest = dict(list(keys.items())[-MAX_REMEMBERED:])
    with contextlib.suppress(OSError):
        write_private_file(locate_uploads_file(), json.dumps(newest))


def open_file(path: Path, progress: Progress | None = None) -> BinaryIO:
    """Open a file to read. `progress` is called with the number of bytes of each read. Raises Usage on failure."""
    try:
        return path.open("rb") if progress is None else _CountedFile(path, progress)
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}): give the path of a file.") from problem
