"""The Python client of a farm's API.

    with Client(find_account()) as farm:
        version = farm.upload(Path("model.onnx"))
        run = farm.start(version["id"], matrix)

Answers are the API's JSON (see /api/v1/docs on the farm). A refusal raises Usage with the farm's own sentence, a farm
that is away or broken Infrastructure. Requests that may be sent twice without harm are repeated when the farm is away.
"""

import contextlib
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypedDict, TypeVar, Unpack, cast
from urllib.parse import quote

import httpx2

from farm.contract.texts import without_controls
from onnxfarm.calibration_files import names_and_files
from onnxfarm.problems import Infrastructure, TimedOut, Usage
from onnxfarm.remote import rows
from onnxfarm.remote.account import Account
from onnxfarm.remote.answers import AWAY, accepted, waits
from onnxfarm.remote.resumable import PIECE_BYTES, Sender, is_large

API = "/api/v1"
# an upload's answer comes after the farm has forced it to its disk
TIMEOUT = httpx2.Timeout(connect=10.0, read=120.0, write=120.0, pool=10.0)

ACCEPTED = 202
PLAN_POLL_S, PLAN_LIMIT_S = 1.0, 600.0

# a document as the farm wrote it, checked where it is read
Json = dict[str, Any]
Row = TypeVar("Row")


class Asked(TypedDict, total=False):
    """What a request carries. `is_repeatable`: sent twice it does no harm, which is so unless said otherwise."""

    json: object
    params: Mapping[str, str | int]
    is_repeatable: bool


