"""An alert's report and a sweep over HTTP."""

import io
import json
import zipfile
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.alerts.models import Alert, Symptom, Watch
from farm.alerts.selectors.histories import read_history
from farm.alerts.selectors.origins import list_graph_changes
from farm.alerts.services import triage
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import Version
from farm.rules.comparing.sides import find_comparison
from farm.rules.presenting.explanations import explain_change
from farm.runs.models import Run
from farm.runs.selectors import document
from farm.runs.states import RunReason
from tests.conftest import ApiOf
from tests.integration.alerts.driving import Lab, make_ready, offer, slower_alert, slower_from

pytestmark = pytest.mark.django_db
JSON = "application/json"
MODEL_BYTES = b"the model"


@pytest.fixture
def alert(watch: Watch, node: Node, version: Version) -> Alert:
    """An alert of a slower release whose model is stored."""
    blob = version.artifact.files.get().blob
    place = storage.blob_path(team_id=blob.team_id, sha256=blob.sha256)
    place.parent.mkdir(parents=True)
    place.write_bytes(MODEL_BYTES)
    return slower_alert(node)


def unpacked(answer: Any) -> dict[str, bytes]:
    content = b"".join(answer.streaming_content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_report_is_a_zip_that_holds_all_that_repeats_it(client: Client, alert: Alert) -> None:
    answer = client.get(f"/api/v1/alerts/{alert.pk}/report.zip")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/zip")
    assert 'filename="report-encoder-1.29.0-1.30.0.zip"' in answer.headers["Content-Disposition"]
    files = unpacked(answer)
    assert files["model/encoder.onnx"] == files["inputs.npz"] == MODEL_BYTES
    assert json.loads(files["repeat.json"])["runtimes"]["new"] == "onnxruntime==1.30.0"
    for side in ("old", "new"):
        head, *lines = files[f"timings-{side}.csv"].decode().splitlines()
        assert head == "round,inference,ns"
        assert len(lines) >= 8
    assert b"1.30.0 is the first bad release" in files["issue.md"]
    assert json.loads(files["facts.json"])["cpu_model"] == "Example CPU"


def test_the_issue_is_there_by_itself(client: Client, alert: Alert) -> None:
    answer = client.get(f"/api/v1/alerts/{alert.pk}/issue.md")
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.content.decode().startswith("# [Performance] 23 % slower: ")


def test_all_that_an_alert_tells_is_of_the_run_that_confirmed_it(client: Client, watch: Watch, node: Node) -> None:
    """Its times were of the first run, and why it is slower of the second."""
    offer("1.29.0", "1.30.0")
    lab = Lab(node, p50_ms=lambda spec: slower_from("1.30.0", 1.24 if Run.objects.count() > 1 else 1.7)(spec))
    lab.slow = {"onnxruntime==1.30.0": 1.24}
    lab.live()
    alert = Alert.objects.get()
    symptom = alert.leading_symptom
    assert symptom is not None
    assert (symptom.run, alert.hardware) == (Run.objects.get(reason="confirmation"), "cpu")
    told = find_comparison(document(symptom.run), symptom.baseline, symptom.cell)
    assert told is not None
    assert symptom.size == told.ratio == pytest.approx(1.24, abs=0.03)
    assert (symptom.comparison, symptom.explanation) == (told.model_dump(mode="json"), explain_change(told))
    assert "**Why.** SkipLayerNormalization: 2 nodes, " in client.get(f"/api/v1/alerts/{alert.pk}/issue.md").text
    assert list_graph_changes(symptom)
    # what follows measures no operators again
    measured = Run.objects.filter(matrix__operators=True).values_list("reason", flat=True)
    assert list(measured) == [RunReason.CONFIRMATION]
    Run.objects.filter(reason="confirmation").delete()
    assert list_graph_changes(Symptom.objects.get(pk=symptom.pk)) == []


def test_a_report_without_evidence_or_files_is_refused_in_a_sentence(client: Client, alert: Alert) -> None:
    blob = alert.version.artifact.files.get().blob
    storage.blob_path(team_id=blob.team_id, sha256=blob.sha256).unlink()
    answer = client.get(f"/api/v1/alerts/{alert.pk}/report.zip")
    assert (answer.status_code, "no stored file" in answer.json()["detail"]) == (404, True)
    Symptom.objects.update(run=None)
    for name in ("report.zip", "issue.md"):
        answer = client.get(f"/api/v1/alerts/{alert.pk}/{name}")
        assert (answer.status_code, answer.json()["code"]) == (409, "no_evidence")


def test_an_alert_of_a_cell_that_fails_is_reported_too(watch: Watch, node: Node, client: Client) -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")
    offer("1.29.0", "1.30.0")
    Lab(node, checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.30.0" else {}).live()
    answer = client.get(f"/api/v1/alerts/{Alert.objects.get().pk}/issue.md")
    assert answer.content.decode().startswith("# [Regression] fails: onnxruntime==1.30.0")


def test_viewers_read_the_text_and_strangers_get_nothing(api_of: ApiOf, alert: Alert, viewer: User, stranger: User):
    assert api_of(viewer).get(f"/api/v1/alerts/{alert.pk}/issue.md").status_code == 200
    assert api_of(viewer).get(f"/api/v1/alerts/{alert.pk}/report.zip").status_code == 403
    for name in ("report.zip", "issue.md"):
        assert api_of(stranger).get(f"/api/v1/alerts/{alert.pk}/{name}").status_code == 404
        assert Client().get(f"/api/v1/alerts/{alert.pk}/{name}").status_code == 401


def order(version: Version, **changes: Any) -> dict[str, Any]:
    matrix = {"batch": [1], "precision": ["fp32"], "threads": [1]}
    return {"version": version.pk, "ort": "1.29..1.31", "reference": "1.29.0", "matrix": matrix, **changes}


def test_a_sweep_is_a_run_whose_lines_have_change_points(client: Client, version: Version, node: Node) -> None:
    started = client.post("/api/v1/sweeps", order(version), content_type=JSON)
    assert started.status_code == 202, started.content
    assert started.json()["versions"] == ["1.29.0", "1.30.0", "1.31.0", "1.31.1"]
    make_ready()
    Lab(node, p50_ms=slower_from("1.31.0")).measure(Run.objects.get())
    swept = client.get(started.json()["sweep"]).json()
    (line,) = swept["lines"]
    assert [point["version"] for point in line["points"]] == started.json()["versions"]
    assert [(turn["after"], turn["verdict"]) for turn in line["turns"]] == [("1.31.0", "slower")]
    assert swept["reference"] == "1.29.0"


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"ort": "1.40..1.41"}, 400, "1.40"),
        ({"ort": ""}, 400, "names no release"),
        ({"reference": "1.30..1.31"}, 400, "pin one"),
        ({"reference": "9"}, 400, "Unknown release"),
        ({"distribution": "onnxruntim"}, 400, "did you mean"),
        ({"matrix": {"runtime": ["1.31.1"]}}, 400, "leave `runtime` out"),
        ({"matrix": {"btch": [1]}}, 400, "did you mean 'batch'"),
        ({"matrix": {"opset": ["max-of-runtime"]}}, 400, "max-of-runtime"),
        ({"version": 999}, 404, "999"),
        ({"colour": 1}, 422, "colour"),
    ],
)
def test_a_sweep_that_cannot_be_meant_starts_nothing(
    client: Client, version: Version, node: Node, changes: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post("/api/v1/sweeps", order(version) | changes, content_type=JSON)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    assert not Run.objects.exists()


def test_viewers_start_no_sweep_and_read_one(
    api_of: ApiOf, client: Client, version: Version, node: Node, viewer: User, stranger: User
) -> None:
    assert api_of(viewer).post("/api/v1/sweeps", order(version), content_type=JSON).status_code == 403
    assert api_of(stranger).post("/api/v1/sweeps", order(version), content_type=JSON).status_code == 404
    address = client.post("/api/v1/sweeps", order(version), content_type=JSON).json()["sweep"]
    assert api_of(viewer).get(address).json()["state"] in ("planned", "running")
    assert api_of(stranger).get(address).status_code == 404
    answer = client.get(address, {"reference": "1.15.0"})
    assert (answer.status_code, answer.json().get("lines")) in ((200, []), (400, None))


@pytest.mark.slow
def test_a_later_release_that_is_still_slower_is_said_upstream_and_beside_its_release(
    client: Client, watch: Watch, node: Node
) -> None:
    """The newest release, equal to the one before it, looked clean on the page of runtimes and in the issue's text."""
    lab = Lab(node, p50_ms=slower_from("1.30.0"))
    for newest in ("1.30.0", "1.31.0"):
        offer(*dict.fromkeys(("1.29.0", "1.30.0", newest)))
        lab.live()
    alert = Alert.objects.get()
    assert alert.events.filter(kind="seen_again").count() == 1
    issue = client.get(f"/api/v1/alerts/{alert.pk}/issue.md").text
    assert "\n\nStill so in 1.31.0. ONNX Runtime 1.31.0 runs encoder " in issue
    history = read_history(watch.created_by, "onnxruntime")
    (seen,) = history.alerts["1.31.0"]
    assert (seen.pk, seen.found_in, history.alerts["1.30.0"][0].found_in) == (alert.pk, "1.30.0", "")
    triage.mark_invalid(alert=alert, by=watch.created_by, reason="noise")
    assert "Still so" not in client.get(f"/api/v1/alerts/{alert.pk}/issue.md").text
