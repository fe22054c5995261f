"""A token that may only gate: what branches upload, what is measured of it, and what it never gets to see."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import Membership, Team, User
from farm.accounts.services import issue_token
from farm.accounts.states import Scope
from farm.alerts.selectors.releases import newest_ready_version
from farm.api.api import ROUTERS
from farm.api.auth import GATED
from farm.fleet.models import Node
from farm.registry import services
from farm.registry.models import EvaluationData, Model, Version
from farm.registry.selectors import newest_version_states
from farm.runs.selectors.compared_versions import previous_version
from farm.runs.selectors.pages import last_runs
from tests.conftest import ApiOf
from tests.integration.dashboard.rows import make_node, make_version
from tests.integration.registry.uploading import File, part_of, upload_and_inspect

pytestmark = pytest.mark.django_db
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAIR = {"matrix": {"runtime": ["1.29.0"], "batch": [1]}, "models": ["cnn_dyn@1"]}
NO_DEFAULT = {"model": "cnn_dyn", "branch": "faster", "commit": COMMIT}


@pytest.fixture
def gate(member: User) -> Client:
    return client_of(issue_token(member, [Scope.GATE])[1])


@pytest.fixture
def own(member_api: Client, models: Path) -> Version:
    """The newest of the model's own line."""
    return upload_and_inspect(member_api, models / "cnn_dyn.onnx")


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner)


def client_of(secret: str) -> Client:
    return Client(headers={"authorization": f"Bearer {secret}"})


def sent(client: Client, file: File, said: dict[str, str], **fields: File) -> Any:
    form = {name: part_of(part) for name, part in fields.items()}
    return client.post("/api/v1/uploads", {"files": [part_of(file)], **said, **form})


def branch_version(client: Client, file: File, said: dict[str, str] = NO_DEFAULT) -> Version:
    answer = sent(client, file, said)
    assert answer.status_code in (200, 202), answer.json()
    services.inspect_version(answer.json()["id"])
    return Version.objects.get(pk=answer.json()["id"])


def post_json(client: Client, path: str, body: Any) -> Any:
    return client.post(f"/api/v1/{path}", body, content_type="application/json")


def test_a_gate_uploads_what_a_branch_has_measures_it_and_reads_its_run_alone(
    gate: Client, member: User, member_api: Client, own: Version, node: Node, models: Path
) -> None:
    version = branch_version(gate, models / "relu_op13_ir7.onnx")
    assert (version.model, version.number, version.branch, version.commit) == (own.model, 2, "faster", COMMIT)
    # or a machine without walls would measure whatever a branch has as its owner's own
    assert (version.uploaded_by, own.uploaded_by) == (None, member)
    seen = gate.get(f"/api/v1/versions/{version.pk}").json()
    assert (seen["state"], seen["branch"], seen["commit"]) == ("ready", "faster", COMMIT)
    order = {"version": version.pk, "matrix": PAIR}
    assert post_json(gate, "plan", order).status_code == 200
    run = post_json(gate, "runs", order).json()
    assert [gate.get(f"/api/v1/runs/{run['id']}{rest}").status_code for rest in ("", "/results")] == [200, 200]
    others = post_json(member_api, "runs", order).json()["id"]
    second = client_of(issue_token(member, [Scope.GATE])[1])
    assert [
        client.get(f"/api/v1/runs/{number}").status_code for client, number in ((gate, others), (second, run["id"]))
    ] == [
        404,
        404,
    ]
    assert gate.get(f"/api/v1/versions/{own.pk}").status_code == 200
    assert member_api.get(f"/api/v1/runs/{run['id']}").status_code == 200


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ({"branch": ""}, 400, "no_branch"),
        ({"branch": " "}, 400, "no_branch"),
        ({"branch": "x" * 256}, 400, "bad_branch"),
        ({"branch": "x\n::error::y"}, 400, "bad_branch"),
        ({"branch": "x\x00"}, 400, "bad_branch"),
        ({"commit": "HEAD"}, 400, "bad_commit"),
        ({"commit": "0" * 65}, 400, "bad_commit"),
        ({"model": "another"}, 404, "not_found"),
        ({"team": "elsewhere"}, 403, "not_allowed"),
    ],
)
def test_a_gate_uploads_nothing_else(
    gate: Client, own: Version, models: Path, said: dict[str, str], status: int, code: str
) -> None:
    answer = sent(gate, models / "relu_op13_ir7.onnx", NO_DEFAULT | said)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (Version.objects.count(), Model.objects.count()) == (1, 1)


def test_a_gate_of_one_team_finds_nothing_of_its_persons_other_teams(
    member: User, own: Version, team: Team, node: Node
) -> None:
    other = Team.objects.create(name="other")
    Membership.objects.create(team=other, user=member)
    version = make_version(other, member)
    gate = client_of(issue_token(member, [Scope.GATE], team=team.name)[1])
    order = {"version": version.pk, "matrix": {"matrix": PAIR["matrix"]}}
    assert [post_json(gate, path, order).status_code for path in ("plan", "runs")] == [404, 404]
    assert gate.get(f"/api/v1/versions/{version.pk}").status_code == 404
    assert sent(gate, ("a.onnx", b"x"), NO_DEFAULT | {"team": "other"}).status_code == 403
    elsewhere = client_of(issue_token(member, [Scope.GATE], team="other")[1])
    assert post_json(elsewhere, "runs", {"version": own.pk}).status_code == 404
    begun = {"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Metadata": "filename YS5vbm54"}
    key = gate.post("/api/v1/uploads/files", headers=begun)["Location"].rpartition("/")[2]
    assert [client.head(f"/api/v1/uploads/files/{key}", headers=begun).status_code for client in (gate, elsewhere)] == [
        200,
        404,
    ]


