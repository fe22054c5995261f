"""Models that a provider compiled on a node: kept within limits, offered with what they are for, to members alone."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Membership, Team, User
from farm.accounts.states import Role
from farm.base.refusals import Conflict, TooLarge, Unprocessable
from farm.contract.blocks import Lease
from farm.contract.node import MAX_COMPILED_BYTES
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import Blob, Version
from farm.registry.states import FileRole
from farm.runs import services
from farm.runs.models import Attempt, CompiledModel, RetentionRule, Run, Trace
from farm.runs.selectors.retention import list_due_removals
from farm.runs.services import node_files, retention
from farm.runs.services.endings import remove_files_of_attempt
from tests.integration.runs.making import first_block, make_node, make_run, make_version, post
from tests.unit.rules.making import make_check, make_facts, make_rounds

pytestmark = pytest.mark.django_db
QNN = "QNNExecutionProvider"
MODEL = b"a model of one node, EPContext"


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    tags = {"cpu": "a probe", "x86": "x86_64", "qnn-simulated": "a probe"}
    return make_node(team, owner=owner, providers=["CPUExecutionProvider", QNN], tags=tags)


@pytest.fixture
def version(team: Team) -> Version:
    return make_version(team, is_quantised=True)


@pytest.fixture
def run(node: Node, version: Version, member: User) -> Run:
    asked = {
        "runtime": ["onnxruntime-qnn==2.7.0"],
        "provider": [{"name": "qnn", "options": {"soc_model": "57"}}, "cpu"],
        "hardware": ["qnn-simulated"],
        "batch": [1],
    }
    return make_run(version, member, matrix=asked)


def arm_on(lease: Lease, provider: str) -> int:
    return next(arm.arm for arm in lease.order.arms if arm.cell.provider == provider)


def send(node: Node, lease: Lease, *, arm: int, chunks: Any = (MODEL,)) -> str:
    order = lease.order
    return services.accept_compiled(
        node=node, block_id=order.block, attempt=order.attempt, token=lease.token, arm=arm, chunks=chunks
    )


def finish(node: Node, lease: Lease) -> None:
    medians = {arm.arm: 1.0 for arm in lease.order.arms}
    facts = {"provider_facts": {"device": "CPU of Qualcomm"}, "is_simulated": True}
    checks = [make_check(arm).model_copy(update=facts) for arm in medians]
    for report in (make_facts(), *checks, *make_rounds(8, medians), EndReport(wall_s=1.0)):
        post(node, lease, report)


def names(run: Run) -> dict[int, str]:
    return {row.number: row.name for row in first_block(run).arms.all()}


def test_a_compiled_model_is_offered_with_what_it_was_compiled_for(
    member_api: Client, node: Node, run: Run, lease: Lease
) -> None:
    digest = send(node, lease, arm=arm_on(lease, QNN))
    assert digest == sha256(MODEL).hexdigest()
    assert send(node, lease, arm=arm_on(lease, QNN)) == digest
    finish(node, lease)
    name = names(run)[arm_on(lease, QNN)]
    told = member_api.get(f"/api/v1/runs/{run.pk}/cells/{name}/compiled").json()
    assert (told["sha256"], told["bytes"], told["provider"]) == (digest, len(MODEL), QNN)
    assert told["provider_options"]["soc_model"] == "57"
    assert told["runtime"] == "onnxruntime-qnn==2.7.0"
    assert told["simulated"]
    assert told["sentence"].startswith("Compiled by QNNExecutionProvider (")
    assert "soc_model=57" in told["sentence"]
    assert "a simulator" in told["sentence"]
    answer = member_api.get(told["url"])
    assert b"".join(answer) == MODEL
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="encoder-int8-qnn-ctx.onnx"'


def test_its_cells_page_offers_it_to_members_and_tells_viewers_of_it(
    client: Client, team: Team, member: User, stranger: User, node: Node, run: Run, lease: Lease
) -> None:
    send(node, lease, arm=arm_on(lease, QNN))
    finish(node, lease)
    name = names(run)[arm_on(lease, QNN)]
    client.force_login(member)
    page = client.get(f"/runs/{run.pk}/cells/{name}/").content.decode()
    assert "Compiled model" in page
    assert f"/api/v1/runs/{run.pk}/cells/{name}/compiled.onnx" in page
    Membership.objects.create(team=team, user=stranger, role=Role.VIEWER)
    client.force_login(stranger)
    page = client.get(f"/runs/{run.pk}/cells/{name}/").content.decode()
    assert "Compiled by QNNExecutionProvider" in page
    assert "compiled.onnx" not in page
    assert client.get(f"/api/v1/runs/{run.pk}/cells/{name}/compiled.onnx").status_code == 403


def test_a_cell_without_one_says_when_there_is_one(member_api: Client, node: Node, run: Run) -> None:
    answer = member_api.get(f"/api/v1/runs/{run.pk}/cells/c1/compiled")
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith(f"Nothing was compiled for cell c1 of run {run.pk}: a provider that")


def test_what_no_node_should_send_is_refused(node: Node, lease: Lease, run: Run) -> None:
    qnn = arm_on(lease, QNN)
    with pytest.raises(Unprocessable, match="Nothing is compiled for arm 99"):
        send(node, lease, arm=99)
    with pytest.raises(Unprocessable, match="Nothing is compiled for arm"):
        send(node, lease, arm=arm_on(lease, "CPUExecutionProvider"))
    with pytest.raises(Unprocessable, match="The compiled model is empty"):
        send(node, lease, arm=qnn, chunks=())
    with pytest.raises(TooLarge):
        send(node, lease, arm=qnn, chunks=(bytes(2**20) for _ in range(MAX_COMPILED_BYTES // 2**20 + 1)))
    Trace.objects.create(
        attempt=Attempt.objects.get(), arm=0, trace_round=0, sha256="f" * 64, bytes=node_files.MAX_BYTES
    )
    with pytest.raises(TooLarge, match="are kept"):
        send(node, lease, arm=qnn)
    assert CompiledModel.objects.count() == 0
    assert not Blob.objects.filter(sha256=sha256(MODEL).hexdigest()).exists()


def test_an_attempt_that_is_over_keeps_nothing_more_and_one_that_came_to_nothing_leaves_nothing(
    node: Node, lease: Lease, run: Run
) -> None:
    qnn = arm_on(lease, QNN)
    send(node, lease, arm=qnn)
    remove_files_of_attempt(Attempt.objects.get(block=first_block(run)))
    assert CompiledModel.objects.count() == 0
    assert not Blob.objects.filter(sha256=sha256(MODEL).hexdigest()).exists()
    finish(node, lease)
    with pytest.raises(Conflict):
        send(node, lease, arm=qnn)


def traces_go(team: Team, owner: User) -> RetentionRule:
    """A rule for traces that acts now."""
    services.set_retention(team=team, by=owner, timings_days=None, traces_days=30, models_days=None)
    RetentionRule.objects.update(acts_from=timezone.now(), acted_at=None)
    return RetentionRule.objects.get()


def test_it_goes_with_the_traces_of_its_run_and_is_said_to_be_gone(
    member_api: Client,
    team: Team,
    owner: User,
    member: User,
    node: Node,
    run: Run,
    lease: Lease,
    django_capture_on_commit_callbacks: Any,
) -> None:
    digest = send(node, lease, arm=arm_on(lease, QNN))
    finish(node, lease)
    services.conclude_runs()
    rule = traces_go(team, owner)
    assert [(one.kind, one.count) for one in list_due_removals(rule)] == [("raw traces", 0), ("compiled models", 0)]
    assert services.retain() == 0
    Run.objects.update(finished_at=timezone.now() - timedelta(days=31))
    rule = traces_go(team, owner)
    said = [(one.kind, one.days, one.count, one.bytes) for one in list_due_removals(rule)]
    assert said[1] == ("compiled models", 30, 1, len(MODEL))
    path = storage.blob_path(team_id=team.pk, sha256=digest)
    assert path.is_file()
    with django_capture_on_commit_callbacks(execute=True):
        assert services.retain() == 1
    assert not CompiledModel.objects.exists()
    assert not path.exists()
    names_of = names(run)
    address = f"/api/v1/runs/{run.pk}/cells/{names_of[arm_on(lease, QNN)]}/compiled"
    for gone in (member_api.get(address), member_api.get(f"{address}.onnx")):
        assert gone.status_code == 410
        assert gone.json()["detail"].startswith(f"The compiled models of run {run.pk} were removed on ")
    # another cell of the run never had one, and the twin is the same cell
    other = names_of[arm_on(lease, "CPUExecutionProvider")]
    assert member_api.get(f"/api/v1/runs/{run.pk}/cells/{other}/compiled").status_code == 404
    client = Client()
    client.force_login(member)
    pages = [client.get(f"/runs/{run.pk}/cells/{name}/").content.decode() for name in names_of.values()]
    assert [f"The compiled models of run {run.pk} were removed on " in page for page in pages] == [
        arm == arm_on(lease, QNN) for arm in names_of
    ]


def test_many_go_in_steps_and_one_that_is_uploaded_as_a_model_keeps_its_file(
    team: Team,
    owner: User,
    node: Node,
    run: Run,
    lease: Lease,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    digest = send(node, lease, arm=arm_on(lease, QNN))
    finish(node, lease)
    services.conclude_runs()
    Run.objects.update(finished_at=timezone.now() - timedelta(days=31))
    kept = CompiledModel.objects.get()
    others = range(70, 70 + retention.FILES_AT_ONCE)
    CompiledModel.objects.bulk_create(CompiledModel(attempt=kept.attempt, arm=arm, blob=kept.blob) for arm in others)
    used = make_version(team, name="uploaded again")
    used.artifact.files.create(blob=kept.blob, name="again.onnx", role=FileRole.MODEL)
    rule = traces_go(team, owner)
    # one file, whoever names it
    assert [(one.count, one.bytes) for one in list_due_removals(rule)][1] == (retention.FILES_AT_ONCE + 1, len(MODEL))
    moments = iter([True, False])
    counts, is_done = retention._apply_rule(rule, timezone.now(), lambda: next(moments))
    assert (counts["compiled"], is_done, CompiledModel.objects.count()) == (retention.FILES_AT_ONCE, False, 1)
    with django_capture_on_commit_callbacks(execute=True):
        assert services.retain() == 1
    assert not CompiledModel.objects.exists()
    assert storage.blob_path(team_id=team.pk, sha256=digest).is_file()
