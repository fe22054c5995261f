"""Sending a large file over a line that breaks: each trouble costs a piece, never the upload."""

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from farm.contract.api.registry import VersionOut
from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote import resumable
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client
from tests.answers import plain

PIECE = 1000


class Twin:
    """The farm's side in memory. `trouble` may break a request before or after it was taken."""

    def __init__(self) -> None:
        self.uploads: dict[str, tuple[int, bytes]] = {}
        self.completed: list[dict[str, object]] = []
        self.trouble: Callable[[httpx2.Request], httpx2.Response | None] = lambda request: None
        self.begun = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        broken = self.trouble(request)
        return self.answer(request) if broken is None else broken

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1/uploads/")
        if path == "complete":
            return httpx2.Response(202, json=plain(VersionOut, id=1, state="pending"))
        if request.method == "POST":
            self.begun += 1
            self.uploads[f"k{self.begun}"] = (int(request.headers["Upload-Length"]), b"")
            return httpx2.Response(201, headers={"Location": f"/api/v1/uploads/files/k{self.begun}"})
        key = path.removeprefix("files/")
        if key not in self.uploads:
            return httpx2.Response(404, json={"detail": "There is no such upload.", "code": "not_found"})
        length, content = self.uploads[key]
        if request.method == "PATCH":
            if int(request.headers["Upload-Offset"]) != len(content):
                return httpx2.Response(409, json={"detail": "Another offset.", "code": "offset"})
            digest = base64.b64encode(hashlib.sha256(request.content).digest()).decode()
            if request.headers["Upload-Checksum"] != f"sha256 {digest}":
                return httpx2.Response(460, json={"detail": "Another checksum.", "code": "checksum"})
            content += request.content
            self.uploads[key] = (length, content)
        return httpx2.Response(200, headers={"Upload-Offset": str(len(content)), "Upload-Length": str(length)})


@pytest.fixture
def twin() -> Twin:
    return Twin()


@pytest.fixture
def big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of ten pieces and a half; what is remembered lies beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "big.onnx"
    path.write_bytes(bytes(number % 251 for number in range(10 * PIECE + PIECE // 2)))
    return path


def client_of(twin: Twin, waits: list[float] | None = None) -> Client:
    pauses = [] if waits is None else waits
    return Client(
        Account("https://farm.test", "ofk_x"),
        transport=httpx2.MockTransport(twin),
        sleep=pauses.append,
        piece_bytes=PIECE,
    )


def patches_of(every: int, problem: Callable[[Twin, httpx2.Request], httpx2.Response]) -> Callable[..., object]:
    """Trouble with each so-manieth piece."""
    count = 0

    def trouble(twin: Twin, request: httpx2.Request) -> httpx2.Response | None:
        nonlocal count
        count += request.method == "PATCH"
        return problem(twin, request) if request.method == "PATCH" and count % every == 0 else None

    return trouble


def cut_before(twin: Twin, request: httpx2.Request) -> httpx2.Response:
    raise httpx2.WriteError("cut")


def cut_after(twin: Twin, request: httpx2.Request) -> httpx2.Response:
    """The piece arrives, and its answer does not."""
    twin.answer(request)
    raise httpx2.ReadError("cut")


def spoilt(twin: Twin, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(460, json={"detail": "Another checksum.", "code": "checksum"})


def away(twin: Twin, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(503)


@pytest.mark.parametrize("problem", [cut_before, cut_after, spoilt, away])
def test_a_broken_line_costs_a_piece_and_the_file_arrives_whole(
    twin: Twin, big: Path, problem: Callable[[Twin, httpx2.Request], httpx2.Response]
) -> None:
    trouble = patches_of(3, problem)
    twin.trouble = lambda request: trouble(twin, request)  # type: ignore[assignment,return-value]
    shown: list[int] = []
    with client_of(twin) as client:
        assert client.upload([big], progress=shown.append).id == 1
    assert twin.uploads["k1"][1] == big.read_bytes()
    assert twin.begun == 1
    assert sum(shown) == big.stat().st_size


def test_the_command_given_again_goes_on_where_it_was_stopped(twin: Twin, big: Path) -> None:
    def gone(request: httpx2.Request) -> httpx2.Response | None:
        if len(twin.uploads.get("k1", (0, b""))[1]) >= 4 * PIECE:
            raise KeyboardInterrupt
        return None

    twin.trouble = gone
    with client_of(twin) as client, pytest.raises(KeyboardInterrupt):
        client.upload([big])
    twin.trouble = lambda request: None
    shown: list[int] = []
    with client_of(twin) as client:
        client.upload([big], progress=shown.append)
    assert twin.begun == 1
    assert shown[0] == 4 * PIECE
    assert twin.uploads["k1"][1] == big.read_bytes()


def test_a_changed_file_and_a_forgotten_upload_begin_anew(twin: Twin, big: Path) -> None:
    with client_of(twin) as client:
        client.upload([big])
        # it became a version: the same file again is another upload
        client.upload([big])
        assert twin.begun == 2
        big.write_bytes(b"x" * 5 * PIECE)
        client.upload([big])
    assert twin.uploads["k3"][1] == big.read_bytes()


def test_a_farm_that_takes_nothing_is_told_after_some_tries(twin: Twin, big: Path) -> None:
    twin.trouble = lambda request: away(twin, request) if request.method == "PATCH" else None
    with client_of(twin) as client, pytest.raises(Infrastructure, match=r"does not take .*big.onnx beyond 0 bytes"):
        client.upload([big])


def test_a_farm_that_is_away_is_told(twin: Twin, big: Path) -> None:
    twin.trouble = lambda request: away(twin, request)
    with client_of(twin) as client, pytest.raises(Infrastructure, match="cannot be reached"):
        client.upload([big])


def test_a_refusal_is_said_in_the_farm_s_words(twin: Twin, big: Path) -> None:
    twin.trouble = lambda request: httpx2.Response(413, json={"detail": "Over the quota.", "code": "quota"})
    with client_of(twin) as client, pytest.raises(Usage, match="Over the quota"):
        client.upload([big])


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', "\x00"])
def test_a_spoilt_memory_is_no_trouble(twin: Twin, big: Path, content: str) -> None:
    path = resumable.locate_uploads_file()
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with client_of(twin) as client:
        assert client.upload([big]).id == 1


def test_a_file_that_becomes_shorter_is_told(twin: Twin, big: Path) -> None:
    def shrink(request: httpx2.Request) -> httpx2.Response | None:
        if request.method == "PATCH":
            big.write_bytes(b"x" * PIECE)
        return None

    twin.trouble = shrink
    with client_of(twin) as client, pytest.raises(Usage, match="became shorter"):
        client.upload([big])
