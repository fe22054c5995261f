"""The pages of models, their versions and the upload form."""

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from farm.accounts.models import Team, User
from farm.alerts.models import Watch
from farm.alerts.states import RoundOutcome
from farm.registry.models import Blob, Version
from farm.registry.states import FileRole, VersionState
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.runs.models import Run
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, words_of

pytestmark = pytest.mark.django_db


def test_a_models_page_shows_its_facts_findings_and_runs(signed_in: Client, run: Run, version: Version) -> None:
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    for part in (
        "ai.onnx 17",
        "1.05 M in 4.21 MB",
        "dynamic (batch)",
        "Nodes without a name",
        "[batch, sequence, 256]",
        f"run {run.pk}",
        f"Loads on ONNX Runtime 1.15.0 and newer (2 of {len(ONNXRUNTIME)} releases were measured).",
        "1.30.0 – 1.31.0",
        "measured",
        "derived",
    ):
        assert part in words, part


def test_a_versions_program_stands_beside_its_model(signed_in: Client, version: Version, viewer: User) -> None:
    assert "Program for PyTorch" not in assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    blob = Blob.objects.create(team=version.model.team, sha256="c" * 64, bytes=2_000_000)
    version.artifact.files.create(blob=blob, name="encoder.pt2", role=FileRole.MODEL)
    version.inspection = {**version.inspection, "source": {"name": "encoder.pt2", "saved_by": "2.13.0"}}
    version.save()
    page = signed_in.get(f"/models/{version.model_id}/")
    words, address = assert_is_page(page), f"/api/v1/versions/{version.pk}/files/encoder.pt2"
    for part in ("encoder.pt2", "cccccccccccc", "2.00 MB, saved by PyTorch 2.13.0"):
        assert part in words, part
    assert f'href="{address}"' in page.content.decode()
    # the model is its members'
    watched = client_of(viewer)
    assert address not in watched.get(f"/models/{version.model_id}/").content.decode()
    assert watched.get(address).status_code == 403
    missing = signed_in.get(address.replace("encoder.pt2", "other.pt2"))
    assert missing.status_code == 404
    assert "has no file 'other.pt2': it has encoder.onnx, encoder.pt2." in missing.json()["detail"]


def test_a_rejected_version_says_why(signed_in: Client, team: Team, owner: User) -> None:
    version = rows.make_version(team, owner, state=VersionState.REJECTED)
    version.problem = "encoder.onnx is empty: export the model again and upload the new file."
    version.save()
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    assert "encoder.onnx is empty" in words
    assert "encoder was rejected" in words
    assert "Share this page" not in words
    assert "Badge" not in words
    for what in ("New run", "New watch", "onnxfarm submit", "onnxfarm watch add"):
        assert what not in words, what


def test_a_version_that_is_being_inspected_asks_for_news(signed_in: Client, team: Team, owner: User) -> None:
    version = rows.make_version(team, owner, state=VersionState.PENDING)
    assert 'hx-trigger="every 1s"' in signed_in.get(f"/models/{version.model_id}/").content.decode()
    part = signed_in.get(f"/models/{version.model_id}/", headers={"hx-target": "version", "hx-request": "true"})
    assert "<html" not in part.content.decode()


def test_models_are_found_by_a_part_of_their_name(signed_in: Client, team: Team, owner: User) -> None:
    for name in ("resnet", "encoder"):
        rows.make_version(team, owner, name=name)
    words = assert_is_page(signed_in.get("/models/?q=enc"))
    assert "encoder" in words
    assert "resnet" not in words
    assert "0 models" in assert_is_page(signed_in.get("/models/?q=nothing"))


def test_an_upload_leads_to_the_version_it_made(signed_in: Client, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = signed_in.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content), "note": "first"})
    version = Version.objects.get()
    assert response.status_code == 302
    assert response["Location"] == f"/models/{version.model_id}/?version=1"
    assert version.note == "first"
    assert "first" in assert_is_page(signed_in.get(response["Location"]))


def test_an_upload_by_script_is_sent_on_by_header(signed_in: Client, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    files = {"files": SimpleUploadedFile("relu.onnx", content)}
    response = signed_in.post("/models/upload/", files, headers={"hx-request": "true"})
    assert response.status_code == 200
    assert response["HX-Redirect"].startswith("/models/")


def test_a_refused_upload_keeps_what_was_typed_and_says_what_is_wrong(signed_in: Client) -> None:
    typed = {"files": SimpleUploadedFile("notes.txt", b"hello"), "model": "my model", "note": "a note"}
    response = signed_in.post("/models/upload/", typed)
    text = response.content.decode()
    assert response.status_code in (400, 422)
    assert 'value="my model"' in text
    assert 'value="a note"' in text
    assert 'id="files-error"' in text
    assert "notes.txt" in words_of(response)
    assert not Version.objects.exists()


@pytest.mark.parametrize(
    ("typed", "field"), [({"model": "x" * 101}, "model-error"), ({"note": "x" * 501}, "note-error")]
)
def test_each_field_has_its_own_complaint(signed_in: Client, models: Path, typed: dict[str, str], field: str) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = signed_in.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content), **typed})
    assert response.status_code == 400
    assert f'id="{field}"' in response.content.decode()


def test_an_upload_without_a_file_is_asked_for_one(signed_in: Client) -> None:
    assert "No file was chosen" in words_of(signed_in.post("/models/upload/", {"model": "x"}))


def test_an_upload_without_the_forms_token_is_refused(owner: User, models: Path) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = client.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content)})
    assert response.status_code == 403
    assert not Version.objects.exists()


def test_a_viewer_is_told_that_they_may_not_upload(viewer: User, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = client_of(viewer).post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content)})
    assert response.status_code == 403
    assert "no team in which you may upload" in words_of(response)


def test_a_model_that_is_watched_without_a_result_is_not_called_unwatched(
    signed_in: Client, version: Version, watch: Watch
) -> None:
    """A watch whose rounds were all refused has no figures: the list said "not watched"."""
    watching.bare_round(watch, version, outcome=RoundOutcome.INFRA, sentence="1.22.0 was refused.")
    words = words_of(signed_in.get("/models/"))
    assert "no result yet" in words
    assert "not watched" not in words
    assert f'/watches/{watch.pk}/"' in signed_in.get("/models/").content.decode()
    watch.delete()
    assert "not watched" in words_of(signed_in.get("/models/"))
