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
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter, ValidationError

from farm.contract.api.registry import VersionOut
from farm.contract.api.runs import OpenPlanOut
from farm.contract.texts import replace_control_characters
from onnxfarm.calibration_files import list_named_files
from onnxfarm.problems import Infrastructure, TimedOut, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import Account, find_account
from onnxfarm.remote.operations import Operation, Shape
from onnxfarm.remote.resumable import PIECE_BYTES, Progress, Sender, is_large, open_file, send_with_retries

if TYPE_CHECKING:
    from farm.rules.planning.plans import Plan

API = "/api/v1"
# the farm answers an upload once it is on disk, which takes long
TIMEOUT = httpx2.Timeout(connect=10.0, read=120.0, write=120.0, pool=10.0)

ACCEPTED = 202
PLAN_POLL_S, PLAN_LIMIT_S = 1.0, 600.0
PAGE = 100
Row = TypeVar("Row")
Params = Mapping[str, str | int]


@dataclass(frozen=True)
class Answered(Generic[Shape]):
    """A farm's answer: its JSON as the farm wrote it, and the same parsed into its shape."""

    plain: object
    shape: Shape


class Client:
    """A connection to one farm with one token. `transport` is for tests.

    Each request raises Usage with the farm's sentence where it refuses, and Infrastructure where it is away or broken.
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
            # a proxy would send plain HTTP, which is for this machine, over the network
            trust_env=account.server.startswith("https://"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(
        self, operation: Operation[Shape], *, json: object = None, params: Params | None = None, **place: str | int
    ) -> Shape:
        """Ask for an operation, and return its parsed answer. `place` has the values of its path, by name."""
        return self.ask(operation, json=json, params=params, **place).shape

    def ask(
        self, operation: Operation[Shape], *, json: object = None, params: Params | None = None, **place: str | int
    ) -> Answered[Shape]:
        """Ask for an operation as `call` does, and return both its JSON and its parsed answer."""
        method = operation.method
        body = {} if json is None and method == "POST" else json
        address = _make_address(operation, place)
        response = self._send(
            lambda: self._http.request(method, address, json=body, params=params),
            is_repeatable=operation.is_repeatable,
        )
        return _parse_answer(operation.answers, response)

    def save_file(self, operation: Operation[bytes], path: Path, *, max_bytes: int, **place: str | int) -> str:
        """Download an answer into a file, and return its SHA-256. Raises Infrastructure also beyond `max_bytes`."""
        address = _make_address(operation, place)

        def fetch() -> httpx2.Response:
            with self._http.stream(operation.method, address) as response, path.open("wb") as file:
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
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise Infrastructure(f"{path} cannot be written ({problem.strerror}): is the disk full?") from problem

    def iterate_pages(
        self, operation: Operation[list[Row]], *, params: Params | None = None, **place: str | int
    ) -> Iterator[Answered[list[Row]]]:
        """Yield every page of a long list, PAGE rows each."""
        after = 0
        while True:
            page = self.ask(operation, params={**(params or {}), "after": after, "limit": PAGE}, **place)
            yield page
            after += len(page.shape)
            if len(page.shape) < PAGE:
                return

    def list_rows(
        self, operation: Operation[list[Row]], *, params: Params | None = None, **place: str | int
    ) -> Answered[list[Row]]:
        """Ask for a long list page by page, and return it as a whole."""
        pages = list(self.iterate_pages(operation, params=params, **place))
        plain = [row for page in pages for row in cast(list[object], page.plain)]
        return Answered(plain, [row for page in pages for row in page.shape])

    def upload(
        self,
        files: Sequence[Path],
        *,
        roles: Mapping[str, Path] | None = None,
        fields: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> VersionOut:
        """Upload the files of a model, an .onnx with its external data or one .zip, and further files by role.

        A role's path may be a folder of ONNX's own test data. `fields`: model, note, team. `progress` is called with
        the bytes of each piece that was sent. A bundle that is sent again is the same version; a large one that was
        interrupted is continued.
        """
        named = [("files", path.name, path) for path in files]
        named += [(role, name, file) for role, path in (roles or {}).items() for name, file in list_named_files(path)]
        if is_large([path for _, _, path in named], piece_bytes=self._piece_bytes):
            return self._upload_in_pieces(named, fields or {}, progress=progress)

        def send() -> httpx2.Response:
            with contextlib.ExitStack() as opened:
                parts = [
                    (field, (name, opened.enter_context(open_file(path, progress)), "application/octet-stream"))
                    for field, name, path in named
                ]
                return self._http.post("/uploads", files=parts, data=dict(fields or {}))

        return _parse_answer(VersionOut, self._send(send, is_repeatable=True)).shape

    def plan(
        self,
        version_id: int,
        matrix: Mapping[str, object] | None,
        *,
        wish: str | None = None,
        progress: Callable[[OpenPlanOut], None] | None = None,
    ) -> "Answered[Plan]":
        """Ask for the plan of a matrix; None is the farm's default matrix. `wish`: a change to detect, such as `3%`.

        A large matrix takes a while, during which `progress` is called with its order again and again. Raises TimedOut
        after PLAN_LIMIT_S.
        """
        from farm.rules.planning.plans import Plan

        order = make_order(version_id, matrix) | ({} if wish is None else {"wish": wish})
        answer = self._send(lambda: self._http.post("/plan", json=order), is_repeatable=True)
        waits_until = time.monotonic() + PLAN_LIMIT_S
        while answer.status_code == ACCEPTED:
            waiting = _parse_answer(OpenPlanOut, answer).shape
            if time.monotonic() > waits_until:
                raise TimedOut(
                    f"{waiting.points:,} points were not planned within {PLAN_LIMIT_S:.0f} s; is the farm's "
                    "`prepare` worker running?"
                )
            if progress is not None:
                progress(waiting)
            self._sleep(PLAN_POLL_S)
            answer = self._send(partial(self._http.get, f"/plans/{waiting.id}"), is_repeatable=True)
        return _parse_answer(Plan, answer)

    def _upload_in_pieces(
        self, files: Sequence[tuple[str, str, Path]], fields: Mapping[str, str], *, progress: Progress | None
    ) -> VersionOut:
        server, pieces = self.account.server, self._piece_bytes
        sender = Sender(self._http, server=server, sleep=self._sleep, progress=progress, piece_bytes=pieces)
        whole_fields = dict(fields)
        team = whole_fields.pop("team", "")
        parts = []
        for field, name, path in files:
            part = {"upload": sender.send(path, name=name, team=team)}
            parts.append(part if field == "files" else {**part, "role": field})
        version = self.call(operations.COMPLETE_UPLOADS, json={"files": parts, **whole_fields})
        sender.forget()
        return version

    def _send(self, send: Callable[[], httpx2.Response], *, is_repeatable: bool) -> httpx2.Response:
        return send_with_retries(send, server=self.account.server, sleep=self._sleep, is_repeatable=is_repeatable)


def ask_farm(
    server: str | None,
    operation: Operation[Shape],
    *,
    json: object = None,
    params: Params | None = None,
    **place: str | int,
) -> Answered[Shape]:
    """Ask the farm at `server`, or the default one, for a single operation; see `Client.ask`."""
    with Client(find_account(server)) as client:
        return client.ask(operation, json=json, params=params, **place)


def make_order(version_id: int, matrix: Mapping[str, object] | None) -> dict[str, object]:
    """Make the order of a run or a plan; None is the farm's default matrix."""
    return {"version": version_id} | ({} if matrix is None else {"matrix": matrix})


