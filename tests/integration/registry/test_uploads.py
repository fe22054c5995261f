"""Uploads through the API: what is kept, and what is refused in one sentence."""

import io
import socket
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.accounts.services import issue_token
from farm.registry.models import Blob, Model, Version
from farm.registry.selectors import open_stored_file
from farm.registry.states import FileRole, VersionState
from tests.conftest import ApiOf

UPLOADS = "/api/v1/uploads"


def part(path: Path, name: str | None = None) -> SimpleUploadedFile:
    return SimpleUploadedFile(name or path.name, path.read_bytes())


def zipped(files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> SimpleUploadedFile:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return SimpleUploadedFile("model.zip", memory.getvalue())


def left_behind(settings: Settings) -> list[Path]:
    """Drafts still in the store's incoming folder."""
    return [path for path in (settings.STORE_DIR / "incoming").glob("*")]


def refusal(response: object) -> tuple[int, str]:
    """Status and code of a refusal, after checking that it is one sentence."""
    body = response.json()  # type: ignore[attr-defined]
    assert set(body) <= {"detail", "code", "hint"}
    assert body["detail"].endswith(".")
    assert "Traceback" not in body["detail"]
    assert len(body["detail"]) < 400
    return response.status_code, body["code"]  # type: ignore[attr-defined]


def test_a_bare_model_becomes_a_pending_version_of_a_model_named_after_it(member_api: Client, models: Path):
    answer = member_api.post(UPLOADS, {"files": part(models / "cnn_dyn.onnx"), "note": "first"})
    assert answer.status_code == 202
    body = answer.json()
    assert (body["model"], body["number"], body["state"], body["note"]) == ("cnn_dyn", 1, "pending", "first")
    assert body["team"] == "vision"
    with open_stored_file(body["files"][0]["sha256"]) as stored:
        assert stored.read() == (models / "cnn_dyn.onnx").read_bytes()


def test_a_model_comes_with_its_external_data_and_reference_data(member_api: Client, models: Path) -> None:
    names = ["mlp_external.onnx", "mlp_external.onnx.data", "mlp_external.inputs.npz", "mlp_external.expected.npz"]
    answer = member_api.post(UPLOADS, {"files": [part(models / name) for name in names], "model": "mlp"})
    assert answer.status_code == 202
    roles = {f["name"]: f["role"] for f in answer.json()["files"]}
    assert roles == dict(zip(names, ["model", "data", "inputs", "expected"], strict=True))
    artifact = Version.objects.get().artifact
    assert [ref.name for ref in artifact.bundle.files] == names[:2]
    assert artifact.sha256 == artifact.bundle.digest


def test_a_zip_holds_the_same_bundle_as_its_files_sent_apart(member_api: Client, models: Path) -> None:
    names = ["mlp_external.onnx", "mlp_external.onnx.data"]
    files = {name: (models / name).read_bytes() for name in names}
    first = member_api.post(UPLOADS, {"files": zipped(files), "model": "mlp"})
    second = member_api.post(UPLOADS, {"files": [part(models / name) for name in names], "model": "mlp"})
    assert (first.status_code, second.json()["id"]) == (202, first.json()["id"])
    assert Version.objects.count() == 1


def test_a_zip_may_hold_reference_data_in_onnx_layout(member_api: Client, models: Path) -> None:
    model = (models / "relu_op13_ir7.onnx").read_bytes()
    folder = {"test_data_set_0/": b"", "test_data_set_0/input_0.pb": b"x", "test_data_set_0/output_0.pb": b"y"}
    answer = member_api.post(UPLOADS, {"files": zipped({"relu.onnx": model} | folder)})
    assert {f["name"]: f["role"] for f in answer.json()["files"]} == {
        "relu.onnx": "model",
        "test_data_set_0-input_0.pb": "inputs",
        "test_data_set_0-output_0.pb": "expected",
    }


def test_a_raw_body_is_an_upload_too(member_api: Client, models: Path) -> None:
    content = (models / "lstm.onnx").read_bytes()
    answer = member_api.put(f"{UPLOADS}?file=lstm.onnx&model=speech", content, content_type="application/octet-stream")
    assert (answer.status_code, answer.json()["model"]) == (202, "speech")


def test_the_field_of_a_form_says_what_its_file_is(member_api: Client, models: Path) -> None:
    files = {"files": part(models / "lstm.onnx"), "inputs": part(models / "lstm.inputs.npz", "some.npz")}
    answer = member_api.post(UPLOADS, files)
    assert [f["role"] for f in answer.json()["files"]] == ["model", "inputs"]


def test_the_same_content_is_stored_once_within_a_team_and_again_for_another(
    api_of: ApiOf, member: User, stranger: User, models: Path
) -> None:
    for user, name in ((member, "a"), (member, "b"), (stranger, "c")):
        answer = api_of(user).post(UPLOADS, {"files": part(models / "if_loop.onnx"), "model": name})
        assert answer.status_code == 202
    assert Blob.objects.count() == 2
    assert Version.objects.count() == 3


def test_a_new_upload_in_the_same_line_is_the_next_version(member_api: Client, models: Path) -> None:
    for name, number in (("relu_op13_ir7.onnx", 1), ("relu_op15_ir8.onnx", 2)):
        assert member_api.post(UPLOADS, {"files": part(models / name), "model": "relu"}).json()["number"] == number
    line = member_api.get("/api/v1/models").json()[0]
    versions = member_api.get(f"/api/v1/models/{line['id']}").json()["versions"]
    assert (line["version_count"], [v["number"] for v in versions]) == (2, [2, 1])


def test_a_file_without_its_data_is_the_version_that_has_them(member_api: Client, models: Path) -> None:
    model, inputs = (lambda: part(models / "lstm.onnx")), part(models / "lstm.inputs.npz", "some.npz")
    first = member_api.post(UPLOADS, {"files": model(), "inputs": inputs}).json()
    again = member_api.post(UPLOADS, {"files": model()}).json()
    assert (again["id"], [file["role"] for file in again["files"]]) == (first["id"], ["model", "inputs"])
    other = part(models / "if_loop.inputs.npz", "others.npz")
    assert member_api.post(UPLOADS, {"files": model(), "inputs": other}).json()["number"] == 2


def test_a_rejected_bundle_may_be_uploaded_again(member_api: Client, models: Path) -> None:
    first = member_api.post(UPLOADS, {"files": part(models / "lstm.onnx")}).json()
    Version.objects.update(state=VersionState.REJECTED, problem="It was refused.")
    second = member_api.post(UPLOADS, {"files": part(models / "lstm.onnx")})
    assert (second.status_code, second.json()["number"], second.json()["id"] != first["id"]) == (202, 2, True)


BAD = {
    "no file": ({}, 400, "no_file"),
    "no model": ({"files": SimpleUploadedFile("weights.bin", b"1")}, 400, "no_model"),
    "empty": ({"files": SimpleUploadedFile("a.onnx", b"")}, 400, "empty_file"),
    "two models": (
        {"files": [SimpleUploadedFile("a.onnx", b"1"), SimpleUploadedFile("b.onnx", b"2")]},
        400,
        "many_models",
    ),
    "same name": (
        {"files": [SimpleUploadedFile("a.onnx", b"1"), SimpleUploadedFile("A.ONNX", b"2")]},
        400,
        "same_name",
    ),
    "strange name": ({"files": SimpleUploadedFile("a b$.onnx", b"1")}, 400, "bad_name"),
    "only dots": ({"files": [SimpleUploadedFile("a.onnx", b"1"), SimpleUploadedFile("...", b"2")]}, 400, "bad_name"),
    "unclear npz": (
        {"files": [SimpleUploadedFile("a.onnx", b"1"), SimpleUploadedFile("things.npz", b"2")]},
        400,
        "unknown_file",
    ),
    "two inputs": (
        {"files": [SimpleUploadedFile(n, b"1") for n in ("a.onnx", "inputs.npz", "a.inputs.npz")]},
        400,
        "same_role",
    ),
    "zip with files": ({"files": [zipped({"a.onnx": b"1"}), SimpleUploadedFile("b.data", b"2")]}, 400, "zip_and_files"),
    "not a zip": ({"files": SimpleUploadedFile("model.zip", b"PK but not really" * 10)}, 400, "bad_zip"),
    "traversal in a zip": ({"files": zipped({"../../etc/a.onnx": b"1"})}, 400, "bad_name"),
    "absolute path in a zip": ({"files": zipped({"/tmp/a.onnx": b"1"})}, 400, "bad_name"),
    "folder in a zip": ({"files": zipped({"model/a.onnx": b"1"})}, 400, "bad_name"),
    "backslash in a zip": ({"files": zipped({"..\\a.onnx": b"1"})}, 400, "bad_name"),
    "too many entries": ({"files": zipped({f"{n}.data": b"1" for n in range(65)})}, 400, "too_many_files"),
    "zip in another method": ({"files": zipped({"a.onnx": b"1" * 99}, method=zipfile.ZIP_LZMA)}, 400, "bad_zip"),
    "empty zip": ({"files": zipped({})}, 400, "no_file"),
    "long note": ({"files": SimpleUploadedFile("a.onnx", b"1"), "note": "n" * 501}, 400, "bad_note"),
    "bad model name": ({"files": SimpleUploadedFile("a.onnx", b"1"), "model": "m\x00"}, 400, "bad_name"),
    "unknown team": ({"files": SimpleUploadedFile("a.onnx", b"1"), "team": "nobody"}, 404, "not_found"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_upload_is_refused_in_one_sentence_and_leaves_nothing(what: str, member_api: Client, settings: Settings):
    form, status, code = BAD[what]
    for value in form.values():  # type: ignore[attr-defined]
        for file in value if isinstance(value, list) else [value]:
            if isinstance(file, SimpleUploadedFile):
                file.seek(0)
    assert refusal(member_api.post(UPLOADS, form)) == (status, code)
    assert not left_behind(settings)
    assert not Blob.objects.exists()
    assert not Model.objects.exists()


def test_a_link_in_a_zip_is_refused(member_api: Client) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        link = zipfile.ZipInfo("a.onnx")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("m.zip", memory.getvalue())})
    assert refusal(answer) == (400, "link")


def test_a_zip_bomb_is_refused_by_what_it_declares(member_api: Client, team: Team, settings: Settings) -> None:
    Team.objects.update(quota_bytes=10_000_000)
    bomb = zipped({"a.onnx": b"\x00" * 20_000_000})
    assert bomb.size < 100_000
    assert refusal(member_api.post(UPLOADS, {"files": bomb})) == (413, "quota")
    assert not left_behind(settings)


def test_a_zip_that_lies_about_its_sizes_is_refused(member_api: Client, settings: Settings) -> None:
    content = zipped({"a.onnx": b"\x00" * 100_000}).read()
    size = (100_000).to_bytes(4, "little")
    lying = SimpleUploadedFile("m.zip", content.replace(size, (10).to_bytes(4, "little")))
    assert refusal(member_api.post(UPLOADS, {"files": lying})) == (400, "bad_zip")
    assert not left_behind(settings)


def test_a_zip_with_an_endless_directory_is_refused_before_it_is_read(member_api: Client) -> None:
    content = bytearray(zipped({"a.onnx": b"1"}).read())
    content[-10:-6] = (1 << 30).to_bytes(4, "little")
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("m.zip", bytes(content))})
    assert refusal(answer) == (400, "bad_zip")


