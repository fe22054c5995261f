"""The Python client of a farm's API.

    with Client(find_account()) as farm:
        version = farm.upload([Path("model.onnx")])
        run = farm.call(operations.START_RUN, json={"version": version.id, "matrix": matrix})

The operations are in `onnxfarm.remote.operations`, and the shapes of answers in `farm.contract.api` (see /api/v1/docs
on the farm). Requests that may be sent twice without harm are repeated while the farm is away.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar, cast
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter, ValidationError

from farm.contract.api.registry import VersionOut
from farm.contract.api.runs import OpenPlanOut
from farm.contract.texts import replace_controls_in_json
from onnxfarm.calibration_files import list_upload_files
from onnxfarm.problems import Infrastructure, TimedOut, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import Account, find_account
from onnxfarm.remote.operations import Operation, Parsed
from onnxfarm.remote.resumable import PIECE_BYTES, Progress, Sender, is_sent_in_pieces, open_file, send_with_retries

if TYPE_CHECKING:
    from farm.rules.planning.plans import Plan

API = "/api/v1"
# the farm answers an upload only after storing it, which may take long
TIMEOUT = httpx2.Timeout(connect=10.0, read=120.0, write=120.0, pool=10.0)

ACCEPTED = 202
PLAN_POLL_S, PLAN_LIMIT_S = 1.0, 600.0
PAGE = 100
Row = TypeVar("Row")
Params = Mapping[str, str | int]


@dataclass(frozen=True)
class ApiAnswer(Generic[Parsed]):
    """A farm's answer to a request. `json`: its plain values. `parsed`: the same as an object of the answer's type.

    If the answer is text or bytes, both fields are that content. Of an answer without content, both are None.
    """

    json: object
    parsed: Parsed


class _FileToUpload(NamedTuple):
    """A file to upload, and its name on the farm. `role` None: the file belongs to the model itself."""

    role: str | None
    name: str
    path: Path


class Client:
    """A connection to one farm with one token. `transport` and `sleep` are for tests.

    Each request raises Usage with the farm's own sentence if the farm refuses it, and Infrastructure if the farm cannot
    be reached or fails. `piece_bytes`: the size of the pieces in which large files are uploaded.
    """

    def __init__(
        self,
        account: Account,
        *,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self.account = account
        self._sleep = sleep
        self._piece_bytes = piece_bytes
        self._http = httpx2.Client(
            base_url=account.server + API,
            headers={"Authorization": f"Bearer {account.token}", "Accept": "application/json"},
            timeout=TIMEOUT,
            transport=transport,
            # the token is sent to the farm's own address only
            follow_redirects=False,
            # plain HTTP is allowed to this machine only, and a proxy would send it over the network
            trust_env=account.server.startswith("https://"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(
        self,
        operation: Operation[Parsed],
        *,
        json: object = None,
        params: Params | None = None,
        **path_values: str | int,
    ) -> Parsed:
        """Request an operation, and return its parsed answer. `path_values`: values of the names in its path."""
        return self.ask(operation, json=json, params=params, **path_values).parsed

    def ask(
        self,
        operation: Operation[Parsed],
        *,
        json: object = None,
        params: Params | None = None,
        **path_values: str | int,
    ) -> ApiAnswer[Parsed]:
        """Request an operation as `call` does, and return its answer both as JSON and parsed.

        A POST without `json` sends an empty object. Raises Usage also for a run that is no number, and KeyError if
        `path_values` lacks a name of the path. Values of other names are ignored.
        """
        method = operation.method
        body = {} if json is None and method == "POST" else json
        path = _make_path(operation, path_values)
        response = self._send(
            lambda: self._http.request(method, path, json=body, params=params),
            is_repeatable=operation.is_repeatable,
        )
        return _parse_answer(operation.answers, response)

    def save_file(
        self, operation: Operation[bytes], file_path: Path, *, max_bytes: int, **path_values: str | int
    ) -> str:
        """Download an answer into a file, and return its SHA-256 in hexadecimal.

        The file is overwritten even if the request fails. Raises Infrastructure also if the answer has more than
        `max_bytes` bytes, or if the file cannot be written.
        """
        path = _make_path(operation, path_values)

        def fetch() -> httpx2.Response:
            with self._http.stream(operation.method, path) as response, file_path.open("wb") as file:
                if not response.is_success:
                    response.read()
                    return response
                for piece in response.iter_bytes():
                    file.write(piece)
                    if file.tell() > max_bytes:
                        raise Infrastructure(f"{response.url} goes on after the {max_bytes:,} bytes that it has.")
            return response

        try:
            self._send(fetch, is_repeatable=True)
            with file_path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise Infrastructure(
                f"{file_path} cannot be written or read again ({problem.strerror}): is the disk full?"
            ) from problem

    def iterate_pages(
        self, operation: Operation[list[Row]], *, params: Params | None = None, **path_values: str | int
    ) -> Iterator[ApiAnswer[list[Row]]]:
        """Yield a list page by page, each of up to PAGE rows, in the farm's order.

        A list ends with a page of fewer than PAGE rows, which is empty for an empty list or a multiple of PAGE.
        `params` cannot set `after` or `limit`. Requests are sent, and errors raised, during the iteration.
        """
        after = 0
        while True:
            page = self.ask(operation, params={**(params or {}), "after": after, "limit": PAGE}, **path_values)
            yield page
            after += len(page.parsed)
            if len(page.parsed) < PAGE:
                return

    def list_rows(
        self, operation: Operation[list[Row]], *, params: Params | None = None, **path_values: str | int
    ) -> ApiAnswer[list[Row]]:
        """Request every page of a list, and return them as one answer."""
        pages = list(self.iterate_pages(operation, params=params, **path_values))
        plain_rows = [row for page in pages for row in cast(list[object], page.json)]
        return ApiAnswer(plain_rows, [row for page in pages for row in page.parsed])

    def upload(
        self,
        files: Sequence[Path],
        *,
        roles: Mapping[str, Path] | None = None,
        fields: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> VersionOut:
        """Upload a model as a new version, which the farm inspects later: an .onnx with its external data, or a .zip.

        `roles`: further files by their role, such as `inputs`; a path may also be a folder of ONNX's test data.
        `fields`: the form's other fields, such as model, note and team. `progress` is called with the number of bytes
        of each piece that was sent, again if a request is repeated. Uploading the same files again returns the same
        version. A large upload that was interrupted is continued.
        """
        uploads = [_FileToUpload(None, path.name, path) for path in files]
        for role, given_path in (roles or {}).items():
            uploads += [_FileToUpload(role, name, path) for name, path in list_upload_files(given_path)]
        if is_sent_in_pieces([upload.path for upload in uploads], piece_bytes=self._piece_bytes):
            return self._upload_in_pieces(uploads, fields or {}, progress=progress)

        def send() -> httpx2.Response:
            with contextlib.ExitStack() as opened:
                parts = []
                for upload in uploads:
                    file = opened.enter_context(open_file(upload.path, progress))
                    parts.append((upload.role or "files", (upload.name, file, "application/octet-stream")))
                return self._http.post("/uploads", files=parts, data=dict(fields or {}))

        return _parse_answer(VersionOut, self._send(send, is_repeatable=True)).parsed

    def plan(
        self,
        version_id: int,
        matrix: Mapping[str, object] | None,
        *,
        detect: str | None = None,
        progress: Callable[[OpenPlanOut], None] | None = None,
    ) -> "ApiAnswer[Plan]":
        """Request the plan of a matrix, or of the farm's default matrix for None, and wait for it.

        `detect`: a change that the plan should be able to detect, such as `3%`. `progress` is called every PLAN_POLL_S
        seconds while the farm plans. Raises TimedOut after PLAN_LIMIT_S.
        """
        from farm.rules.planning.plans import Plan

        body = make_run_request(version_id, matrix) | ({} if detect is None else {"wish": detect})
        response = self._send(lambda: self._http.post("/plan", json=body), is_repeatable=True)
        deadline = time.monotonic() + PLAN_LIMIT_S
        while response.status_code == ACCEPTED:
            waiting = _parse_answer(OpenPlanOut, response).parsed
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"{waiting.points:,} points were not planned within {PLAN_LIMIT_S:.0f} s; is the farm's "
                    "`prepare` worker running?"
                )
            if progress is not None:
                progress(waiting)
            self._sleep(PLAN_POLL_S)
            response = self._send(partial(self._http.get, f"/plans/{waiting.id}"), is_repeatable=True)
        return _parse_answer(Plan, response)

    def _upload_in_pieces(
        self, uploads: Sequence["_FileToUpload"], fields: Mapping[str, str], *, progress: Progress | None
    ) -> VersionOut:
        server, pieces = self.account.server, self._piece_bytes
        sender = Sender(self._http, server=server, sleep=self._sleep, progress=progress, piece_bytes=pieces)
        other_fields = dict(fields)
        # the team is set when an upload begins, not when it is completed
        team = other_fields.pop("team", "")
        parts = []
        for upload in uploads:
            part = {"upload": sender.send(upload.path, name=upload.name, team=team)}
            parts.append({**part, "role": upload.role} if upload.role else part)
        version = self.call(operations.COMPLETE_UPLOADS, json={"files": parts, **other_fields})
        sender.forget()
        return version

    def _send(self, send: Callable[[], httpx2.Response], *, is_repeatable: bool) -> httpx2.Response:
        return send_with_retries(send, server=self.account.server, sleep=self._sleep, is_repeatable=is_repeatable)


def ask_farm(
    server: str | None,
    operation: Operation[Parsed],
    *,
    json: object = None,
    params: Params | None = None,
    **path_values: str | int,
) -> ApiAnswer[Parsed]:
    """Request a single operation of the farm at `server`, or of the default farm for None; see `Client.ask`.

    Raises Usage also if no farm or token is known; see `find_account`.
    """
    with Client(find_account(server)) as client:
        return client.ask(operation, json=json, params=params, **path_values)


def make_run_request(version_id: int, matrix: Mapping[str, object] | None) -> dict[str, object]:
    """Make the JSON body of a request for a run or a plan. `matrix` None: the farm's default matrix."""
    return {"version": version_id} | ({} if matrix is None else {"matrix": matrix})