def _make_address(operation: Operation[Shape], place: Mapping[str, str | int]) -> str:
    return operation.path.format(**{name: _quote_part(name, str(value)) for name, value in place.items()})


def _quote_part(name: str, text: str) -> str:
    """Quote a part of an address. Raises Usage for a run that is no number."""
    if name == "run" and not text.isdecimal():
        raise Usage(f"“{text}” is not a run: give its number, as `onnxfarm status` lists it.")
    return quote(text, safe="")


def _parse_answer(shape: type[Shape], response: httpx2.Response) -> Answered[Shape]:
    if shape in (str, bytes, operations.Nothing):
        text = response.text if shape is str else response.content if shape is bytes else None
        return Answered(text, cast(Shape, text))
    try:
        # what members and nodes wrote is printed on terminals
        plain = json.loads(replace_control_characters(response.content))
    except ValueError as problem:
        raise Infrastructure(
            f"{response.request.url} did not answer in JSON: is this the address of a farm?"
        ) from problem
    try:
        return Answered(plain, TypeAdapter(shape).validate_python(plain, extra="ignore"))
    except ValidationError as problem:
        title = getattr(shape, "__name__", str(shape)).removesuffix("Out").lower()
        raise Infrastructure(
            f"{response.request.url} answered with something other than a {title}: is this the address of a "
            "farm, and of the version of this client?"
        ) from problem
