"""The page of a variant: made, being made, failed; looked into and not; for members, viewers and strangers."""

from hashlib import sha256
from typing import Any

import pytest
from django.test import Client

from dashboard.views import variant as variant_cells
from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import Artifact, ArtifactFile, Blob, Variant, VariantReport, Version
from farm.registry.states import FileRole, MakingState
from farm.rules.comparing.quantities import change_of
from farm.runs.models import Run
from farm.runs.selectors import document
from farm.runs.selectors.variants import measured_cells_of
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db
HISTORY = ["Quantised with onnxruntime 1.31.1: int8-qdq.", "Calibrated with 100 random samples, not with real data."]
COVERAGE = [{"op_type": "Conv", "all": 3, "kept_float": ["conv1"]}, {"op_type": "Gemm", "all": 2, "kept_float": []}]
REPORT = {
    "coverage": COVERAGE,
    "scales": {"conv2_weight": [0.01, 0.02, 0.03]},
    "errors": [
        {"tensor": "h2", "node": "conv2", "op_type": "Conv", "model_db": 11.5, "rounding_db": 20.3},
        {"tensor": "y", "node": "scores", "op_type": "Gemm", "model_db": 41.0, "rounding_db": None},
    ],
}


@pytest.fixture
def run(version: Version, node: Node, owner: User) -> Run:
    """A run of FP32 and one static recipe; the farm calibrated it on random data."""
    declared = {"runtime": ["1.31.1"], "precision": ["fp32", "int8-qdq:per-channel"]}
    return rows.finished_run(version, node, owner, matrix=declared)


@pytest.fixture
def variant(run: Run, team: Team) -> Variant:
    found = Variant.objects.get(recipe_json__precision="int8-qdq")
    derived = Artifact.objects.create(team=team, sha256="e" * 64, main="encoder.onnx", bytes=1_200_000)
    Variant.objects.filter(pk=found.pk).update(derived=derived, history=HISTORY, coverage=COVERAGE)
    found.refresh_from_db()
    return found


def address(variant: Variant) -> str:
    return f"/variants/{variant.pk}/"


def looked_into(variant: Variant, **how: Any) -> VariantReport:
    return VariantReport.objects.create(variant=variant, **{"state": MakingState.READY, "report_json": REPORT, **how})


def test_the_page_says_how_it_was_made_what_it_saved_and_what_stayed_in_float(
    signed_in: Client, variant: Variant, run: Run
) -> None:
    words = assert_is_page(signed_in.get(address(variant)))
    assert "int8-qdq:per-channel (random calibration data)" in words
    assert "1.20 MB, 28 % of the upload’s 4.32 MB: 3.12 MB saved." in words
    assert "Quantised 4 of 5 operators" in words
    assert "Calibrated on random data" in words
    assert all(sentence in words for sentence in HISTORY)
    assert "Conv 3 2 conv1" in words
    assert "MatMul stayed FP32" in words
    assert f"of run {run.pk}" in words
    assert "Not analysed yet" in words


def test_the_page_holds_what_was_measured_against_the_upload(signed_in: Client, variant: Variant, run: Run) -> None:
    response = signed_in.get(address(variant))
    words = assert_is_page(response)
    comparison = next(one for one in document(run).comparisons if one.axis == "precision")
    change = change_of(comparison, {})
    assert f"{change.text} than fp32 on bench-1" in words
    assert f"95 % interval {change.interval}" in words
    assert "Outputs pass parity in the measured cell" in words
    assert f'href="/runs/{run.pk}/cells/{comparison.candidate}/"' in response.content.decode()


def test_a_variant_with_wrong_outputs_is_not_praised(version: Version, node: Node, owner: User) -> None:
    declared = {"runtime": ["1.31.1"], "precision": ["fp32", "int8-dynamic"]}
    rows.finished_run(version, node, owner, matrix=declared, wrong=True)
    measured = measured_cells_of(owner, Variant.objects.get(recipe_json__precision="int8-dynamic"))
    assert variant_cells.write_finding(measured) == "Outputs fail parity in 1 of 1 measured cell."


def test_members_download_the_files_and_a_viewer_does_not(
    signed_in: Client, variant: Variant, team: Team, viewer: User
) -> None:
    path = f"/api/v1/variants/{variant.pk}/files/encoder.onnx"
    content = b"what the farm made"
    blob = Blob.objects.create(team=team, sha256=sha256(content).hexdigest(), bytes=len(content))
    place = storage.blob_path(team_id=team.pk, sha256=blob.sha256)
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    ArtifactFile.objects.create(artifact=variant.derived, blob=blob, name="encoder.onnx", role=FileRole.MODEL)
    assert f'href="{path}"' in signed_in.get(address(variant)).content.decode()
    answer = signed_in.get(path)
    assert (b"".join(answer.streaming_content), answer["Content-Disposition"]) == (  # type: ignore[attr-defined]
        content,
        'attachment; filename="encoder.onnx"',
    )
    assert (
        "has no file 'secret_key'" in signed_in.get(f"/api/v1/variants/{variant.pk}/files/secret_key").json()["detail"]
    )
    assert client_of(viewer).get(path).status_code == 403
    assert path not in client_of(viewer).get(address(variant)).content.decode()


