"""Variants, inputs and references: made once per digest, in the real sandbox, with failures in words."""

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import onnx
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from onnx import numpy_helper
from pytest_django import DjangoCaptureOnCommitCallbacks

from farm.accounts.models import User
from farm.contract.cells import Recipe, Workload
from farm.contract.reasons import ReasonCode
from farm.registry import services
from farm.registry.models import Artifact, Blob, Preparation, Variant, Version
from farm.registry.selectors import model_facts, open_stored_file
from farm.registry.states import MakingState, VersionState
from tests.conftest import ApiOf
from tests.integration.registry.uploading import upload_and_inspect
from tests.processes import Process, wait_for

pytestmark = pytest.mark.slow
Ready = Callable[..., Version]


@pytest.fixture
def ready(transactional_db: None, member_api: Client, models: Path) -> Ready:
    """Uploads files and inspects them: ready("lstm.onnx", "lstm.inputs.npz")."""

    def upload(*names: str, **extra: bytes) -> Version:
        more = [(name.replace("__", "."), content) for name, content in extra.items()]
        return upload_and_inspect(member_api, *(models / name for name in names), *more)

    return upload


def arrays(blob: Blob | None) -> dict[str, np.ndarray]:
    assert blob is not None
    with open_stored_file(blob.sha256) as file, np.load(file) as archive:
        return dict(archive)


def prepared(artifact: Artifact, workload: Workload) -> Preparation:
    row = services.ensure_preparation(artifact=artifact, workload=workload)
    services.prepare_inputs(row.pk)
    row.refresh_from_db()
    return row


def test_seeded_inputs_and_their_reference_are_made_once(ready: Ready) -> None:
    artifact = ready("cnn_dyn.onnx").artifact
    row = prepared(artifact, Workload(batch=2, seed=7))
    assert (row.state, row.reason) == (MakingState.READY, None)
    assert [a.shape[0] for a in arrays(row.inputs).values()] == [2]
    assert [a.shape[0] for a in arrays(row.reference).values()] == [2]
    assert "onnxruntime" in row.reference_of
    assert row.inputs_ref is not None
    assert row.reference_ref is not None
    again = services.ensure_preparation(artifact=artifact, workload=Workload(batch=2, seed=7, concurrency=4))
    assert (again.pk, again.state) == (row.pk, MakingState.READY)
    other = services.ensure_preparation(artifact=artifact, workload=Workload(batch=2, seed=8))
    assert (other.pk != row.pk, other.state) == (True, MakingState.PENDING)


def test_given_inputs_and_expected_outputs_are_used_as_they_are(ready: Ready, models: Path) -> None:
    version = ready("lstm.onnx", "lstm.inputs.npz", "lstm.expected.npz")
    assert (version.state, version.problem) == (VersionState.READY, "")
    facts = model_facts(version)
    assert facts.inputs_sha256 is not None
    row = prepared(version.artifact, Workload(batch=facts.inputs_batch, inputs_sha256=facts.inputs_sha256))
    assert (row.state, row.reference_of) == (MakingState.READY, "expected")
    with np.load(models / "lstm.expected.npz") as expected:
        for name, array in arrays(row.reference).items():
            np.testing.assert_array_equal(array, expected[name])


def test_reference_data_in_onnx_layout_is_unpacked_by_name(api_of: ApiOf, member: User, ready: Ready) -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Sub", ["a", "b"], ["c"])],
            "g",
            [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "ab"],
            [onnx.helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [2])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    values = {"input_0": [5.0, 6.0], "input_1": [1.0, 2.0], "output_0": [4.0, 4.0]}
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("sub.onnx", model.SerializeToString())
        for name, value in values.items():
            tensor = numpy_helper.from_array(np.array(value, dtype=np.float32))
            archive.writestr(f"test_data_set_0/{name}.pb", tensor.SerializeToString())
    version = ready(**{"sub__zip": memory.getvalue()})
    assert version.problem == ""
    row = prepared(version.artifact, Workload(inputs_sha256=version.artifact.inputs.sha256))
    assert {name: list(array) for name, array in arrays(row.inputs).items()} == {"a": [5.0, 6.0], "b": [1.0, 2.0]}
    assert (row.reference_of, list(arrays(row.reference)["c"])) == ("expected", [4.0, 4.0])


def test_given_inputs_that_do_not_fit_reject_the_upload_with_what_does_not_fit(ready: Ready, models: Path) -> None:
    memory = io.BytesIO()
    np.savez(memory, wrong=np.zeros(3, dtype=np.float32))
    version = ready("lstm.onnx", inputs__npz=memory.getvalue())
    assert version.state == VersionState.REJECTED
    assert "lack 'x'" in version.problem
    assert ready("cnn_dyn.onnx", inputs__npz=b"not an archive" * 50).state == VersionState.REJECTED


def test_expected_outputs_without_inputs_are_refused(member_api: Client, models: Path) -> None:
    files = [SimpleUploadedFile(n, (models / n).read_bytes()) for n in ("lstm.onnx", "lstm.expected.npz")]
    answer = member_api.post("/api/v1/uploads", {"files": files})
    assert (answer.status_code, answer.json()["code"]) == (400, "no_inputs")


