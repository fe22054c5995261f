"""Every other page: for owners, members and strangers, empty and filled, with good forms and bad ones."""

import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import numbers
from farm.accounts.models import Team, User
from farm.accounts.services import issue_token, make_sign_in_link
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Version
from farm.registry.states import VersionState
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, words_of

pytestmark = pytest.mark.django_db
LISTS = (
    "/", "/models/", "/runs/", "/fleet/", "/compare/", "/settings/", "/models/upload/", "/runs/new/", "/alerts/",
    "/alerts/digest/", "/watches/", "/watches/new/", "/trends/", "/runtimes/",
)  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_an_empty_farm_invites(signed_in: Client, address: str) -> None:
    words = assert_is_page(signed_in.get(address))
    assert words


@pytest.mark.parametrize("address", LISTS)
def test_a_filled_farm_lists(signed_in: Client, run: Run, address: str) -> None:
    assert_is_page(signed_in.get(address))


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("/", "onnxfarm submit"),
        ("/models/", "onnxfarm submit"),
        ("/runs/", "onnxfarm submit"),
        ("/fleet/", "deploy/quickstart"),
    ],
)
def test_an_empty_page_has_a_command_to_copy(signed_in: Client, address: str, command: str) -> None:
    text = signed_in.get(address).content.decode()
    assert re.search(rf'data-copy="[^"]*{command}', text)


@pytest.mark.parametrize("address", ["/", "/models/", "/runs/", "/fleet/"])
def test_lists_cost_as_many_queries_for_many_rows_as_for_few(
    signed_in: Client, team: Team, owner: User, node: Node, address: str
) -> None:
    for number in range(2):
        rows.begin_run(rows.make_version(team, owner, name=f"m{number}"), owner)
        rows.make_node(team, owner, name=f"n{number}")
    few = count_queries(signed_in, address)
    for number in range(2, 8):
        rows.begin_run(rows.make_version(team, owner, name=f"m{number}"), owner)
        rows.make_node(team, owner, name=f"n{number}")
    assert count_queries(signed_in, address) == few <= 12


def count_queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_a_stranger_finds_nothing_of_another_team(run: Run, node: Node, version: Version, stranger: User) -> None:
    client = client_of(stranger)
    for address in (
        f"/models/{version.model_id}/",
        f"/fleet/{node.pk}/",
        f"/runs/new/?version={version.pk}",
        f"/runs/new/?like={run.pk}",
    ):
        assert_is_page(client.get(address), 404)
    for address in ("/", "/models/", "/fleet/", "/runs/"):
        words = assert_is_page(client.get(address))
        assert "encoder" not in words
        assert "bench-1" not in words


@pytest.mark.parametrize("address", ["/models/999/", "/runs/999/", "/fleet/999/", "/nowhere/", "/models/x/"])
def test_a_vanished_object_is_a_helpful_404(signed_in: Client, address: str) -> None:
    words = assert_is_page(signed_in.get(address), 404)
    assert "All models" in words


# models and uploads


def test_a_models_page_shows_its_facts_findings_and_runs(signed_in: Client, run: Run, version: Version) -> None:
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    for part in (
        "ai.onnx 17",
        "1.05 M in 4.21 MB",
        "dynamic (batch)",
        "Nodes without a name",
        "[batch, sequence, 256]",
        f"run {run.pk}",
        "Loads on ONNX Runtime 1.15.0 and newer (2 of 35 releases were tried).",
        "1.30.0 – 1.31.0",
        "measured",
        "derived",
    ):
        assert part in words, part


def test_a_rejected_version_says_why(signed_in: Client, team: Team, owner: User) -> None:
    version = rows.make_version(team, owner, state=VersionState.REJECTED)
    version.problem = "encoder.onnx is empty: export the model again and upload the new file."
    version.save()
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    assert "encoder.onnx is empty" in words
    assert "New run" not in words


def test_a_version_that_is_being_inspected_asks_for_news(signed_in: Client, team: Team, owner: User) -> None:
    version = rows.make_version(team, owner, state=VersionState.PENDING)
    text = signed_in.get(f"/models/{version.model_id}/").content.decode()
    assert 'hx-trigger="every 1s"' in text
    part = signed_in.get(f"/models/{version.model_id}/", headers={"hx-target": "version", "hx-request": "true"})
    assert "<html" not in part.content.decode()


