"""Prompts that come with a model: accepted with an upload, named by its cells, removed with it; bad ones in words."""

import io
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from farm.registry.models import Blob, Version
from farm.registry.selectors import model_facts, prompts_ref
from farm.registry.states import VersionState
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.workshop.samples import builders
from tests.integration.registry.uploading import upload_and_inspect

pytestmark = pytest.mark.slow
Upload = Callable[..., Version]
MATRIX = matrix.parse({"runtime": ["1.31.1"], "scenario": ["generate:new=8"]})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return builders.write_model("decoder", tmp_path_factory.mktemp("decoder")).read_bytes()


@pytest.fixture
def upload(transactional_db: None, member_api: Client) -> Upload:
    """Uploads files by field and name, and inspects them."""
    return partial(upload_and_inspect, member_api)


def npz(**named: object) -> bytes:
    memory = io.BytesIO()
    np.savez(memory, **{name: np.asarray(ids) for name, ids in named.items()})
    return memory.getvalue()


def zipped(**files: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return memory.getvalue()


def test_prompts_in_a_zip_or_a_field_are_the_same_cells(upload: Upload, model: bytes) -> None:
    alone = upload(files=("decoder.onnx", model))
    by_name = upload(files=("one.zip", zipped(decoder__onnx=model, prompts__npz=npz(prompt=[[5, 17]], text=[1, 2, 3]))))
    by_field = upload(files=("decoder.onnx", model), prompts=("mine.npz", npz(prompt=[5, 17], text=[1, 2, 3])))
    assert {one.state for one in (alone, by_name, by_field)} == {VersionState.READY}
    assert model_facts(alone).prompts is None
    facts = model_facts(by_name)
    assert (facts.prompts.rows, facts.prompts.tokens, facts.prompts.text_tokens) == (1, 2, 3)
    ref = prompts_ref(by_name.artifact)
    assert ref.sha256 == facts.prompts.sha256
    said = [planner.plan(MATRIX, model_facts(one)).blocks[0].arms[0].spec for one in (alone, by_name, by_field)]
    assert said[0].workload.scenario == "generate:prompt=128:new=8"
    assert said[1].workload.scenario == f"generate:prompt=2:new=8:given={ref.sha256}"
    assert said[1].digest == said[2].digest != said[0].digest
    assert said[1].artifact_sha256 == said[0].artifact_sha256


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npz(prompt=[5, 1000]), "prompt[1] is the token id 1000, and the vocabulary has 1,000"),
        (b"PK" + bytes(64), ".npz"),
        (npz(prompt=np.array([{}], dtype=object)), ".npz"),
    ],
    ids=["beyond the vocabulary", "no archive", "objects"],
)
def test_a_version_with_prompts_that_do_not_fit_is_rejected_in_a_sentence(
    upload: Upload, model: bytes, content: bytes, words: str
) -> None:
    row = upload(files=("decoder.onnx", model), prompts=("prompts.npz", content))
    assert row.state == VersionState.REJECTED
    assert words in row.problem


def test_two_files_of_prompts_are_refused_and_removed_ones_leave_nothing(
    upload: Upload, model: bytes, member_api: Client, tmp_path: Path
) -> None:
    both = zipped(decoder__onnx=model, prompts__npz=npz(prompt=[1]), a_prompts__npz=npz(prompt=[2]))
    answer = member_api.post("/api/v1/uploads", {"files": SimpleUploadedFile("one.zip", both)})
    assert (answer.status_code, answer.json()["code"]) == (400, "same_role")
    row = upload(files=("decoder.onnx", model), prompts=("prompts.npz", npz(prompt=[5, 17])))
    digest = model_facts(row).prompts
    assert member_api.delete(f"/api/v1/versions/{row.pk}").status_code in (200, 204)
    assert not Blob.objects.filter(sha256=digest.sha256).exists()