def test_a_truncated_zip_is_refused(member_api: Client, models: Path) -> None:
    content = zipped({"a.onnx": (models / "lstm.onnx").read_bytes()}).read()
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("m.zip", content[: len(content) // 2])})
    assert refusal(answer) == (400, "bad_zip")


def test_an_upload_over_the_quota_is_refused_with_what_is_left(
    member_api: Client, team: Team, models: Path, settings: Settings
) -> None:
    Team.objects.update(quota_bytes=1000)
    answer = member_api.post(UPLOADS, {"files": part(models / "lstm.onnx")})
    assert refusal(answer) == (413, "quota")
    assert "1,000" in answer.json()["detail"]
    assert not left_behind(settings)


def test_an_upload_over_the_limit_is_refused_before_it_is_read(member_api: Client, settings: Settings) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("a.onnx", b"1" * 2000)})
    assert refusal(answer) == (413, "too_large")
    raw = member_api.put(f"{UPLOADS}?file=a.onnx", b"1" * 2000, content_type="application/octet-stream")
    assert refusal(raw) == (413, "too_large")


def test_a_full_disk_is_said_in_one_sentence(member_api: Client, settings: Settings) -> None:
    settings.DISK_RESERVE_BYTES = 1 << 62
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("a.onnx", b"1")})
    assert refusal(answer) == (507, "no_space")
    assert not left_behind(settings)