def test_models_are_found_by_a_part_of_their_name(signed_in: Client, team: Team, owner: User) -> None:
    for name in ("resnet", "encoder"):
        rows.make_version(team, owner, name=name)
    words = assert_is_page(signed_in.get("/models/?q=enc"))
    assert "encoder" in words
    assert "resnet" not in words
    assert "0 models" in assert_is_page(signed_in.get("/models/?q=nothing"))


def test_an_upload_leads_to_the_version_it_made(signed_in: Client, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = signed_in.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content), "note": "first"})
    version = Version.objects.get()
    assert response.status_code == 302
    assert response["Location"] == f"/models/{version.model_id}/?version=1"
    assert version.note == "first"
    assert "first" in assert_is_page(signed_in.get(response["Location"]))


def test_an_upload_by_script_is_sent_on_by_header(signed_in: Client, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    files = {"files": SimpleUploadedFile("relu.onnx", content)}
    response = signed_in.post("/models/upload/", files, headers={"hx-request": "true"})
    assert response.status_code == 200
    assert response["HX-Redirect"].startswith("/models/")


def test_a_refused_upload_keeps_what_was_typed_and_says_what_is_wrong(signed_in: Client) -> None:
    typed = {"files": SimpleUploadedFile("notes.txt", b"hello"), "model": "my model", "note": "a note"}
    response = signed_in.post("/models/upload/", typed)
    text = response.content.decode()
    assert response.status_code in (400, 422)
    assert 'value="my model"' in text
    assert 'value="a note"' in text
    assert 'id="files-error"' in text
    assert "notes.txt" in words_of(response)
    assert not Version.objects.exists()


@pytest.mark.parametrize(
    ("typed", "field"), [({"model": "x" * 101}, "model-error"), ({"note": "x" * 501}, "note-error")]
)
def test_each_field_has_its_own_complaint(signed_in: Client, models: Path, typed: dict[str, str], field: str) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = signed_in.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content), **typed})
    assert response.status_code == 400
    assert f'id="{field}"' in response.content.decode()


def test_an_upload_without_a_file_is_asked_for_one(signed_in: Client) -> None:
    words = words_of(signed_in.post("/models/upload/", {"model": "x"}))
    assert "No file was chosen" in words


def test_an_upload_without_the_forms_token_is_refused(owner: User, models: Path) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = client.post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content)})
    assert response.status_code == 403
    assert not Version.objects.exists()


def test_a_viewer_is_told_that_they_may_not_upload(viewer: User, models: Path) -> None:
    content = (models / "relu_op13_ir7.onnx").read_bytes()
    response = client_of(viewer).post("/models/upload/", {"files": SimpleUploadedFile("relu.onnx", content)})
    assert response.status_code == 403
    assert "no team in which you may upload" in words_of(response)


# new runs


def test_a_new_run_shows_its_plan_and_starts(signed_in: Client, version: Version, node: Node) -> None:
    words = assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}"))
    assert "8 cells in 1 block, about" in words
    matrix = "matrix:\n  runtime: [1.29.0, 1.31.1]\n  threads: [1]\n"
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": matrix, "seed": "3"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}/"
    assert run.seed == 3


def test_the_plan_follows_the_editor(signed_in: Client, version: Version, node: Node) -> None:
    def plan(matrix: str) -> str:
        return words_of(signed_in.post("/runs/plan/", {"version": version.pk, "matrix": matrix}))

    assert "2 cells in 1 block" in plan("runtime: [1.29.0, 1.31.1]")
    refused = plan("provider: [cpu, cuda]")
    assert "1 point will not run" in refused
    assert "CUDA" in refused
    assert "did you mean 'runtime'" in plan("runtme: [1.31.1]")
    assert "is not YAML" in plan("matrix: [")
    assert "start with a line like" in plan("")


def test_a_bad_matrix_keeps_what_was_typed(signed_in: Client, version: Version, node: Node) -> None:
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": "runtme: [1]", "seed": "0"})
    assert response.status_code == 400
    text = response.content.decode()
    assert "runtme: [1]" in text
    assert "disabled" in text
    assert not Run.objects.exists()


