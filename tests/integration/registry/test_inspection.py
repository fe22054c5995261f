"""Inspection by a real `prepare` worker over a real broker, in the real sandbox."""

import io
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from farm.registry import services
from farm.registry.models import Version
from farm.registry.selectors import model_facts
from farm.registry.states import VersionState
from tests.processes import Process, wait_for

UPLOADS = "/api/v1/uploads"


def sent(client: Client, *files: tuple[str, bytes]) -> int:
    """Uploads files and answers the version's number in the API."""
    answer = client.post(UPLOADS, {"files": [SimpleUploadedFile(name, content) for name, content in files]})
    assert answer.status_code == 202, answer.json()
    return int(answer.json()["id"])


def settled(version_id: int, *, seconds: float = 30) -> Version:
    """The version once it is ready or rejected."""
    done = (VersionState.READY, VersionState.REJECTED)
    wait_for(
        lambda: Version.objects.get(pk=version_id).state in done, what=f"inspection of {version_id}", seconds=seconds
    )
    return Version.objects.get(pk=version_id)


@pytest.mark.slow
def test_a_worker_inspects_what_was_uploaded_and_says_what_is_wrong_with_the_rest(
    prepare_worker: Process, member_api: Client, models: Path
) -> None:
    encoder = (models / "encoder_dyn.onnx").read_bytes()
    good = sent(member_api, ("encoder.onnx", encoder))
    external = sent(member_api, *((name, (models / name).read_bytes()) for name in EXTERNAL))
    bad = {
        "truncated": sent(member_api, ("cut.onnx", encoder[: len(encoder) // 2])),
        "not ONNX": sent(member_api, ("text.onnx", b"this is no model at all, " * 40)),
        "missing data": sent(member_api, ("mlp_external.onnx", (models / "mlp_external.onnx").read_bytes())),
        "extra data": sent(member_api, ("encoder2.onnx", encoder), ("weights.bin", b"12345678")),
        "a zip in disguise": sent(member_api, ("zip.onnx", a_zip(encoder))),
    }
    version = settled(good)
    assert (version.state, version.problem) == (VersionState.READY, "")
    facts = model_facts(version)
    assert facts.main_sha256 == version.artifact.bundle.main_sha256
    assert facts.batch == "batch"
    assert settled(external).state == VersionState.READY
    for what, number in bad.items():
        version = settled(number)
        assert version.state == VersionState.REJECTED, what
        assert version.problem.endswith("."), what
        assert "Traceback" not in version.problem
        body = member_api.get(f"/api/v1/versions/{number}").json()
        assert (body["state"], body["problem"]) == ("rejected", version.problem)


EXTERNAL = ("mlp_external.onnx", "mlp_external.onnx.data")


def a_zip(content: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("a.onnx", content)
    return memory.getvalue()


@pytest.mark.slow
def test_a_model_is_inspected_though_its_message_was_lost_and_its_worker_killed(
    prepare_worker: Process, member_api: Client, models: Path
) -> None:
    from celery import current_app

    number = sent(member_api, ("lstm.onnx", (models / "lstm.onnx").read_bytes()))
    settled(number)
    long_ago = timezone.now() - timedelta(hours=1)
    # as if a worker had died in the middle, and the broker had forgotten everything
    Version.objects.update(state=VersionState.INSPECTING, tries=1, asked_at=long_ago, inspection=None)
    with current_app.connection_for_write() as connection:
        connection.default_channel.client.flushall()
    assert services.recover_rows()["given back"] == 1
    assert settled(number).state == VersionState.READY
    assert Version.objects.get(pk=number).tries == 2


@pytest.mark.slow
def test_a_model_that_hangs_inspection_is_ended_from_outside(
    transactional_db: None, member_api: Client, models: Path, settings: pytest.FixtureRequest
) -> None:
    # so little time that even an honest model does not make it
    settings.INSPECTION_TIMEOUT_S = 0.001  # type: ignore[attr-defined]
    number = sent(member_api, ("lstm.onnx", (models / "lstm.onnx").read_bytes()))
    services.inspect_version(number)
    version = Version.objects.get(pk=number)
    assert version.state == VersionState.REJECTED
    assert "in time" in version.problem


def test_two_messages_for_one_version_inspect_it_once(transactional_db: None, member_api: Client, models: Path) -> None:
    number = sent(member_api, ("relu.onnx", (models / "relu_op13_ir7.onnx").read_bytes()))
    services.inspect_version(number)
    services.inspect_version(number)
    version = Version.objects.get(pk=number)
    assert (version.state, version.tries) == (VersionState.READY, 1)


def test_a_worker_lost_three_times_ends_the_version_in_words(db: None, member_api: Client, models: Path):
    number = sent(member_api, ("relu.onnx", (models / "relu_op13_ir7.onnx").read_bytes()))
    long_ago = timezone.now() - timedelta(hours=1)
    Version.objects.update(state=VersionState.INSPECTING, tries=3, asked_at=long_ago)
    assert services.recover_rows()["given up"] == 1
    version = Version.objects.get(pk=number)
    assert (version.state, "3 times" in version.problem) == (VersionState.REJECTED, True)


def test_a_lost_file_is_the_farms_own_mistake_and_is_said(transactional_db: None, member_api: Client, models: Path):
    from farm.registry.selectors import find_stored_file

    number = sent(member_api, ("relu.onnx", (models / "relu_op13_ir7.onnx").read_bytes()))
    find_stored_file(Version.objects.get(pk=number).artifact.bundle.main_sha256).unlink()
    services.inspect_version(number)
    assert "internal error" in Version.objects.get(pk=number).problem
