"""A farm on a machine where no sandbox holds: it opens no upload unless its operator owns every model, and says so."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import User
from farm.config.environment import Environment
from farm.registry.confinement import apply_operator_choice
from farm.registry.models import Version
from farm.registry.states import VersionState
from farm.sandbox import confinement, unconfined
from tests.integration.registry.uploading import upload_and_inspect
from tests.unwalled import no_walls

__all__ = ["no_walls"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def uploaded(member_api: Client, models: Path) -> Callable[[], Version]:
    """Sends a model and has it inspected, as the `prepare` worker does."""
    return lambda: upload_and_inspect(member_api, models / "relu_op13_ir7.onnx")


@pytest.fixture
def accepted(no_walls: None, settings: Settings) -> None:
    """The operator has said that every model is theirs."""
    settings.UNSANDBOXED = True
    apply_operator_choice()


def messages() -> dict[str, str]:
    return {
        str(one.id): one.msg
        for one in run_checks(include_deployment_checks=True)
        if str(one.id).startswith("onnxfarm.")
    }


def home(client: Client, person: User) -> str:
    client.force_login(person)
    return client.get("/").content.decode()


@pytest.mark.usefixtures("no_walls")
def test_an_upload_is_not_read_without_walls_and_uploader_and_operator_each_learn_why(
    uploaded: Callable[[], Version], caplog: pytest.LogCaptureFixture
) -> None:
    apply_operator_choice()
    with caplog.at_level(logging.ERROR):
        version = uploaded()
    assert version.state == VersionState.REJECTED
    assert "no sandbox works on this machine. Ask the administrator" in version.problem
    assert "No seccomp filter can be made here" in caplog.text
    assert version.inspection is None


@pytest.mark.usefixtures("accepted")
def test_an_operator_who_owns_every_model_has_them_read_and_finds_it_in_the_log(
    uploaded: Callable[[], Version], caplog: pytest.LogCaptureFixture
) -> None:
    assert uploaded().state == VersionState.READY
    assert "Uploads are read all the same, because of ONNXFARM_UNSANDBOXED" in caplog.text


@pytest.mark.usefixtures("no_walls")
def test_a_farm_without_walls_says_so_wherever_one_looks(client: Client, member: User) -> None:
    assert "so uploads are not read" in home(client, member)
    metrics = client.get("/metrics").content.decode()
    assert 'onnxfarm_sandbox_info{level="none",unsandboxed="refused"} 1.0' in metrics
    assert "onnxfarm_reads_uploads 0.0" in metrics
    assert "No upload is read until then" in messages()["onnxfarm.E001"]


@pytest.mark.usefixtures("accepted")
def test_the_operators_word_is_said_wherever_one_looks(client: Client, member: User) -> None:
    assert "an uploaded model could run code with the farm" in home(client, member)
    metrics = client.get("/metrics").content.decode()
    assert 'onnxfarm_sandbox_info{level="none",unsandboxed="accepted"} 1.0' in metrics
    assert "onnxfarm_reads_uploads 1.0" in metrics
    assert "Uploads are read all the same" in messages()["onnxfarm.W001"]


def test_a_farm_with_walls_says_their_level(client: Client, member: User) -> None:
    apply_operator_choice()
    try:
        level = confinement.require_level()
    except unconfined.NoSandboxError as problem:
        pytest.skip(str(problem))
    assert f"Uploads are read in a sandbox, level {level}" in home(client, member)
    assert f'onnxfarm_sandbox_info{{level="{level}"' in client.get("/metrics").content.decode()
    assert messages()["onnxfarm.I001"] == f"Uploads are read in a sandbox of level {level}."


@pytest.mark.parametrize("word", ["1", "yes", "YES-I-OWN-EVERY-MODEL", " yes-i-own-every-model"])
def test_no_other_word_than_the_one_asked_for_opens_uploads(word: str, settings: Settings) -> None:
    settings.ENVIRONMENT = Environment(unsandboxed=word)
    assert not settings.ENVIRONMENT.owns_every_model
    assert word in messages()["onnxfarm.E002"]
    assert Environment(unsandboxed="yes-i-own-every-model").owns_every_model