@pytest.mark.parametrize("seed", ["-1", "x", "99999999999", "²", "1.5", ""])
def test_a_bad_seed_is_said_beside_its_field(signed_in: Client, version: Version, node: Node, seed: str) -> None:
    response = signed_in.post("/runs/new/", {"version": version.pk, "matrix": "threads: [1]", "seed": seed})
    assert response.status_code == 400
    assert 'id="seed-error"' in response.content.decode()
    assert f'value="{seed}"' in response.content.decode()


@pytest.mark.parametrize("preset", ["releases", "history", "settings", "openvino", "unknown"])
def test_every_preset_is_a_matrix_that_can_be_planned(
    signed_in: Client, version: Version, node: Node, preset: str
) -> None:
    words = assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}&preset={preset}"))
    assert "is not" not in words.split("Plan")[1].split("Signed in")[0] or "refused" in words
    assert "matrix:" in signed_in.get(f"/runs/new/?preset={preset}").content.decode()


def test_a_run_can_be_repeated_with_its_matrix(signed_in: Client, run: Run) -> None:
    text = signed_in.get(f"/runs/new/?like={run.pk}").content.decode()
    assert "int8-dynamic" in text[text.index("<textarea") : text.index("</textarea>")]


def test_a_version_that_is_not_ready_says_when_to_ask_again(
    signed_in: Client, team: Team, owner: User, node: Node
) -> None:
    version = rows.make_version(team, owner, state=VersionState.PENDING)
    assert "it is planned once it is inspected" in assert_is_page(signed_in.get(f"/runs/new/?version={version.pk}"))


# lists of runs


def test_runs_are_filtered_by_model_and_state(signed_in: Client, run: Run, version: Version, owner: User) -> None:
    open_ = rows.begin_run(version, owner)
    running = words_of(signed_in.get("/runs/?state=running"))
    assert f"run {open_.pk}" in running
    assert f"run {run.pk} " not in running
    complete = words_of(signed_in.get("/runs/?state=complete&q=enc"))
    assert f"run {run.pk}" in complete
    assert "slower than 1.29.0 on bench-1" in complete
    assert "No run fits" in words_of(signed_in.get("/runs/?q=nothing"))
    assert_is_page(signed_in.get("/runs/?state=nonsense&page=99"))


# fleet


def test_a_nodes_page_shows_facts_tags_noise_and_log(signed_in: Client, run: Run, node: Node) -> None:
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    for part in (
        "bench-1 is online",
        "Example CPU",
        "24.0 GB",
        "probe trace: 3 nodes",
        "Identical launches differ by",
        "landlock",
    ):
        assert part in words, part


def test_a_node_that_has_measured_nothing_says_so(signed_in: Client, node: Node) -> None:
    assert "Not measured yet: every block of its first day" in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))


def test_the_fleet_says_what_waits_and_when_a_block_queued_now_starts(
    signed_in: Client, version: Version, owner: User, node: Node
) -> None:
    assert "1 of 1 node online; nothing waits" in assert_is_page(signed_in.get("/fleet/"))
    run = rows.begin_run(version, owner)
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "1 of 1 node online; 1 block waiting" in words
    minutes = run.blocks.get().plan.minutes
    assert f"cpu 1 0 1 {numbers.duration(60 * minutes)} in about {numbers.duration(60 * minutes)}" in words
    rows.MadeUpNode(node).measure(run, most_rounds=4)
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "1 of 1 node online; 1 block being measured" in words
    assert f"cpu 0 1 1 {numbers.duration(30 * minutes)}" in words
    node.state = NodeState.OFFLINE
    node.save()
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "0 of 1 node online" in words
    assert "when a node with this hardware comes online" in words


def test_an_invitation_shows_the_command_once(signed_in: Client) -> None:
    response = signed_in.post("/fleet/invite/")
    assert "onnxfarm node enroll http" in assert_is_page(response)
    assert "ofe_" not in words_of(signed_in.get("/fleet/"))


def test_a_pending_node_shows_its_fingerprint_and_is_approved_by_its_owner(
    signed_in: Client, team: Team, owner: User
) -> None:
    node = rows.make_node(team, owner, health=NodeHealth.PENDING)
    assert node.fingerprint in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    words = assert_is_page(signed_in.post(f"/fleet/{node.pk}/approve/", follow=True))
    assert "bench-1 is approved." in words
    node.refresh_from_db()
    assert node.health == NodeHealth.ACTIVE