def test_the_model_and_the_cell_lead_to_it(signed_in: Client, variant: Variant, run: Run) -> None:
    listed = signed_in.get(f"/models/{run.version.model_id}/").content.decode()
    assert f'href="{address(variant)}"' in listed
    cell = signed_in.get(f"/runs/{run.pk}/cells/c2/").content.decode()
    assert f'href="{address(variant)}"' in cell
    plain = signed_in.get(f"/runs/{run.pk}/cells/c1/").content.decode()
    assert "/variants/" not in plain
    assert "random data" not in plain


def test_a_look_into_it_is_ordered_once_and_then_ranks_the_layers(signed_in: Client, variant: Variant) -> None:
    for _ in range(2):
        answer = signed_in.post(f"{address(variant)}report/")
        assert (answer.status_code, answer["Location"]) == (302, address(variant))
    assert VariantReport.objects.get().state == MakingState.PENDING
    assert "Analysing the quantisation…" in assert_is_page(signed_in.get(address(variant)))
    VariantReport.objects.update(state=MakingState.READY, report_json=REPORT)
    words = assert_is_page(signed_in.get(address(variant)))
    assert "h2 conv2 Conv 11.5 20.3" in words
    assert "y scores Gemm 41.0 no error" in words
    assert "conv2_weight 3 0.01 0.03" in words
    assert "exclude-nodes=conv2" in words
    assert signed_in.get(f"{address(variant)}report.json").json()["scales"] == REPORT["scales"]


def test_a_viewer_sees_the_errors_and_not_the_scales(client: Client, viewer: User, variant: Variant) -> None:
    looked_into(variant)
    client.force_login(viewer)
    words = assert_is_page(client.get(address(variant)))
    assert "h2 conv2 Conv 11.5 20.3" in words
    assert "conv2_weight 3" not in words
    assert "report.json" not in client.get(address(variant)).content.decode()
    assert client.get(f"{address(variant)}report.json").status_code == 403


def test_a_look_that_failed_says_why(signed_in: Client, variant: Variant) -> None:
    looked_into(variant, state=MakingState.FAILED, report_json=None, reason_code="internal", reason_text="It broke.")
    assert "It broke." in assert_is_page(signed_in.get(address(variant)))


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        (
            MakingState.FAILED,
            "Static quantisation failed (why).",
            "could not be created: Static quantisation failed (why).",
        ),
        (MakingState.PENDING, "", "Being created."),
    ],
)
def test_a_variant_without_files_says_what_became_of_it(
    signed_in: Client, variant: Variant, state: MakingState, reason: str, words: str
) -> None:
    Variant.objects.filter(pk=variant.pk).update(
        state=state, derived=None, history=[], reason_code="variant_impossible", reason_text=reason
    )
    assert words in assert_is_page(signed_in.get(address(variant)))
    assert signed_in.post(f"{address(variant)}report/").status_code == 409


def test_an_fp16_variant_has_nothing_to_look_into(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    rows.begin_run(version, owner, matrix={"runtime": ["1.31.1"], "precision": ["fp16"]})
    made = Variant.objects.get(recipe_json__precision="fp16")
    assert "Where the error is" not in assert_is_page(signed_in.get(address(made)))
    assert signed_in.post(f"{address(made)}report/").status_code == 409


def test_a_viewer_looks_and_a_stranger_finds_nothing(variant: Variant, viewer: User, stranger: User) -> None:
    assert "Rank the layers" not in assert_is_page(client_of(viewer).get(address(variant)))
    assert client_of(viewer).post(f"{address(variant)}report/").status_code == 403
    for path in ("", "report.json"):
        assert client_of(stranger).get(f"{address(variant)}{path}").status_code == 404


def test_what_is_not_there_is_a_page_in_words(signed_in: Client, variant: Variant) -> None:
    assert_is_page(signed_in.get("/variants/999999/"), status=404)
    assert_is_page(signed_in.get(f"{address(variant)}report.json"), status=404)


def test_four_bits_have_their_operators_on_the_page_and_no_ranking_by_error(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    declared = {"runtime": ["1.31.1"], "precision": ["fp32", "int4:block=64"]}
    rows.finished_run(version, node, owner, matrix=declared)
    made = Variant.objects.get(recipe_json__precision="int4")
    Variant.objects.filter(pk=made.pk).update(coverage=[{"op_type": "MatMul", "all": 17, "kept_float": ["scores"]}])
    words = assert_is_page(signed_in.get(address(made)))
    assert "int4:block=64" in words
    assert "Quantised 16 of 17 operators" in words
    assert "MatMul 17 16 scores" in words
    assert "Where the error is" not in words
    answer = signed_in.post(f"{address(made)}report/", follow=True)
    assert "Only an 8-bit variant that is ready can be analysed." in answer.content.decode()
    assert not VariantReport.objects.exists()


def test_what_is_the_upload_itself_leads_to_its_model(signed_in: Client, variant: Variant, run: Run) -> None:
    [itself] = [row for row in Variant.objects.all() if row.recipe.is_identity]
    assert signed_in.get(address(itself))["Location"] == f"/models/{run.version.model_id}/?version=1"