def test_a_disk_that_fills_up_while_writing_is_said_in_one_sentence(
    member_api: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # /dev/full answers every write with ENOSPC
    import os
    import tempfile

    def on_a_full_disk(**_: object) -> tuple[int, str]:
        path = settings.STORE_DIR / "incoming" / "draft"
        path.touch()
        return os.open("/dev/full", os.O_RDWR), str(path)

    monkeypatch.setattr(tempfile, "mkstemp", on_a_full_disk)
    answer = member_api.post(UPLOADS, {"files": SimpleUploadedFile("a.onnx", b"1")})
    assert refusal(answer) == (507, "no_space")
    assert not left_behind(settings)


def test_a_body_that_is_no_form_is_refused(member_api: Client) -> None:
    answer = member_api.post(UPLOADS, b"{}", content_type="application/json")
    assert refusal(answer) == (400, "bad_form")


def test_a_raw_body_without_a_name_is_refused(member_api: Client) -> None:
    answer = member_api.put(UPLOADS, b"x", content_type="application/octet-stream")
    assert refusal(answer) == (422, "invalid")


def test_a_viewer_may_not_upload(api_of: ApiOf, viewer: User, models: Path) -> None:
    assert refusal(api_of(viewer).post(UPLOADS, {"files": part(models / "lstm.onnx")})) == (403, "not_allowed")
    named = {"files": part(models / "lstm.onnx"), "team": "vision"}
    assert refusal(api_of(viewer).post(UPLOADS, named)) == (403, "not_allowed")


def test_a_stranger_without_a_token_does_not_make_the_farm_write(
    client: Client, db: None, models: Path, settings: Settings
) -> None:
    assert refusal(client.post(UPLOADS, {"files": part(models / "lstm.onnx")})) == (401, "not_signed_in")
    assert not settings.STORE_DIR.exists()


def test_a_stranger_cannot_see_a_private_model(api_of: ApiOf, member: User, viewer: User, stranger: User, models: Path):
    version = api_of(member).post(UPLOADS, {"files": part(models / "lstm.onnx")}).json()
    pages = [f"/api/v1/models/{version['model_id']}", f"/api/v1/versions/{version['id']}"]
    for page in pages:
        assert api_of(viewer).get(page).status_code == 200
        assert refusal(api_of(stranger).get(page)) == (404, "not_found")
    assert api_of(stranger).get("/api/v1/models").json() == []


def test_files_keep_their_roles_in_the_rows(member_api: Client, models: Path) -> None:
    member_api.post(UPLOADS, {"files": [part(models / "lstm.onnx"), part(models / "lstm.inputs.npz")]})
    artifact = Version.objects.get().artifact
    assert artifact.blob_of(FileRole.INPUTS).bytes == (models / "lstm.inputs.npz").stat().st_size
    assert artifact.blob_of(FileRole.EXPECTED) is None


@pytest.mark.parametrize("body", ["form", "raw"])
def test_an_upload_that_is_cut_in_the_middle_of_a_file_is_no_upload(
    live_server: object, member: User, models: Path, settings: Settings, body: str
) -> None:
    _, secret = issue_token(member)
    whole = (models / "relu_op13_ir7.onnx").read_bytes()
    head = {
        "form": b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.onnx"\r\n\r\n'
        + whole
        + b'\r\n--x\r\nContent-Disposition: form-data; name="files"; filename="inputs.npz"\r\n\r\nPK half of',
        "raw": whole,
    }[body]
    line = {"form": f"POST {UPLOADS}", "raw": f"PUT {UPLOADS}?file=a.onnx"}[body]
    kind = {"form": "multipart/form-data; boundary=x", "raw": "application/octet-stream"}[body]
    host = str(live_server).removeprefix("http://")
    with socket.create_connection(host.split(":"), timeout=10) as connection:
        words = [f"{line} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {secret}", f"Content-Type: {kind}"]
        connection.sendall("\r\n".join([*words, "Content-Length: 1000000", "", ""]).encode() + head)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 400 " in answer.splitlines()[0]
    assert b'"cut_short"' in answer
    assert not Version.objects.exists()
    assert not left_behind(settings)