def test_an_order_that_does_not_fit_is_refused_in_a_sentence(signed_in: Client, node: Node) -> None:
    assert "there is nothing to approve" in assert_is_page(signed_in.post(f"/fleet/{node.pk}/approve/", follow=True))
    assert_is_page(signed_in.post(f"/fleet/{node.pk}/explode/"), 404)
    for order in ("drain", "resume", "revoke"):
        assert_is_page(signed_in.post(f"/fleet/{node.pk}/{order}/", follow=True))


def test_a_viewer_sees_the_node_but_no_orders(viewer: User, node: Node) -> None:
    client = client_of(viewer)
    assert "Drain" not in assert_is_page(client.get(f"/fleet/{node.pk}/"))
    assert "may" in assert_is_page(client.post(f"/fleet/{node.pk}/drain/", follow=True))
    node.refresh_from_db()
    assert node.health == NodeHealth.ACTIVE


# compare


def test_cells_of_one_run_stand_side_by_side_with_their_paired_verdict(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5"))
    assert "▲ slower +24" in words
    assert "8 rounds side by side in one block" in words
    assert "Optimization" not in words
    assert "Optimization" in assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5&every=yes"))


@pytest.mark.parametrize("cells", ["x", "1:", "999:c1", ":", "1:nope"])
def test_a_cell_that_cannot_be_compared_says_why(signed_in: Client, run: Run, cells: str) -> None:
    words = assert_is_page(signed_in.get("/compare/", {"cells": cells}))
    assert "There is no run" in words or "names no cell" in words or "has no cell" in words


# settings and signing in


def test_a_token_is_shown_once_and_can_be_closed(signed_in: Client, owner: User) -> None:
    words = assert_is_page(signed_in.post("/settings/tokens/", {"name": "laptop", "scopes": ["read", "write"]}))
    assert "ofk_" in words
    token = owner.tokens.get()
    listed = assert_is_page(signed_in.get("/settings/"))
    assert "laptop" in listed
    assert len(re.findall(r"ofk_\w{20,}", listed)) == 0
    closed = assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/", follow=True))
    assert "opens nothing any more" in closed


def test_a_token_without_a_scope_keeps_its_name(signed_in: Client) -> None:
    response = signed_in.post("/settings/tokens/", {"name": "laptop"})
    assert response.status_code == 400
    assert 'value="laptop"' in response.content.decode()
    assert "Unknown scope" in assert_is_page(response, 400)


def test_nobody_closes_anothers_token(signed_in: Client, member: User) -> None:
    token, _ = issue_token(member)
    assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/"), 404)
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_one_time_link_signs_in_once_and_goes_where_it_was_wanted(client: Client, owner: User) -> None:
    link = make_sign_in_link(owner)
    path = link[link.index("/sign-in/") :]
    assert client.head(path).status_code == 405
    response = client.get(f"{path}?next=/fleet/")
    assert response["Location"] == "/fleet/"
    assert client.get("/fleet/").status_code == 200
    assert_is_page(Client().get(path), 403)
    assert client.get(path)["Location"] == "/"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_link_never_leads_away_from_the_farm(client: Client, owner: User, wanted: str) -> None:
    link = make_sign_in_link(owner)
    response = client.get(link[link.index("/sign-in/") :], {"next": wanted})
    assert response["Location"] == "/"


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    assert signed_in.get("/sign-in/?next=/runs/")["Location"] == "/runs/"
    assert signed_in.post("/sign-out/")["Location"] == "/sign-in/"
    assert_is_page(signed_in.get("/sign-in/"))
    assert signed_in.get("/").status_code == 302


def test_an_error_page_says_what_happened_without_a_stack_trace(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("dashboard.views.home.open_runs", broken)
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    words = assert_is_page(client.get("/"), 500)
    assert "Something broke on the farm’s side" in words
    assert "secret detail" not in words


def test_no_page_lets_a_script_run_inline(signed_in: Client, run: Run) -> None:
    for address in (*LISTS, f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c1/"):
        response = signed_in.get(address)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        for tag in re.findall(r"<script[^>]*>", response.content.decode()):
            assert 'src="/static/' in tag or 'type="application/json"' in tag