def _make_path(operation: Operation[Parsed], path_values: Mapping[str, str | int]) -> str:
    return operation.path.format(**{name: _quote_part(name, str(value)) for name, value in path_values.items()})


def _quote_part(name: str, text: str) -> str:
    """Quote a part of a path. Raises Usage for a run that is no number."""
    if name == "run" and not text.isdecimal():
        raise Usage(f"“{text}” is not a run: give its number, as `onnxfarm status` lists it.")
    return quote(text, safe="")


def _parse_answer(kind: type[Parsed], response: httpx2.Response) -> ApiAnswer[Parsed]:
    """Parse an answer into `kind`, without keys that `kind` does not know. Raises Infrastructure if it does not fit."""
    if kind in (str, bytes, operations.Nothing):
        content: str | bytes | None = None
        if kind is not operations.Nothing:
            content = response.text if kind is str else response.content
        return ApiAnswer(content, cast(Parsed, content))
    try:
        # the answer may contain other people's text, which is printed on a terminal
        plain = json.loads(replace_controls_in_json(response.content))
    except ValueError as problem:
        raise Infrastructure(
            f"{response.request.url} did not answer in JSON: is this the address of a farm?"
        ) from problem
    try:
        return ApiAnswer(plain, TypeAdapter(kind).validate_python(plain, extra="ignore"))
    except ValidationError as problem:
        title = getattr(kind, "__name__", str(kind)).removesuffix("Out").lower()
        raise Infrastructure(
            f"{response.request.url} answered with something other than a {title}: is this the address of a "
            "farm, and of the version of this client?"
        ) from problem
