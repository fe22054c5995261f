"""Calibration data: accepted with an upload, named in the recipe, given to the workshop; every bad form in words."""

import io
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from django.test import Client
from django.test.utils import override_settings
from onnx import numpy_helper

from farm.accounts.models import User
from farm.contract.cells import Recipe
from farm.contract.reasons import ReasonCode
from farm.registry import services
from farm.registry.models import Variant, Version
from farm.registry.selectors import model_facts, quantised_report
from farm.registry.states import MakingState, VersionState
from farm.rules.cells import recipes
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from tests.integration.registry.uploading import upload_and_inspect

pytestmark = pytest.mark.slow
Upload = Callable[..., Version]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("digits")
    samples.write_model("digits", folder)
    return (folder / "digits.onnx").read_bytes()


@pytest.fixture
def upload(transactional_db: None, member_api: Client, model: bytes) -> Upload:
    """Uploads the digit model with files by field and name, and inspects it."""
    return partial(upload_and_inspect, member_api, ("digits.onnx", model))


def npz(**named: np.ndarray) -> bytes:
    memory = io.BytesIO()
    np.savez(memory, **named)
    return memory.getvalue()


def recipe_of(version: Version, precision: str = "int8-qdq") -> Recipe:
    plan = planner.plan(matrix.from_options(runtime="1.31.1", precision=precision), model_facts(version))
    return plan.blocks[0].arms[0].spec.recipe


def made(version: Version, recipe: Recipe) -> Variant:
    row = services.ensure_variant(artifact=version.artifact, recipe=recipe)
    services.make_variant(row.pk)
    row.refresh_from_db()
    return row


def test_ranges_are_read_off_the_samples_that_came_with_the_version(upload: Upload, member_api: Client):
    version = upload(calibration=("pictures.npz", npz(**digits.make_calibration_data())))
    artifact = version.artifact
    recipe = recipe_of(version)
    assert recipe.options[recipes.SAMPLES] == artifact.calibration.sha256
    row = made(version, recipe)
    assert (row.state, row.reason) == (MakingState.READY, None)
    assert "Calibrated with 512 samples of calibration.npz." in row.history
    shown = member_api.get(f"/api/v1/versions/{version.pk}").json()["calibration"]
    assert shown == {"samples": 512, "sha256": artifact.calibration.sha256, "problem": None}


def test_a_look_into_a_variant_ranks_its_layers_on_the_same_samples(upload: Upload, member: User) -> None:
    version = upload(calibration=("pictures.npz", npz(**digits.make_calibration_data())))
    row = made(version, recipe_of(version, "int8-qdq:per-channel:exclude-nodes=conv1"))
    assert {one["op_type"]: one["kept_float"] for one in row.coverage} == {"Conv": ["conv1"], "Gemm": []}
    report = services.order_variant_report(variant=row, by=member)
    services.report_variant(report.pk)
    found = quantised_report(row)
    assert found.errors
    assert found.errors[0].model_db is not None
    assert any(len(scales) == 32 for scales in found.scales.values())


def test_without_samples_the_recipe_and_the_history_say_that_they_are_random(upload: Upload) -> None:
    version = upload()
    recipe = recipe_of(version)
    assert recipe.options[recipes.SAMPLES] == recipes.RANDOM
    assert made(version, recipe).history


def test_sets_of_test_data_are_samples_where_nothing_else_is_given(
    transactional_db: None, member_api: Client, model: bytes
) -> None:
    pictures = digits.make_calibration_data()["x"]
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("digits.onnx", model)
        for number in range(3):
            tensor = numpy_helper.from_array(pictures[number : number + 1])
            archive.writestr(f"test_data_set_{number}/input_0.pb", tensor.SerializeToString())
    version = upload_and_inspect(member_api, ("digits.zip", memory.getvalue()))
    assert (version.problem, version.artifact.calibration_samples) == ("", 3)
    history = made(version, recipe_of(version)).history
    assert "Warning: 3 samples are few; take at least 100, better 500." in history


def test_test_data_named_as_calibration_are_no_inputs(upload: Upload) -> None:
    tensor = numpy_helper.from_array(digits.make_calibration_data()["x"][:5]).SerializeToString()
    version = upload(calibration=("test_data_set_0-input_0.pb", tensor))
    artifact = version.artifact
    assert (artifact.calibration_samples, artifact.inputs) == (5, None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"nothing at all", ".npz"),
        (npz(z=np.zeros((9, 4), np.float32)), "The calibration data lack the input 'x'"),
        (npz(x=np.zeros((9, 1, 8, 8), np.float64)), "The calibration input 'x' is float64, the model takes float32"),
        (npz(x=np.zeros((9, 8, 8), np.float32)), "The calibration input 'x' has the shape [9, 8, 8]"),
        (npz(x=np.zeros((0, 1, 8, 8), np.float32)), "hold 0 samples"),
        (
            npz(x=np.zeros((9, 1, 8, 8), np.float32), more=np.zeros((9, 1), np.float32)),
            "The calibration data hold 'more', which is not an input",
        ),
    ],
)
def test_data_that_do_not_fit_refuse_the_cells_that_need_them_and_nothing_else(
    upload: Upload, content: bytes, words: str
) -> None:
    version = upload(calibration=("calibration.npz", content))
    assert (version.state, version.problem) == (VersionState.READY, "")
    declared = matrix.from_options(runtime="1.31.1", precision="fp32,int8-dynamic,int8-qdq,int8-qoperator")
    plan = planner.plan(declared, model_facts(version))
    assert [arm.spec.recipe.precision for arm in plan.blocks[0].arms] == ["fp32", "int8-dynamic"]
    for point in plan.refused:
        assert point.reason.code == ReasonCode.VARIANT_IMPOSSIBLE
        assert words in point.reason.text
        assert point.reason.text.count(". ") == 0


def test_a_variant_that_takes_too_long_ends_with_a_reason(upload: Upload) -> None:
    with override_settings(MAKING_TIMEOUT_S=0.01):
        row = made(upload(), Recipe(precision="int8-dynamic"))
    assert row.state == MakingState.FAILED
    assert row.reason.code == ReasonCode.TIMEOUT
    assert "Making the variant did not end in time" in row.reason.text


def test_calibration_data_go_with_their_version(upload: Upload, member: User, tmp_path: Path) -> None:
    version = upload(calibration=("calibration.npz", npz(**digits.make_calibration_data())))
    assert services.remove_version(version=version, by=member).freed_bytes > 512 * 64 * 4
