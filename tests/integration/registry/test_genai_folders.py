"""A folder of onnxruntime-genai on a farm: uploaded as files or as a zip, inspected and planned."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from farm.contract.reasons import ReasonCode
from farm.registry.models import Version
from farm.registry.selectors import model_facts
from farm.registry.states import VersionState
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.runtimes.genai import CONFIG
from farm.workshop.samples import decoder, genai
from tests.integration.registry.uploading import upload_and_inspect

pytestmark = pytest.mark.slow
AXES = {
    "runtime": ["onnxruntime-genai==0.13.2+onnxruntime==1.29.0", "1.29.0"],
    "scenario": ["generate:prompt=64:new=64"],
}


@pytest.fixture
def version(transactional_db: None, member_api: Client) -> Callable[..., Version]:
    """Uploads files and inspects them."""
    return lambda paths: upload_and_inspect(member_api, *paths)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = genai.write_folder(tmp_path / "folder", decoder.make())
    (made / "tokenizer.json").write_text("{}")
    (made / "merges.txt").write_text("a b")
    return made


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_folder_is_one_version_that_both_engines_measure(
    version: Callable[..., Version], folder: Path, tmp_path: Path, is_zipped: bool
) -> None:
    paths = sorted(folder.iterdir())
    if is_zipped:
        with zipfile.ZipFile(tmp_path / "folder.zip", "w") as archive:
            for path in paths:
                archive.write(path, path.name)
        paths = [tmp_path / "folder.zip"]
    row = version(paths)
    assert (row.state, row.problem) == (VersionState.READY, "")
    assert sorted(one.name for one in row.artifact.bundle.files) == [
        "genai_config.json",
        "merges.txt",
        "model.onnx",
        "tokenizer.json",
    ]
    facts = model_facts(row)
    assert (facts.genai.context, facts.genai.has_tokenizer, facts.genai.problem) == (512, True, "")
    plan = planner.plan(matrix.parse({"matrix": AXES}), facts)
    assert not plan.refused
    assert len(plan.blocks[0].arms) == 2


def test_a_configuration_of_other_files_leaves_the_model_to_the_graph_alone(
    version: Callable[..., Version], folder: Path
) -> None:
    text = (folder / CONFIG).read_text().replace('"model.onnx"', '"../other.onnx"')
    (folder / CONFIG).write_text(text)
    row = version(sorted(folder.iterdir()))
    assert row.state == VersionState.READY
    plan = planner.plan(matrix.parse({"matrix": AXES}), model_facts(row))
    (refused,) = plan.refused
    assert refused.reason.code == ReasonCode.MODEL_NOT_LOADED
    assert refused.reason.text == (
        "genai_config.json names the file ../other.onnx: name one that lies beside it, without a folder."
    )
    assert len(plan.blocks[0].arms) == 1
