"""The operator graph: what is measured on it, who may see it, and that nothing of it leaves the machine."""

import gzip
import json
import re

import numpy as np
import onnx
import pytest
from django.test import Client
from onnx import TensorProto, helper, numpy_helper

from farm.accounts.models import User
from farm.registry import services, storage
from farm.registry.models import Outline, Version
from farm.registry.states import MakingState, VersionState
from farm.runs.models import Run
from farm.runs.selectors import cell_document
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

HOST = re.compile(r"https?://(?!www\.w3\.org/)")


def address(version: Version, rest: str = "") -> str:
    return f"/models/versions/{version.pk}/graph/{rest}"


def store(version: Version, content: bytes) -> None:
    """Puts a file behind a version that was made without one."""
    path = storage.blob_path(team_id=version.artifact.team_id, sha256=version.artifact.files.get().blob.sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def model_with_weights() -> bytes:
    weights = numpy_helper.from_array(np.full(5000, 7.0, dtype=np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [5000]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"], name=rows.OPERATORS[0][0])], "g", [x], [y])
    graph.initializer.append(weights)
    return helper.make_model(graph).SerializeToString()


def test_the_page_opens_with_where_the_time_goes_and_lists_every_node_with_its_provider(signed_in: Client, run: Run):
    words = assert_is_page(signed_in.get(f"{address(run.version)}?cell={run.pk}:c1"))
    cell = cell_document(run, "c1")
    assert "of 4 operators" in words
    assert f"run {run.pk}, c1: 1.29.0, CPU, fp32, batch 1, 1 thread" in words
    for one in cell.operators:
        assert one.node in words
    assert words.count("SkipLayerNormalization") >= 2


def test_the_notes_for_the_picture_are_those_of_the_chosen_cell(signed_in: Client, run: Run) -> None:
    page = signed_in.get(f"{address(run.version)}?cell={run.pk}:c5").content.decode()
    found = re.search(r'id="graph-notes">(.*?)</script>', page, re.DOTALL)
    notes = json.loads(found.group(1))
    cell = cell_document(run, "c5")
    slowest = max(cell.operators, key=lambda one: one.time_us)
    assert notes[slowest.node]["step"] == 5
    assert "µs" in notes[slowest.node]["text"]
    assert "CPU" in notes[slowest.node]["text"]
    fused = "/layers.0/norm/LayerNormalization"
    assert notes[f"{fused}/Add"]["more"] == f"fused into SkipLayerNormalization {fused}"


def test_without_a_cell_in_the_address_the_newest_one_is_shown(signed_in: Client, run: Run) -> None:
    assert f"run {run.pk}, c1" in assert_is_page(signed_in.get(address(run.version)))


def test_a_cell_that_was_never_traced_is_a_helpful_404(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(f"{address(run.version)}?cell=1:nope"), 404)
    assert "no traced cell '1:nope'" in words


def test_a_version_nobody_measured_says_the_next_step(signed_in: Client, version: Version) -> None:
    words = assert_is_page(signed_in.get(address(version)))
    assert "60 nodes, not measured yet" in words
    assert "onnxfarm submit encoder.onnx --wait" in words


def test_a_version_that_was_rejected_has_no_picture(signed_in: Client, owner: User) -> None:
    team = owner.memberships.get().team
    version = rows.make_version(team, owner, name="broken", state=VersionState.REJECTED)
    page = signed_in.get(address(version))
    assert "The graph appears once the version has been inspected" in assert_is_page(page)
    assert "<iframe" not in page.content.decode()
    assert_is_page(signed_in.get(address(version, "outline/")), 409)


def make_outline(version: Version) -> Outline:
    """What a `prepare` worker does once the outline is asked for."""
    services.make_outline(version.artifact.outline.pk)
    return Outline.objects.get(artifact=version.artifact)


def test_the_graph_of_a_version_from_before_is_ordered_once_and_said_to_be_in_the_making(
    signed_in: Client, version: Version
) -> None:
    store(version, model_with_weights())
    for _ in range(2):
        answer = signed_in.get(address(version, "outline/"))
        assert (answer.status_code, answer["Retry-After"]) == (202, "2")
        assert "being prepared" in answer.content.decode()
        assert "ETag" not in answer
    assert Outline.objects.get().state == MakingState.PENDING


def test_the_graph_is_handed_out_without_its_weights(signed_in: Client, version: Version) -> None:
    store(version, model_with_weights())
    assert signed_in.get(address(version, "outline/")).status_code == 202
    make_outline(version)
    answer = signed_in.get(address(version, "outline/"))
    assert answer["Cache-Control"] == "private, no-cache"
    assert len(answer.content) < 1000
    again = signed_in.get(address(version, "outline/"), headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304
    model = onnx.load_from_string(answer.content)
    assert model.graph.node[0].name == rows.OPERATORS[0][0]
    assert (list(model.graph.initializer[0].dims), model.graph.initializer[0].raw_data) == ([5000], b"")


@pytest.mark.parametrize(("content", "words"), [(b"no protobuf", "is not a valid ONNX model"), (b"", "is empty")])
def test_a_file_that_cannot_be_read_is_said_in_words(signed_in: Client, version: Version, content: bytes, words: str):
    store(version, content)
    assert signed_in.get(address(version, "outline/")).status_code == 202
    assert make_outline(version).state == MakingState.FAILED
    assert words in assert_is_page(signed_in.get(address(version, "outline/")), 409)


def test_a_graph_that_no_page_could_draw_is_refused_by_its_size(
    signed_in: Client, version: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.workshop.orders.MAX_OUTLINE_BYTES", 100)
    store(version, model_with_weights())
    signed_in.get(address(version, "outline/"))
    make_outline(version)
    assert "more than the 100 that a page can draw" in assert_is_page(signed_in.get(address(version, "outline/")), 409)


def test_an_outline_that_is_gone_from_the_store_is_a_404(signed_in: Client, version: Version) -> None:
    store(version, model_with_weights())
    signed_in.get(address(version, "outline/"))
    blob = make_outline(version).blob
    storage.blob_path(team_id=blob.team_id, sha256=blob.sha256).unlink()
    assert_is_page(signed_in.get(address(version, "outline/")), 404)


def test_a_stranger_sees_neither_the_page_nor_a_byte_of_the_graph(run: Run, stranger: User, client: Client) -> None:
    store(run.version, model_with_weights())
    for rest in ("", "outline/"):
        assert client_of(stranger).get(address(run.version, rest)).status_code == 404
        assert client.get(address(run.version, rest)).status_code == 302


def test_both_policies_keep_everything_on_this_machine(signed_in: Client, version: Version) -> None:
    policy = signed_in.get(address(version))["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert policy.endswith("; frame-src 'self'")
    frame = signed_in.get("/graph/netron/")
    inner = frame["Content-Security-Policy"]
    assert inner == (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; "
        "sandbox allow-scripts"
    )
    assert frame["X-Frame-Options"] == "SAMEORIGIN"
    for text in (policy, inner):
        assert "//" not in text
        assert "eval" not in text


def test_the_frame_names_no_other_host_and_loads_no_script_of_netrons_page(signed_in: Client) -> None:
    page = signed_in.get("/graph/netron/").content.decode()
    assert not HOST.search(page)
    assert re.findall(r"<script[^>]*>", page) == ['<script src="host.js" type="module">']
    assert 'id="target"' in page
    assert 'id="zoom-in-button"' in page
    assert "javascript:" not in page


@pytest.mark.parametrize("name", ["browser.js", "index.js", "index.html", "node.js", "server.py", "x"])
def test_netrons_own_host_with_its_telemetry_is_not_served(client: Client, name: str) -> None:
    answer = client.get(f"/graph/netron/{name}")
    assert answer.status_code == 404
    assert "Netron has no such file here" in answer.content.decode()


def test_the_viewers_files_come_to_a_frame_without_an_origin(client: Client) -> None:
    for name in ("view.js", "grapher.css", "host.js"):
        answer = client.get(f"/graph/netron/{name}")
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert answer["Content-Type"].startswith("text/css" if name.endswith("css") else "text/javascript")
        assert len(gzip.decompress(answer.content)) > 1000
        again = client.get(f"/graph/netron/{name}", headers={"If-None-Match": answer["ETag"]})
        assert again.status_code == 304


def test_the_host_asks_no_server(client: Client) -> None:
    text = gzip.decompress(client.get("/graph/netron/host.js").content).decode()
    for word in ("XMLHttpRequest", 'fetch("', "sendBeacon", "localStorage", "document.cookie", "eval("):
        assert word not in text


def test_what_netron_knows_of_operators_comes_small_and_is_kept_by_the_browser(signed_in: Client) -> None:
    answer = signed_in.get("/graph/netron/operators.json")
    assert answer["Content-Encoding"] == "gzip"
    assert "immutable" in answer["Cache-Control"]
    assert len(answer.content) < 300_000
    known = json.loads(gzip.decompress(answer.content))
    assert {"Conv", "MatMul"} <= {one["name"] for one in known}
    assert all("examples" not in one for one in known)
