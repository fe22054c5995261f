"""Uploads in pieces: they go on where they were cut, and everything that is not such a piece is refused."""

import base64
import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.registry import partial_files, services
from farm.registry.models import PartialUpload, Version
from farm.registry.selectors import open_stored_file
from farm.registry.services.resumption import MAX_OPEN
from tests.conftest import ApiOf
from tests.responses import Response

FILES = "/api/v1/uploads/files"
COMPLETE = "/api/v1/uploads/complete"
PIECE = "application/offset+octet-stream"
TUS = {"Tus-Resumable": "1.0.0"}


class Uploader:
    """Somebody who sends pieces."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def begin(self, length: int, name: str = "model.onnx", **said: str) -> str:
        answer = self.try_to_begin(str(length), name, **said)
        assert answer.status_code == 201, answer.content
        assert answer["Tus-Resumable"] == "1.0.0"
        assert answer["Upload-Expires"].endswith("GMT")
        return str(answer["Location"])

    def try_to_begin(self, length: str, name: str = "model.onnx", **said: str) -> Response:
        pairs = {"filename": name, **said}
        metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs.items())
        return self.client.post(FILES, headers={**TUS, "Upload-Length": length, "Upload-Metadata": metadata})

    def offset(self, address: str) -> int:
        answer = self.client.head(address, headers=TUS)
        assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
        return int(answer["Upload-Offset"])

    def send(self, address: str, piece: bytes, *, at: object, checksum: str = "", kind: str = PIECE) -> Response:
        headers = {**TUS, "Upload-Offset": str(at)} | ({"Upload-Checksum": checksum} if checksum else {})
        return self.client.patch(address, piece, content_type=kind, headers=headers)

    def complete(self, *addresses: str, **more: object) -> Response:
        files = [{"upload": address.rpartition("/")[2]} for address in addresses]
        return self.client.post(COMPLETE, {"files": files, **more}, content_type="application/json")


def checksum_of(piece: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm} {base64.b64encode(hashlib.new(algorithm, piece).digest()).decode()}"


def code_of(answer: Response) -> tuple[int, str]:
    assert answer.json()["detail"].endswith(".")
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def uploader(member_api: Client) -> Uploader:
    return Uploader(member_api)


@pytest.fixture
def content(models: Path) -> bytes:
    return (models / "cnn_dyn.onnx").read_bytes()


def test_a_model_comes_in_pieces_and_is_the_same_as_when_it_comes_whole(uploader: Uploader, content: bytes) -> None:
    address = uploader.begin(len(content), "cnn.onnx")
    at = 0
    for size in (1, 999, len(content)):
        piece = content[at : at + size]
        answer = uploader.send(address, piece, at=at, checksum=checksum_of(piece))
        at += len(piece)
        assert (answer.status_code, answer["Upload-Offset"]) == (204, str(at))
        assert uploader.offset(address) == at
    completed = uploader.complete(address, note="in pieces")
    assert completed.status_code == 202, completed.content
    body = completed.json()
    assert (body["model"], body["note"], body["state"]) == ("cnn", "in pieces", "pending")
    with open_stored_file(hashlib.sha256(content).hexdigest()) as stored:
        assert stored.read() == content
    assert list(partial_files.partial_dir().iterdir()) == []


def test_completing_again_answers_the_same_version(uploader: Uploader, content: bytes) -> None:
    address = uploader.begin(len(content))
    uploader.send(address, content, at=0)
    versions = [uploader.complete(address).json()["id"] for _ in range(2)]
    assert versions[0] == versions[1]
    assert Version.objects.count() == 1
    assert code_of(uploader.complete(address, model="another")) == (409, "used")


def test_several_files_with_roles_make_one_version(uploader: Uploader, models: Path) -> None:
    names = ["mlp_external.onnx", "mlp_external.onnx.data", "mlp_external.inputs.npz"]
    files = []
    for name, role in zip(names, (None, None, "inputs"), strict=True):
        content = (models / name).read_bytes()
        address = uploader.begin(len(content), name)
        uploader.send(address, content, at=0)
        files.append({"upload": address.rpartition("/")[2], "role": role})
    answer = uploader.client.post(COMPLETE, {"files": files}, content_type="application/json")
    assert {file["name"]: file["role"] for file in answer.json()["files"]} == dict(
        zip(names, ("model", "data", "inputs"), strict=True)
    )


def test_a_piece_at_another_offset_is_refused_and_changes_nothing(uploader: Uploader) -> None:
    address = uploader.begin(10)
    uploader.send(address, b"abc", at=0)
    for offset in (0, 2, 4, 10):
        assert code_of(uploader.send(address, b"x", at=offset)) == (409, "offset")
    assert uploader.offset(address) == 3


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_piece_with_another_checksum_is_not_kept(uploader: Uploader, algorithm: str) -> None:
    address = uploader.begin(6)
    uploader.send(address, b"abc", at=0)
    broken = uploader.send(address, b"dex", at=3, checksum=checksum_of(b"def", algorithm))
    assert code_of(broken) == (460, "checksum")
    assert uploader.offset(address) == 3
    assert uploader.send(address, b"def", at=3, checksum=checksum_of(b"def", algorithm)).status_code == 204


@pytest.mark.parametrize("checksum", ["md5 xyz", "sha256", "sha256 !", "sha256 YWJj", "x" * 300])
def test_a_checksum_that_is_none_is_refused(uploader: Uploader, checksum: str) -> None:
    address = uploader.begin(3)
    assert code_of(uploader.send(address, b"abc", at=0, checksum=checksum)) == (400, "bad_checksum")
    assert uploader.offset(address) == 0


def test_a_piece_that_goes_beyond_the_end_is_refused(uploader: Uploader) -> None:
    address = uploader.begin(3)
    assert code_of(uploader.send(address, b"abcd", at=0)) == (413, "too_large")
    assert uploader.offset(address) == 0


@pytest.mark.parametrize("offset", ["", "-1", "x", "1e3", "٣", "9" * 30])
def test_an_offset_that_is_no_number_is_refused(uploader: Uploader, offset: str) -> None:
    assert code_of(uploader.send(uploader.begin(3), b"abc", at=offset)) == (400, "bad_header")


@pytest.mark.parametrize("length", ["", "-1", "x", "1.5", "9" * 30])
def test_a_length_that_is_no_number_is_refused(uploader: Uploader, length: str) -> None:
    assert code_of(uploader.try_to_begin(length)) == (400, "bad_header")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00b"])
def test_a_name_that_cannot_be_kept_is_refused(uploader: Uploader, name: str) -> None:
    assert code_of(uploader.try_to_begin("3", name)) == (400, "bad_name")


def test_a_name_may_have_as_many_characters_as_are_kept(uploader: Uploader) -> None:
    uploader.begin(3, "x" * 200)
    assert PartialUpload.objects.get().name == "x" * 200


def test_metadata_that_is_no_base64_is_refused(uploader: Uploader) -> None:
    headers = {**TUS, "Upload-Length": "3", "Upload-Metadata": "filename ***"}
    assert code_of(uploader.client.post(FILES, headers=headers)) == (400, "bad_header")


def test_an_expired_upload_is_gone(uploader: Uploader) -> None:
    address = uploader.begin(3)
    PartialUpload.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert uploader.client.head(address, headers=TUS).status_code == 410
    assert code_of(uploader.send(address, b"abc", at=0)) == (410, "expired")
    assert code_of(uploader.complete(address)) == (410, "expired")
    assert services.clear_expired() == 1
    assert uploader.client.head(address, headers=TUS).status_code == 404
    assert list(partial_files.partial_dir().iterdir()) == []


def test_another_person_s_upload_is_not_there_not_even_for_the_team(
    uploader: Uploader, api_of: ApiOf, owner: User, stranger: User
) -> None:
    address = uploader.begin(3)
    for user in (owner, stranger):
        other = Uploader(api_of(user))
        assert other.client.head(address, headers=TUS).status_code == 404
        assert code_of(other.send(address, b"abc", at=0)) == (404, "not_found")
        assert code_of(other.complete(address)) == (404, "not_found")
        assert other.client.delete(address, headers=TUS).status_code == 404
    assert uploader.offset(address) == 0


def test_an_upload_over_the_limit_or_the_quota_is_refused_before_it_begins(
    uploader: Uploader, team: Team, settings: Settings
) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    assert code_of(uploader.try_to_begin("101")) == (413, "too_large")
    Team.objects.filter(pk=team.pk).update(quota_bytes=60)
    assert code_of(uploader.try_to_begin("61")) == (413, "quota")
    uploader.begin(40)
    # what another upload will take counts already
    assert code_of(uploader.try_to_begin("21")) == (413, "quota")
    uploader.begin(20)


def test_nobody_may_have_more_than_so_many_open_uploads(uploader: Uploader) -> None:
    for _ in range(MAX_OPEN):
        uploader.begin(1)
    assert code_of(uploader.try_to_begin("1")) == (413, "too_many_uploads")


def test_a_viewer_begins_nothing(api_of: ApiOf, viewer: User) -> None:
    assert Uploader(api_of(viewer)).try_to_begin("3").status_code == 403


def test_an_upload_that_is_not_whole_makes_no_version(uploader: Uploader) -> None:
    address = uploader.begin(3)
    uploader.send(address, b"ab", at=0)
    assert code_of(uploader.complete(address)) == (409, "not_whole")
    assert uploader.send(address, b"c", at=2).status_code == 204


def test_a_refused_bundle_can_be_completed_otherwise(uploader: Uploader) -> None:
    address = uploader.begin(3, "model.bin")
    uploader.send(address, b"abc", at=0)
    assert code_of(uploader.complete(address)) == (400, "no_model")
    model = uploader.begin(2, "model.onnx")
    uploader.send(model, b"xy", at=0)
    assert uploader.complete(model, address).status_code == 202


def test_a_file_that_differs_from_what_its_sender_has_makes_no_version(uploader: Uploader) -> None:
    address = uploader.begin(3, sha256=hashlib.sha256(b"abd").hexdigest())
    uploader.send(address, b"abc", at=0)
    assert code_of(uploader.complete(address)) == (422, "checksum")
    assert Version.objects.count() == 0


def test_a_request_that_was_taken_over_writes_no_more(uploader: Uploader) -> None:
    """A cut connection that the farm still reads cannot spoil what came after it."""
    key = uploader.begin(6).rpartition("/")[2]
    late = partial_files.PieceWriter(key, offset=0)
    late.write([b"ab"])
    partial_files.PieceWriter(key, offset=0).write([b"abc"])
    from farm.base.refusals import Conflict

    with pytest.raises(Conflict, match="taken this upload over"):
        late.write([b"XX"])
    late.undo()
    assert partial_files.partial_path(key).read_bytes() == b"abc"


def test_a_body_that_breaks_off_is_kept_without_a_checksum_and_forgotten_with_one(uploader: Uploader) -> None:
    def broken() -> object:
        yield b"abc"
        raise OSError("the connection was cut")

    for checksum, kept in ((None, 3), (services.resumption.Checksum("sha1", b"x" * 20), 0)):
        upload = PartialUpload.objects.get(key=uploader.begin(9).rpartition("/")[2])
        try:
            services.append_piece(upload=upload, offset=0, chunks=broken(), declared=9, checksum=checksum)
        except OSError:
            assert checksum is not None
        upload.refresh_from_db()
        assert upload.offset == kept
        assert partial_files.partial_path(upload.key).stat().st_size == kept


def test_deleting_an_upload_removes_its_bytes(uploader: Uploader) -> None:
    address = uploader.begin(3)
    assert uploader.client.delete(address, headers=TUS).status_code == 204
    assert PartialUpload.objects.count() == 0
    assert list(partial_files.partial_dir().iterdir()) == []


@pytest.mark.parametrize("version", [None, "", "0.2.2"])
def test_another_version_of_tus_is_told_so(uploader: Uploader, version: str | None) -> None:
    headers = {"Upload-Length": "3"} | ({} if version is None else {"Tus-Resumable": version})
    refused = uploader.client.post(FILES, headers=headers)
    assert code_of(refused) == (412, "tus_version")
    # as tus 1.0 asks of a server
    assert refused.headers["Tus-Version"] == "1.0.0"


def test_a_piece_of_another_type_is_refused(uploader: Uploader) -> None:
    address = uploader.begin(3)
    assert code_of(uploader.send(address, b"abc", at=0, kind="text/plain")) == (415, "content_type")


def test_what_is_offered_stands_in_the_headers(client: Client) -> None:
    answer = client.options(FILES)
    assert (answer.status_code, answer["Tus-Version"]) == (204, "1.0.0")
    assert set(answer["Tus-Extension"].split(",")) == {"creation", "checksum", "expiration", "termination"}
    assert answer["Tus-Checksum-Algorithm"] == "sha1,sha256"
