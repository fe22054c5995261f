"""Models and versions are deleted and give their room back; what runs have measured stays for them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, transaction
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import AuditEvent, User
from farm.contract.cells import Recipe, Workload
from farm.registry import services
from farm.registry.models import Artifact, Blob, Model, Preparation, Variant, Version
from farm.registry.services import free_quota_bytes, removal
from farm.runs.models import Run
from tests.conftest import ApiOf

# files go with the commit
pytestmark = pytest.mark.django_db(transaction=True)


def sent(client: Client, path: Path, model: str) -> int:
    answer = client.post("/api/v1/uploads", {"files": SimpleUploadedFile(path.name, path.read_bytes()), "model": model})
    return int(answer.json()["id"])


def stored(settings: Settings) -> list[Path]:
    return [path for path in settings.STORE_DIR.rglob("*") if path.is_file()]


def test_the_last_version_takes_its_files_and_its_model_with_it(member_api: Client, models: Path, settings: Settings):
    number = sent(member_api, models / "lstm.onnx", "speech")
    answer = member_api.delete(f"/api/v1/versions/{number}")
    assert answer.json() == {"freed_bytes": (models / "lstm.onnx").stat().st_size, "deleted": 1, "hidden": 0}
    assert not stored(settings)
    for rows in (Version, Model, Artifact, Blob):
        assert not rows.objects.exists()
    assert member_api.delete(f"/api/v1/versions/{number}").status_code == 404


def test_files_that_others_use_stay(member_api: Client, models: Path, settings: Settings) -> None:
    first, second = sent(member_api, models / "lstm.onnx", "a"), sent(member_api, models / "lstm.onnx", "b")
    assert member_api.delete(f"/api/v1/versions/{first}").json()["freed_bytes"] == 0
    assert len(stored(settings)) == 1
    assert member_api.delete(f"/api/v1/versions/{second}").json()["freed_bytes"] > 0
    assert not stored(settings)


@pytest.mark.slow
def test_what_was_made_of_a_version_goes_with_it(
    transactional_db: None, member_api: Client, models: Path, settings: Settings
) -> None:
    version = Version.objects.get(pk=sent(member_api, models / "relu_op13_ir7.onnx", "relu"))
    before = free_quota_bytes(version.model.team)
    services.prepare_inputs(services.ensure_preparation(artifact=version.artifact, workload=Workload()).pk)
    services.make_variant(services.ensure_variant(artifact=version.artifact, recipe=Recipe(opset=17)).pk)
    assert free_quota_bytes(version.model.team) < before
    assert member_api.delete(f"/api/v1/versions/{version.pk}").status_code == 200
    assert not stored(settings)
    for rows in (Artifact, Blob, Preparation, Variant):
        assert not rows.objects.exists()


def test_a_version_that_was_measured_is_hidden_with_its_model_and_can_be_taken_back(
    member_api: Client, models: Path, settings: Settings
) -> None:
    version = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    run = Run.objects.create(team=version.model.team, version=version, matrix={})
    answer = member_api.delete(f"/api/v1/versions/{version.pk}")
    assert answer.json() == {"freed_bytes": 0, "deleted": 0, "hidden": 1}
    assert member_api.get("/api/v1/models").json() == []
    assert [one["id"] for one in member_api.get("/api/v1/models?removed=true").json()] == [version.model_id]
    # what runs name is there for whoever comes from a run
    assert member_api.get(f"/api/v1/versions/{version.pk}").json()["removed_at"]
    assert member_api.get(f"/api/v1/runs/{run.pk}").json()["model"] == "speech"
    assert len(stored(settings)) == 1
    refused = member_api.post("/api/v1/runs", {"version": version.pk}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "removed")
    assert member_api.post(f"/api/v1/versions/{version.pk}/restore").json()["removed_at"] is None
    (back,) = member_api.get("/api/v1/models").json()
    assert (back["name"], back["version_count"], back["removed_at"]) == ("speech", 1, None)


def test_a_deleted_model_takes_with_it_what_nobody_measured_and_comes_back_with_the_rest(
    member_api: Client, models: Path
) -> None:
    measured = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    other = sent(member_api, models / "relu_op13_ir7.onnx", "speech")
    Run.objects.create(team=measured.model.team, version=measured, matrix={})
    answer = member_api.delete(f"/api/v1/models/{measured.model_id}").json()
    assert (answer["deleted"], answer["hidden"]) == (1, 1)
    assert answer["freed_bytes"] == (models / "relu_op13_ir7.onnx").stat().st_size
    assert not Version.objects.filter(pk=other).exists()
    # its name is free for another
    again = Version.objects.get(pk=sent(member_api, models / "relu_op13_ir7.onnx", "speech"))
    assert again.model_id != measured.model_id
    refused = member_api.post(f"/api/v1/models/{measured.model_id}/restore")
    assert (refused.status_code, refused.json()["code"]) == (409, "name_taken")
    renamed = member_api.patch(
        f"/api/v1/models/{again.model_id}", {"name": "speech 2"}, content_type="application/json"
    )
    assert renamed.json()["name"] == "speech 2"
    assert member_api.post(f"/api/v1/models/{measured.model_id}/restore").json()["version_count"] == 1


@pytest.mark.parametrize("again", ["models", "versions"])
def test_a_model_that_was_deleted_twice_comes_back_with_its_versions(member_api: Client, models: Path, again: str):
    for file in ("lstm.onnx", "relu_op13_ir7.onnx"):
        version = Version.objects.get(pk=sent(member_api, models / file, "speech"))
        Run.objects.create(team=version.model.team, version=version, matrix={})
    numbers = {"models": version.model_id, "versions": version.pk}
    assert member_api.delete(f"/api/v1/models/{version.model_id}").json()["hidden"] == 2
    assert member_api.delete(f"/api/v1/{again}/{numbers[again]}").status_code == 200
    assert member_api.post(f"/api/v1/models/{version.model_id}/restore").json()["version_count"] == 2


def test_what_was_deleted_comes_back_when_it_is_sent_again(member_api: Client, models: Path) -> None:
    first = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    sent(member_api, models / "relu_op13_ir7.onnx", "speech")
    Run.objects.create(team=first.model.team, version=first, matrix={})
    member_api.delete(f"/api/v1/versions/{first.pk}")
    assert sent(member_api, models / "lstm.onnx", "speech") == first.pk
    assert Version.objects.get(pk=first.pk).removed_at is None


def test_the_log_says_which_version_was_removed_and_which_model(member_api: Client, models: Path) -> None:
    first = sent(member_api, models / "lstm.onnx", "speech")
    second = Version.objects.get(pk=sent(member_api, models / "relu_op13_ir7.onnx", "speech"))
    member_api.delete(f"/api/v1/versions/{first}")
    member_api.delete(f"/api/v1/models/{second.model_id}")
    logged = AuditEvent.objects.filter(verb__endswith=" removed").order_by("pk")
    assert [(one.verb, one.subject) for one in logged] == [
        ("version removed", "speech v1"),
        ("model removed", "speech"),
    ]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [({"name": "speech 2"}, 200, ""), ({"name": "  "}, 400, "bad_name"), ({"name": "x" * 101}, 400, "bad_name"),
     ({"name": "a\nb"}, 400, "bad_name"), ({"name": "vision"}, 409, "name_taken"), ({"labels": ["ci"]}, 200, "")],
)  # fmt: skip
def test_a_model_is_renamed_to_a_name_that_is_free(
    member_api: Client, models: Path, change: dict[str, object], status: int, code: str
) -> None:
    version = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    sent(member_api, models / "relu_op13_ir7.onnx", "vision")
    answer = member_api.patch(f"/api/v1/models/{version.model_id}", change, content_type="application/json")
    assert (answer.status_code, answer.json().get("code", "")) == (status, code)
    assert Model.objects.get(pk=version.model_id).name == ("speech 2" if change == {"name": "speech 2"} else "speech")


def test_a_versions_note_is_changed(api_of: ApiOf, member: User, viewer: User, models: Path) -> None:
    client = api_of(member)
    address = f"/api/v1/versions/{sent(client, models / 'lstm.onnx', 'speech')}"
    assert client.patch(address, {"note": " quantised "}, content_type="application/json").json()["note"] == "quantised"
    assert client.patch(address, {"note": "x" * 501}, content_type="application/json").status_code == 400
    assert api_of(viewer).patch(address, {"note": "no"}, content_type="application/json").status_code == 403


def test_only_those_who_may_write_may_remove(api_of: ApiOf, member: User, viewer: User, stranger: User, models: Path):
    number = sent(api_of(member), models / "lstm.onnx", "speech")
    model = Version.objects.get(pk=number).model_id
    for order in (f"/api/v1/models/{model}/restore", f"/api/v1/versions/{number}/restore"):
        assert api_of(viewer).post(order).status_code == 403
        assert api_of(stranger).post(order).status_code == 404
    assert api_of(viewer).delete(f"/api/v1/models/{model}").status_code == 403
    assert api_of(stranger).delete(f"/api/v1/models/{model}").status_code == 404
    assert api_of(viewer).delete(f"/api/v1/versions/{number}").status_code == 403
    assert api_of(stranger).delete(f"/api/v1/versions/{number}").status_code == 404
    assert Version.objects.filter(pk=number).exists()


def test_a_removal_that_is_rolled_back_leaves_every_file_in_its_place(
    member_api: Client, member: User, models: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    before = stored(settings)

    def broken(**_: object) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(removal, "record", broken)
    with pytest.raises(OperationalError):
        services.remove_version(version=version, by=member)
    assert stored(settings) == before
    assert Blob.objects.count() == len(before) == 1


def test_a_file_that_was_uploaded_again_before_it_went_stays(
    member_api: Client, member: User, models: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = Version.objects.get(pk=sent(member_api, models / "lstm.onnx", "speech"))
    later: list[Callable[[], None]] = []
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "on_commit", later.append)
        services.remove_version(version=version, by=member)
    sent(member_api, models / "lstm.onnx", "speech")
    for work in later:
        work()
    assert len(stored(settings)) == 1