def test_a_gate_changes_nothing_of_the_models_own_line(gate: Client, own: Version, models: Path) -> None:
    same = branch_version(gate, models / "cnn_dyn.onnx")
    assert (same.pk, same.branch, same.commit, same.sent_at) == (own.pk, "", "", None)
    Version.objects.filter(pk=own.pk).update(removed_at="2026-01-01T00:00Z")
    again = branch_version(gate, models / "cnn_dyn.onnx")
    own.refresh_from_db()
    assert (again.branch, own.removed_at is None) == ("faster", False)


def test_labelled_data_of_a_branch_stay_with_its_version(
    gate: Client, member_api: Client, models: Path, own: Version
) -> None:
    labelled = ("evaluation.npz", b"not looked at here")
    measured = upload_and_inspect(member_api, models / "cnn_dyn.onnx", evaluation=labelled)
    before = EvaluationData.objects.get(version=measured)
    answer = sent(gate, models / "cnn_dyn.onnx", NO_DEFAULT | {"recipe": "top5"}, evaluation=labelled)
    assert Version.objects.get(pk=answer.json()["id"]).branch == "faster"
    before.refresh_from_db()
    assert before.recipe_json == EvaluationData.objects.get(version=measured).recipe_json


def test_the_newest_is_never_a_branchs_until_its_files_come_to_the_models_own_line(
    gate: Client, member_api: Client, own: Version, node: Node, models: Path
) -> None:
    branch = branch_version(gate, models / "relu_op13_ir7.onnx")
    post_json(gate, "runs", {"version": branch.pk, "matrix": PAIR})
    assert newest_ready_version(own.model) == own
    assert last_runs([own.model]) == {}
    assert previous_version(branch) == own
    Version.objects.filter(pk=branch.pk).update(state="rejected")
    assert newest_version_states([own.model]) == {own.model_id: "ready"}
    Version.objects.filter(pk=branch.pk).update(state="ready")
    said = {"model": "cnn_dyn", "commit": "f" * 40}
    merged = branch_version(member_api, models / "relu_op13_ir7.onnx", said)
    assert (merged.number, merged.branch, merged.commit, merged.artifact) == (3, "", "f" * 40, branch.artifact)
    assert newest_ready_version(own.model) == merged
    assert previous_version(merged) == own


def test_a_branch_that_sends_the_same_again_has_one_version_of_it(gate: Client, own: Version, models: Path) -> None:
    first = branch_version(gate, models / "relu_op13_ir7.onnx")
    again = branch_version(gate, models / "relu_op13_ir7.onnx", NO_DEFAULT | {"branch": "other", "commit": "e" * 40})
    assert (again.pk, again.branch, again.commit) == (first.pk, "other", "e" * 40)
    assert first.sent_at is not None
    assert again.sent_at is not None
    assert again.sent_at > first.sent_at


def test_every_operation_that_takes_a_gates_token_says_what_it_may_do_there() -> None:
    views = [view for router in ROUTERS for path in router.path_operations.values() for view in path.operations]
    gated = [view for view in views if view.auth_param is GATED]
    assert len(gated) == 11
    said = {view.view_func.__name__: " ".join((view.view_func.__doc__ or "").split()) for view in gated}
    assert [name for name, text in said.items() if "token that may only gate" not in text] == []


def test_a_gates_token_is_for_one_team_and_nothing_beside(api_of: ApiOf, owner: User, team: Team) -> None:
    maker = api_of(owner, Scope.WRITE, Scope.ADMIN)
    made = post_json(maker, "tokens", {"scopes": ["gate"], "team": team.name})
    assert (made.status_code, made.json()["scopes"], made.json()["team"]) == (201, ["gate"], "vision")
    bad = (
        ({"scopes": ["gate", "read"]}, "gate_alone"),
        ({"scopes": ["gate", "read", "write"]}, "gate_alone"),
        ({"scopes": ["read"], "team": team.name}, "gate_alone"),
        ({"scopes": ["gate"], "team": "elsewhere"}, "not_found"),
    )
    for body, code in bad:
        assert post_json(maker, "tokens", body).json()["code"] == code
    assert owner.tokens.filter(team=team).count() == 1


def test_a_viewer_has_no_team_to_gate_for(viewer: User, api_of: ApiOf, team: Team) -> None:
    answer = post_json(api_of(viewer, Scope.WRITE, Scope.ADMIN), "tokens", {"scopes": ["gate"], "team": team.name})
    assert answer.json()["code"] == "not_allowed"
    assert not viewer.tokens.filter(scopes=["gate"]).exists()


def test_the_settings_page_makes_and_lists_a_token_for_gates(client: Client, owner: User, team: Team) -> None:
    client.force_login(owner)
    page = client.get("/settings/tokens/").content.decode()
    assert 'name="scopes" value="gate"' in page
    assert f"<option>{team.name}</option>" in page
    refused = client.post("/settings/tokens/", {"scopes": ["gate", "write"]})
    assert refused.status_code == 400
    assert "ofk_" in client.post("/settings/tokens/", {"scopes": ["gate"], "team": team.name}).content.decode()
    assert (owner.tokens.get().scopes, owner.tokens.get().team) == (["gate"], team)
