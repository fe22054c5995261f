"""Versions that nobody measures can be removed, and give their room back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, transaction
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import User
from farm.contract.cells import Recipe, Workload
from farm.registry import services
from farm.registry.models import Artifact, Blob, Model, Preparation, Variant, Version
from farm.registry.services import removal, room_left
from farm.runs.models import Run

ApiOf = Callable[..., Client]
# files go with the commit
pytestmark = pytest.mark.django_db(transaction=True)


def sent(client: Client, path: Path, model: str) -> int:
    answer = client.post("/api/v1/uploads", {"files": SimpleUploadedFile(path.name, path.read_bytes()), "model": model})
    return int(answer.json()["id"])


def stored(settings: Settings) -> list[Path]:
    return [path for path in settings.STORE_DIR.rglob("*") if path.is_file()]


def test_the_last_version_takes_its_files_and_its_model_with_it(
    api_of: ApiOf, member: User, models: Path, settings: Settings
) -> None:
    client = api_of(member)
    number = sent(client, models / "lstm.onnx", "speech")
    answer = client.delete(f"/api/v1/versions/{number}")
    assert answer.json() == {"freed_bytes": (models / "lstm.onnx").stat().st_size}
    assert not stored(settings)
    for rows in (Version, Model, Artifact, Blob):
        assert not rows.objects.exists()
    assert client.delete(f"/api/v1/versions/{number}").status_code == 404


def test_files_that_others_use_stay(api_of: ApiOf, member: User, models: Path, settings: Settings) -> None:
    client = api_of(member)
    first, second = sent(client, models / "lstm.onnx", "a"), sent(client, models / "lstm.onnx", "b")
    assert client.delete(f"/api/v1/versions/{first}").json() == {"freed_bytes": 0}
    assert len(stored(settings)) == 1
    assert client.delete(f"/api/v1/versions/{second}").json()["freed_bytes"] > 0
    assert not stored(settings)


@pytest.mark.slow
def test_what_was_made_of_a_version_goes_with_it(
    transactional_db: None, api_of: ApiOf, member: User, models: Path, settings: Settings
) -> None:
    client = api_of(member)
    version = Version.objects.get(pk=sent(client, models / "relu_op13_ir7.onnx", "relu"))
    before = room_left(version.model.team)
    services.prepare_inputs(services.ensure_preparation(artifact=version.artifact, workload=Workload()).pk)
    services.make_variant(services.ensure_variant(artifact=version.artifact, recipe=Recipe(opset=17)).pk)
    assert room_left(version.model.team) < before
    assert client.delete(f"/api/v1/versions/{version.pk}").status_code == 200
    assert not stored(settings)
    for rows in (Artifact, Blob, Preparation, Variant):
        assert not rows.objects.exists()


def test_a_version_that_was_measured_stays(api_of: ApiOf, member: User, models: Path) -> None:
    client = api_of(member)
    version = Version.objects.get(pk=sent(client, models / "lstm.onnx", "speech"))
    Run.objects.create(team=version.model.team, version=version, matrix={})
    answer = client.delete(f"/api/v1/versions/{version.pk}")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert Version.objects.filter(pk=version.pk).exists()


def test_only_those_who_may_write_may_remove(
    api_of: ApiOf, member: User, viewer: User, stranger: User, models: Path
) -> None:
    number = sent(api_of(member), models / "lstm.onnx", "speech")
    assert api_of(viewer).delete(f"/api/v1/versions/{number}").status_code == 403
    assert api_of(stranger).delete(f"/api/v1/versions/{number}").status_code == 404
    assert Version.objects.filter(pk=number).exists()


def test_a_removal_that_is_rolled_back_leaves_every_file_in_its_place(
    api_of: ApiOf, member: User, models: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = Version.objects.get(pk=sent(api_of(member), models / "lstm.onnx", "speech"))
    before = stored(settings)

    def broken(**_: object) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(removal, "record", broken)
    with pytest.raises(OperationalError):
        services.remove_version(version=version, by=member)
    assert stored(settings) == before
    assert Blob.objects.count() == len(before) == 1


def test_a_file_that_was_uploaded_again_before_it_went_stays(
    api_of: ApiOf, member: User, models: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api_of(member)
    version = Version.objects.get(pk=sent(client, models / "lstm.onnx", "speech"))
    later: list[Callable[[], None]] = []
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "on_commit", later.append)
        services.remove_version(version=version, by=member)
    sent(client, models / "lstm.onnx", "speech")
    for work in later:
        work()
    assert len(stored(settings)) == 1