class Client:
    """A connection to one farm with one token. `transport` is the seam for tests."""

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
            # the token goes to the address that was named, and nowhere that its answer points to
            follow_redirects=False,
            # nor through a proxy, from where plain HTTP would go on over the network
            trust_env=account.server.startswith("https://"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def me(self) -> rows.Me:
        """Who the token belongs to, with their teams."""
        return self._json(rows.Me, "GET", "/me")

    def models(self, *, search: str = "") -> list[rows.Model]:
        """Every model of the user's teams, by name."""
        found: list[rows.Model] = []
        while True:
            page = self._list(rows.Model, "/models", params={"after": len(found), "limit": 100, "search": search})
            found += page
            if len(page) < 100:
                return found

    def version(self, version_id: int) -> rows.Version:
        """One version with its state: pending, inspecting, ready or rejected."""
        return self._json(rows.Version, "GET", f"/versions/{version_id}")

    def upload(
        self,
        files: Sequence[Path],
        *,
        roles: Mapping[str, Path] | None = None,
        fields: Mapping[str, str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> rows.Version:
        """Upload a bundle: `files` (the .onnx with its external data, or one .zip) and files by role (`inputs`, …).

        A folder is one of ONNX's own test data, as calibration data may be.

        `fields`: model, note, team. `progress` is given the bytes of each piece sent. The same bundle sent again is
        the same version, so a broken upload is repeated from its start; a large one goes on where it was cut.
        """
        named = [("files", path.name, path) for path in files]
        named += [(role, name, file) for role, path in (roles or {}).items() for name, file in names_and_files(path)]
        if is_large([path for _, _, path in named], piece_bytes=self._piece_bytes):
            return self._upload_in_pieces(named, fields or {}, progress=progress)

        def send() -> httpx2.Response:
            with contextlib.ExitStack() as opened:
                parts = [
                    (field, (name, opened.enter_context(_open(path, progress)), "application/octet-stream"))
                    for field, name, path in named
                ]
                return self._http.post("/uploads", files=parts, data=dict(fields or {}))

        return _row(rows.Version, self._send(send, is_repeatable=True))

    def plan(
        self,
        version_id: int,
        matrix: Mapping[str, object] | None,
        *,
        wish: str | None = None,
        progress: Callable[[rows.OpenPlan], None] | None = None,
    ) -> rows.Plan:
        """What a matrix would measure: cells, blocks, minutes, refused points, comparisons; what a wish costs.

        A large matrix is planned while this waits: `progress` is given the order each time that it is not made yet.
        """
        order = _order(version_id, matrix) | ({} if wish is None else {"wish": wish})
        answer = self._request("POST", "/plan", json=order, is_repeatable=True)
        waits_until = time.monotonic() + PLAN_LIMIT_S
        while answer.status_code == ACCEPTED:
            waiting = _row(rows.OpenPlan, answer)
            if time.monotonic() > waits_until:
                raise TimedOut(
                    f"{waiting['points']:,} points were not planned within {PLAN_LIMIT_S:.0f} s; is the farm's "
                    "`prepare` worker running?"
                )
            if progress is not None:
                progress(waiting)
            self._sleep(PLAN_POLL_S)
            answer = self._request("GET", f"/plans/{waiting['id']}")
        return _row(rows.Plan, answer)

    def start(self, version_id: int, matrix: Mapping[str, object] | None, *, seed: int | None = None) -> rows.Run:
        """Start a run. Not repeated once the request was sent: the farm may have taken it."""
        order = _order(version_id, matrix) | ({} if seed is None else {"seed": seed})
        return self._json(rows.Run, "POST", "/runs", json=order, is_repeatable=False)

    def runs(self) -> list[rows.Run]:
        """The newest runs of the user's teams."""
        return self._list(rows.Run, "/runs")

    def run(self, run_id: str) -> rows.Run:
        return self._json(rows.Run, "GET", f"/runs/{_id(run_id)}")

    def document(self, run_id: str) -> Json:
        """The bench document of a run, partial while it goes on."""
        return self._json(dict, "GET", f"/runs/{_id(run_id)}/results")

    def csv(self, run_id: str) -> str:
        return self._request("GET", f"/runs/{_id(run_id)}/results.csv").text

    def timings(self, run_id: str, cell: str) -> str:
        """Every timing behind a cell as CSV, in nanoseconds."""
        return self._request("GET", f"/runs/{_id(run_id)}/cells/{quote(cell, safe='')}/timings.csv").text

    def compiled(self, run_id: str, cell: str) -> bytes:
        """The model that a provider compiled while this cell was measured."""
        return self._request("GET", f"/runs/{_id(run_id)}/cells/{quote(cell, safe='')}/compiled.onnx").content

    def cancel(self, run_id: str) -> rows.Run:
        """Stop a run; stopping it again changes nothing."""
        return self._json(rows.Run, "POST", f"/runs/{_id(run_id)}/cancel", json={}, is_repeatable=True)

    def more(self, run_id: str, *, rounds: int, blocks: Sequence[str] = ()) -> rows.Run:
        """Measure more rounds of a run's blocks; of all undecided ones when none are named."""
        order: Json = {"rounds": rounds} | ({"blocks": list(blocks)} if blocks else {})
        return self._json(rows.Run, "POST", f"/runs/{_id(run_id)}/more", json=order, is_repeatable=False)

    def _upload_in_pieces(
        self,
        named: Sequence[tuple[str, str, Path]],
        fields: Mapping[str, str],
        *,
        progress: Callable[[int], None] | None,
    ) -> rows.Version:
        sender = Sender(
            self._http,
            server=self.account.server,
            sleep=self._sleep,
            progress=progress,
            piece_bytes=self._piece_bytes,
        )
        said = dict(fields)
        team = said.pop("team", "")
        parts = []
        for field, name, path in named:
            part = {"upload": sender.send(path, name=name, team=team)}
            parts.append(part if field == "files" else {**part, "role": field})
        version = self._json(rows.Version, "POST", "/uploads/complete", json={"files": parts, **said})
        sender.forget()
        return version

    def nodes(self) -> list[rows.Node]:
        """Nodes of the user's teams."""
        return self._list(rows.Node, "/nodes")

    def node_named(self, wanted: str) -> rows.Node:
        """The node of that number or name, one that is still at work before retired ones. Raises Usage."""
        nodes = self.nodes()
        named = [node for node in nodes if node["name"] == wanted]
        working = [node for node in named if node["health"] != "retired"]
        found = [node for node in nodes if str(node["id"]) == wanted] or working or named
        if len(found) == 1:
            return found[0]
        if not found:
            raise Usage(f"There is no node “{wanted[:60]}” that you can access: `onnxfarm node list` shows them.")
        raise Usage(f"{len(found)} nodes are called {wanted}: give a number, as `onnxfarm node list` shows it.")

    def invite_node(self, *, team: str = "") -> rows.Invitation:
        """A one-off code with the command by which a machine joins."""
        return self._json(rows.Invitation, "POST", "/nodes/invitations", json={"team": team}, is_repeatable=False)

    def change_node(self, node_id: int, changes: Mapping[str, object]) -> rows.Node:
        """Changes these limits of a node and no others."""
        return self._json(rows.Node, "PATCH", f"/nodes/{node_id}", json=dict(changes))

    def lend_node(self, node_id: int, teams: list[str]) -> rows.Node:
        """Offers a node to these teams, and takes it back from all others."""
        return self._json(rows.Node, "PATCH", f"/nodes/{node_id}", json={"teams": teams})

    def lendings(self) -> list[rows.Lending]:
        """Nodes that are lent or offered, from and to the user's teams."""
        return self._list(rows.Lending, "/lendings")

    def answer_lending(self, lending_id: int, what: str) -> rows.Lending:
        """Agree to a lending, or decline it."""
        return self._json(rows.Lending, "POST", f"/lendings/{lending_id}/{what}", json={}, is_repeatable=False)

    def order_node(self, node_id: int, what: str) -> rows.Node:
        """Approve, drain, resume or revoke a node."""
        return self._json(rows.Node, "POST", f"/nodes/{node_id}/{what}", json={}, is_repeatable=False)

    def _json(self, kind: type[Row], method: str, path: str, **asked: Unpack[Asked]) -> Row:
        return _row(kind, self._request(method, path, **asked))

    def _list(self, kind: type[Row], path: str, *, method: str = "GET", **asked: Unpack[Asked]) -> list[Row]:
        answer = _parsed(self._request(method, path, **asked))
        if not isinstance(answer, list):
            raise Infrastructure(f"{self.account.server} answered {path} with something other than a list.")
        return cast(list[Row], answer)

    def _request(self, method: str, path: str, **asked: Unpack[Asked]) -> httpx2.Response:
        is_repeatable = asked.pop("is_repeatable", True)
        return self._send(
            lambda: self._http.request(method, path, json=asked.get("json"), params=asked.get("params")),
            is_repeatable=is_repeatable,
        )

    def _send(self, send: Callable[[], httpx2.Response], *, is_repeatable: bool) -> httpx2.Response:
        """Send, and again after a pause while the farm is away; raises for a refusal."""
        for wait_s in waits():
            try:
                response = send()
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
                last: Exception = problem
            except httpx2.TransportError as problem:
                if not is_repeatable:
                    raise Infrastructure(
                        f"{self.account.server} stopped responding ({problem}) and may have accepted the request: "
                        "check `onnxfarm status` before sending it again."
                    ) from problem
                last = problem
            else:
                if response.status_code not in AWAY or not is_repeatable or wait_s is None:
                    return accepted(response)
                last = httpx2.TransportError(f"status {response.status_code}")
            if wait_s is not None:
                self._sleep(wait_s)
        raise Infrastructure(f"{self.account.server} cannot be reached ({last}): is the farm running?") from last


class _Counted(io.FileIO):
    """A file whose reading is reported, for a progress bar."""

    def __init__(self, path: Path, progress: Callable[[int], None]) -> None:
        super().__init__(path)
        self._progress = progress

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self._progress(len(piece))
        return piece


def _open(path: Path, progress: Callable[[int], None] | None) -> BinaryIO:
    try:
        return path.open("rb") if progress is None else _Counted(path, progress)
    except OSError as problem:
        raise Usage(f"{path} cannot be read ({problem.strerror}): give the path of a file.") from problem


def _order(version_id: int, matrix: Mapping[str, object] | None) -> Json:
    return {"version": version_id} | ({} if matrix is None else {"matrix": matrix})


def _id(text: str) -> str:
    """A run's number as it stands in an address."""
    if not text.isdecimal():
        raise Usage(f"“{text}” is not a run: give its number, as `onnxfarm status` lists it.")
    return text


def _parsed(response: httpx2.Response) -> object:
    try:
        # what members and nodes wrote is printed on terminals
        return json.loads(without_controls(response.content))
    except ValueError as problem:
        raise Infrastructure(
            f"{response.request.url} did not answer in JSON: is this the address of a farm?"
        ) from problem


def _row(kind: type[Row], response: httpx2.Response) -> Row:
    answer = _parsed(response)
    if not isinstance(answer, dict):
        raise Infrastructure(f"{response.request.url} answered with something other than a {kind.__name__.lower()}.")
    return cast(Row, answer)