def test_a_batch_the_model_does_not_take_fails_in_words(ready: Ready) -> None:
    row = prepared(ready("cnn_fixed_b4.onnx").artifact, Workload(batch=8))
    assert row.state == MakingState.FAILED
    assert row.reason.code == ReasonCode.FIXED_BATCH
    again = services.ensure_preparation(artifact=row.artifact, workload=Workload(batch=8))
    assert (again.pk, again.state) == (row.pk, MakingState.FAILED)


def test_a_model_without_a_reference_is_prepared_all_the_same(ready: Ready) -> None:
    row = prepared(ready("custom_op.onnx").artifact, Workload())
    assert (row.state, row.reference) == (MakingState.READY, None)
    assert row.inputs is not None
    assert row.reference_problem


def test_the_identity_variant_is_the_artifact_itself(ready: Ready) -> None:
    artifact = ready("lstm.onnx").artifact
    variant = services.ensure_variant(artifact=artifact, recipe=Recipe())
    assert (variant.state, variant.derived) == (MakingState.READY, artifact)
    assert variant.bundle == artifact.bundle


def test_a_quantised_variant_is_an_artifact_of_its_own(ready: Ready) -> None:
    artifact = ready("cnn_dyn.onnx").artifact
    variant = services.ensure_variant(artifact=artifact, recipe=Recipe(precision="int8-dynamic"))
    services.make_variant(variant.pk)
    variant.refresh_from_db()
    assert (variant.state, variant.reason) == (MakingState.READY, None)
    assert variant.bundle.digest != artifact.bundle.digest
    assert variant.history
    assert services.ensure_variant(artifact=artifact, recipe=Recipe(precision="int8-dynamic")).pk == variant.pk


def test_a_variant_that_cannot_be_made_says_why(ready: Ready) -> None:
    artifact = ready("cnn_dyn.onnx").artifact
    variant = services.ensure_variant(artifact=artifact, recipe=Recipe(opset=7))
    services.make_variant(variant.pk)
    variant.refresh_from_db()
    assert variant.state == MakingState.FAILED
    assert variant.reason.code == ReasonCode.VARIANT_IMPOSSIBLE


def test_work_of_a_lost_worker_is_given_to_another_and_its_late_answer_dropped(ready: Ready) -> None:
    from farm.registry.services import products

    artifact = ready("relu_op13_ir7.onnx").artifact
    lost = services.ensure_preparation(artifact=artifact, workload=Workload())
    assert products.claim(lost)
    assert not products.claim(services.ensure_preparation(artifact=artifact, workload=Workload()))
    Preparation.objects.update(asked_at=timezone.now() - timedelta(hours=1))
    assert services.recover_rows()["given back"] == 1
    services.prepare_inputs(lost.pk)
    row = Preparation.objects.get(pk=lost.pk)
    assert (row.state, row.tries) == (MakingState.READY, 2)
    assert not products.fail(lost, code=ReasonCode.INTERNAL, text="late")
    assert not products.finish(lost)
    assert Preparation.objects.get(pk=lost.pk).state == MakingState.READY


def test_a_mistake_of_the_farm_is_tried_again_when_somebody_asks_again(ready: Ready) -> None:
    from farm.registry.services import products

    artifact = ready("relu_op13_ir7.onnx").artifact
    row = services.ensure_preparation(artifact=artifact, workload=Workload())
    products.claim(row)
    products.fail(row, code=ReasonCode.INTERNAL, text="Something broke.")
    again = services.ensure_preparation(artifact=artifact, workload=Workload())
    assert (again.pk, again.state, again.tries) == (row.pk, MakingState.PENDING, 0)


def test_the_queue_is_rung_once_the_rows_are_committed(
    db: None,
    empty_broker: str,
    member_api: Client,
    models: Path,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    from celery import current_app

    files = [SimpleUploadedFile("lstm.onnx", (models / "lstm.onnx").read_bytes())]
    with django_capture_on_commit_callbacks(execute=True):
        member_api.post("/api/v1/uploads", {"files": files})
    with current_app.connection_for_write() as connection:
        assert connection.default_channel.client.llen("prepare") == 1


def test_a_real_worker_makes_what_is_ordered(prepare_worker: Process, ready: Ready) -> None:
    artifact = ready("relu_op13_ir7.onnx").artifact
    row = services.ensure_preparation(artifact=artifact, workload=Workload())
    variant = services.ensure_variant(artifact=artifact, recipe=Recipe(opset=17))

    def both_are_made() -> bool:
        rows = (Preparation.objects.get(pk=row.pk), Variant.objects.get(pk=variant.pk))
        return all(one.is_finished for one in rows)

    wait_for(both_are_made, what="variant and inputs", seconds=60)
    assert Preparation.objects.get(pk=row.pk).state == MakingState.READY
    assert Variant.objects.get(pk=variant.pk).state == MakingState.READY
