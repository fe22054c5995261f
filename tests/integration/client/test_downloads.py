"""`gate --against NAME@VERSION`: the farm's files come here whole, or a sentence says why not."""

from pathlib import Path

import pytest

from farm.registry.models import ArtifactFile
from farm.registry.storage import blob_path
from onnxfarm.problems import Usage
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client
from onnxfarm.remote.downloads import download_version
from tests.integration.client.conftest import Command
from tests.integration.worker.making import MODELS
from tests.processes import Process

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = MODELS / "mlp_external.onnx"


@pytest.fixture
def uploaded(farm: Client) -> None:
    """Version 1 of `perceptron`: a model and its external data."""
    farm.upload([MODEL, MODELS / "mlp_external.onnx.data"], fields={"model": "perceptron"})


def gate(onnxfarm: Command, against: str, home: Path) -> tuple[int, str]:
    done = onnxfarm("gate", MODEL, "--against", against, "--home", home)
    return done.exit_code, done.stderr.splitlines()[-1]


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize("against", ["perceptron@1", "perceptron@v1"])
def test_a_version_comes_with_its_external_data(onnxfarm: Command, home: Path, against: str) -> None:
    code, told = gate(onnxfarm, against, home)
    assert (code, "byte for byte" in told) == (0, True), told


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize(
    ("against", "told"),
    [
        ("perceptron@2", "has no version 2"),
        ("perceptron@0", "has no version 0"),
        ("other@1", "no model “other”"),
        ("perceptron@one", "is not a file"),
        ("@1", "is not a file"),
    ],
)
def test_a_version_that_there_is_not_is_said(onnxfarm: Command, home: Path, against: str, told: str) -> None:
    code, sentence = gate(onnxfarm, against, home)
    assert (code, told in sentence) == (2, True), sentence


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize(("change", "told"), [(b"", "other bytes"), (b"and more", "goes on after")])
def test_bytes_that_are_not_the_versions_are_refused(onnxfarm: Command, home: Path, change: bytes, told: str) -> None:
    blob = ArtifactFile.objects.get(role="data").blob
    path = blob_path(team_id=blob.team_id, sha256=blob.sha256)
    path.chmod(0o600)
    content = path.read_bytes()
    path.write_bytes(content + change if change else bytes(len(content)))
    code, sentence = gate(onnxfarm, "perceptron@1", home)
    assert (code, told in sentence) == (3, True), sentence


@pytest.mark.usefixtures("uploaded", "onnxfarm")
def test_a_version_is_not_downloaded_over_an_earlier_download(tmp_path: Path) -> None:
    path = download_version("perceptron@1", folder=tmp_path)
    with pytest.raises(Usage, match=f"{path.parent} exists already"):
        download_version("perceptron@1", folder=tmp_path)


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize("name", ["../escaped.data", "..", "/etc/passwd", "a\nb"])
def test_a_farm_names_no_file_outside_the_folder(onnxfarm: Command, home: Path, name: str) -> None:
    ArtifactFile.objects.filter(role="data").update(name=name)
    code, sentence = gate(onnxfarm, "perceptron@1", home)
    assert (code, "no file's name" in sentence) == (3, True), sentence


def test_a_file_of_that_name_is_taken_before_a_farm_is_asked(
    onnxfarm: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXFARM_SERVER", "http://127.0.0.1:9")
    path = tmp_path / "model@1"
    path.write_bytes(b"")
    code, sentence = gate(onnxfarm, str(path), home)
    assert (code, path.name in sentence) == (2, True), sentence


@pytest.mark.slow
def test_a_gate_on_a_farm_passes_a_version_that_is_there_at_once(
    prepare_worker: Process, onnxfarm: Command, account: Account, farm: Client
) -> None:
    farm.upload([MODEL, MODELS / "mlp_external.onnx.data"], fields={"model": "perceptron"})
    done = onnxfarm("gate", MODEL, "--against", "perceptron@1", "--server", account.server)
    assert (done.exit_code, "byte for byte" in done.stderr) == (0, True), done.stderr
