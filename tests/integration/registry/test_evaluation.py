"""Labelled data of a version: with the upload, later, replaced, refused in a sentence, removed; in the real sandbox."""

import io
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from farm.accounts.models import User
from farm.registry import services
from farm.registry.models import Blob, EvaluationData, Version
from farm.registry.selectors import evaluation_of
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from tests.conftest import ApiOf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return samples.write_model("digits", tmp_path_factory.mktemp("digits")).read_bytes()


def npz(**arrays: Any) -> SimpleUploadedFile:
    memory = io.BytesIO()
    np.savez(memory, **arrays)
    return SimpleUploadedFile("labelled.npz", memory.getvalue())


def few(count: int = 70, **changes: Any) -> dict[str, Any]:
    data = {name: array[:count] for name, array in digits.make_evaluation_data().items()}
    return {name: array for name, array in {**data, **changes}.items() if array is not None}


def uploaded(api: Client, model: bytes, **form: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/uploads", {"files": SimpleUploadedFile("digits.onnx", model), **form})
    assert answer.status_code == 202, answer.json()
    services.inspect_version(answer.json()["id"])
    found: dict[str, Any] = answer.json()
    return found


def looked_at(api: Client, version: int) -> dict[str, Any]:
    services.check_evaluation(EvaluationData.objects.get(version=version).pk)
    found: dict[str, Any] = api.get(f"/api/v1/versions/{version}").json()["evaluation"]
    return found


@pytest.mark.django_db(transaction=True)
def test_data_that_come_with_the_model_are_looked_at_and_kept(member_api: Client, model: bytes) -> None:
    version = uploaded(member_api, model, evaluation=npz(**few()), recipe="softmax+top5")
    assert version["evaluation"]["state"] == "pending"
    found = looked_at(member_api, version["id"])
    assert (found["state"], found["problem"], found["recipe"]) == ("ready", None, "softmax+top5")
    assert (found["samples"], found["classes"], found["output"]) == (70, 10, "y")
    order = evaluation_of(Version.objects.get(pk=version["id"])).order
    assert (order.recipe.metric, order.recipe.apply) == ("top5", "softmax")
    again = member_api.post(
        "/api/v1/uploads",
        {"files": SimpleUploadedFile("digits.onnx", model), "evaluation": npz(**few()), "recipe": "softmax+top5"},
    ).json()
    assert (again["id"], again["evaluation"]["state"]) == (version["id"], "ready")


@pytest.mark.django_db(transaction=True)
def test_data_are_added_later_replaced_and_removed_with_their_version(
    api_of: ApiOf, member: User, viewer: User, stranger: User, model: bytes
) -> None:
    api, address = api_of(member), "/api/v1/versions/{}/evaluation"
    version = uploaded(api, model)["id"]
    assert api.get(f"/api/v1/versions/{version}").json()["evaluation"] is None
    assert api_of(viewer).post(address.format(version), {"evaluation": npz(**few())}).status_code == 403
    assert api_of(stranger).post(address.format(version), {"evaluation": npz(**few())}).status_code == 404
    assert api.post(address.format(version), {"evaluation": npz(**few())}).status_code == 202
    first = looked_at(api, version)
    assert (first["state"], first["samples"]) == ("ready", 70)
    assert api.post(address.format(version), {"evaluation": npz(**few(50))}).status_code == 202
    assert looked_at(api, version)["samples"] == 50
    assert api.delete(f"/api/v1/versions/{version}").status_code == 200
    # those that were replaced are another matter: nothing refers to them, and the sweep of files is not theirs
    assert not EvaluationData.objects.exists()
    assert Blob.objects.filter(sha256=looked_at_digest(few(50))).count() == 0


def looked_at_digest(arrays: dict[str, Any]) -> str:
    from hashlib import sha256

    return sha256(npz(**arrays).read()).hexdigest()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"recipe": "top2"}, "Unknown metric 'top2'"),
        ({"evaluation": None}, "came in the field evaluation"),
        ({"evaluation": SimpleUploadedFile("labels.csv", b"1,2")}, "come as an .npz"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_meant_is_refused_at_once(member_api: Client, model: bytes, form: dict[str, Any], words: str):
    version = uploaded(member_api, model)["id"]
    whole = {"evaluation": npz(**few()), **form}
    sent = {name: value for name, value in whole.items() if value is not None}
    answer = member_api.post(f"/api/v1/versions/{version}/evaluation", sent)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert not EvaluationData.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_recipe_without_data_is_refused(member_api: Client, model: bytes) -> None:
    form = {"files": SimpleUploadedFile("digits.onnx", model), "recipe": "top5"}
    answer = member_api.post("/api/v1/uploads", form)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_recipe")


@pytest.mark.parametrize(
    ("changes", "recipe", "words"),
    [
        ({"labels": None}, "", "holds no array called 'labels'"),
        ({"x": None, "z": np.zeros((70, 1, 8, 8), np.float32)}, "", "lack 'x'"),
        ({"x": np.zeros((70, 1, 8, 8))}, "", "is float64, the model takes float32"),
        ({"x": np.zeros((70, 1, 8, 9), np.float32)}, "", "has the shape"),
        ({"labels": np.zeros(69, np.int64)}, "", "holds 70 samples for 69 labels"),
        ({"labels": np.full(70, 10)}, "", "reach from 10 to 10, the output has the classes 0 to 9"),
        ({}, "mse", "mse"),
        ({}, "top1@scores", "The model has no output 'scores': it has y."),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_data_that_do_not_fit_say_so_in_a_sentence_and_the_model_stays_usable(
    member_api: Client, model: bytes, changes: dict[str, Any], recipe: str, words: str
) -> None:
    version = uploaded(member_api, model, evaluation=npz(**few(**changes)), recipe=recipe)["id"]
    found = looked_at(member_api, version)
    assert found["state"] == "failed"
    assert words in found["problem"]
    assert member_api.get(f"/api/v1/versions/{version}").json()["state"] == "ready"
    assert evaluation_of(Version.objects.get(pk=version)).order is None
