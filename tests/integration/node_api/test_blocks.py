"""Claim, heartbeat, report, trace and files over HTTP: statuses, sizes, and who may read what."""

import gzip
import json
import zlib
from hashlib import sha256

import pytest
from django.http import FileResponse

from farm.accounts.models import Team, User
from farm.contract.node import MAX_REPORT_BYTES, MAX_TRACE_UNPACKED_BYTES, UNDERSTANDS_HEADER
from farm.contract.reports import EndReport, Report
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import EvaluationData
from farm.registry.states import MakingState
from farm.runs import services as runs
from farm.runs.models import Block, Run, Trace
from farm.runs.models import Report as ReportRow
from tests.integration.node_api.calls import NodeClient
from tests.integration.runs.making import first_block, make_blob, make_run, make_version
from tests.unit.rules.making import make_check, make_facts, make_sample

pytestmark = pytest.mark.django_db
# inputs and outputs of a decoder with one layer
DECODER = (
    [
        {"name": "input_ids", "dtype": "int64", "shape": ("N", "sequence")},
        *({"name": f"past_{part}_0", "dtype": "float32", "shape": ("N", 2, "past", 8)} for part in ("key", "value")),
    ],
    [
        {"name": "logits", "dtype": "float32", "shape": ("N", "sequence", 100)},
        *({"name": f"present_{part}_0", "dtype": "float32", "shape": ("N", 2, "all", 8)} for part in ("key", "value")),
    ],
)
CHROME = b'[{"cat": "Node", "name": "MatMul_kernel_time", "dur": 12}]'


@pytest.fixture
def run(machine: NodeClient, team: Team, member: User) -> Run:
    return make_run(make_version(team), member)


@pytest.fixture
def block(run: Run) -> Block:
    return first_block(run)


@pytest.fixture
def token(machine: NodeClient, block: Block) -> str:
    return str(machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}).json()["token"])


def send(machine: NodeClient, block: Block, token: str, report: Report, attempt: int = 1) -> tuple[int, object]:
    body = json.dumps({"attempt": attempt, "report": report.model_dump(mode="json")})
    answer = machine.post(f"blocks/{block.pk}/reports", body, token=token)
    return answer.status_code, answer.json()


def test_a_block_from_claim_to_end_over_http(machine: NodeClient, block: Block, token: str) -> None:
    assert machine.post(f"blocks/{block.pk}/heartbeat", {"attempt": 1}, token=token).json() == {"lease_s": 30.0}
    for report in (make_facts(), make_check(0), EndReport()):
        status, reply = send(machine, block, token, report)
        assert (status, set(reply)) == (200, {"go_on", "trace_arms", "trace_rounds"})
    assert Block.objects.get(pk=block.pk).state == "reported"
    assert machine.post(f"blocks/{block.pk}/heartbeat", {"attempt": 1}, token=token).status_code == 409


@pytest.mark.parametrize(
    ("address", "body", "status"),
    [
        ("claim", {"attempt": 2}, 409),
        ("claim", {"attempt": 0}, 422),
        ("claim", {}, 422),
        ("claim", {"attempt": 1, "force": True}, 422),
        ("heartbeat", {"attempt": 1}, 409),
        ("reports", {"attempt": 1, "report": {"kind": "end"}}, 409),
        ("reports", {"attempt": 1, "report": {"kind": "gossip"}}, 422),
        ("reports", {"attempt": 1, "report": {"kind": "end", "wall_s": "NaN"}}, 422),
    ],
)
def test_requests_that_may_not_be(
    machine: NodeClient, block: Block, address: str, body: dict[str, object], status: int
) -> None:
    answer = machine.post(f"blocks/{block.pk}/{address}", body)
    assert answer.status_code == status
    assert set(answer.json()) <= {"detail", "code", "hint"}
    assert Block.objects.get(pk=block.pk).state == "queued"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "-1", "1e999"])
def test_a_report_with_a_number_that_is_none_is_refused(machine: NodeClient, block: Block, token: str, number: str):
    body = f'{{"attempt": 1, "report": {{"kind": "end", "wall_s": {number}}}}}'
    assert machine.post(f"blocks/{block.pk}/reports", body, token=token).status_code == 422
    assert ReportRow.objects.count() == 0


@pytest.mark.parametrize(
    ("understands", "is_asked"),
    [("traced-rounds", True), ("something-later, traced-rounds", True), ("", False), ("traced-round,,", False)],
)
def test_rounds_are_traced_by_nodes_that_understand_it_and_the_others_get_the_order_that_they_know(
    machine: NodeClient, team: Team, member: User, understands: str, is_asked: bool
) -> None:
    block = first_block(make_run(make_version(team), member, operators=True))
    headers = {UNDERSTANDS_HEADER: understands} if understands else {}
    order = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **headers).json()["order"]
    assert ("is_tracing_rounds" in order) is is_asked
    assert order.get("is_tracing_rounds", False) is is_asked


@pytest.mark.parametrize(("understands", "scenario"), [("traced-rounds, scenarios", "sustained:1"), ("", None)])
def test_a_node_of_before_scenarios_gets_the_order_to_work_on_that_it_knows(
    machine: NodeClient, team: Team, member: User, understands: str, scenario: str | None
) -> None:
    block = first_block(make_run(make_version(team), member, scenario="sustained:1"))
    headers = {UNDERSTANDS_HEADER: understands} if understands else {}
    order = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **headers).json()["order"]
    assert order["sustained_s"] == 60.0
    assert order["arms"][0]["cell"]["workload"].get("scenario") == scenario


def test_a_node_of_before_scenarios_is_not_given_one_that_it_does_not_know(
    machine: NodeClient, team: Team, member: User
) -> None:
    block = first_block(make_run(make_version(team), member, scenario="fresh"))
    answer = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_offered")
    assert answer.json()["detail"].startswith("The agent is older than the scenario 'fresh': upgrade it")
    assert Block.objects.get(pk=block.pk).state == "queued"


@pytest.mark.parametrize("told", [{"phases": [{"name": "seq=4", "metrics": {"p50_ms": 1.0}}]}, {"tokens": [7, 8]}])
def test_phases_or_tokens_of_a_scenario_that_has_none_are_refused(
    machine: NodeClient, block: Block, token: str, told: dict[str, object]
) -> None:
    sample = make_sample(1.0).model_dump(mode="json")
    places = [{"arm": 0, "position": 0, "sample": {**sample, **told}}]
    body = json.dumps({"attempt": 1, "report": {"kind": "round", "round": 0, "samples": places}})
    answer = machine.post(f"blocks/{block.pk}/reports", body, token=token)
    assert (answer.status_code, next(iter(told)) in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("times", [[1.0] * 2001, [-1.0], ["many"], [1e300], [None]])
def test_times_of_nodes_that_are_none_or_too_many_are_refused(
    machine: NodeClient, block: Block, token: str, times: list[object]
) -> None:
    sample = make_sample(1.0).model_dump(mode="json")
    places = [{"arm": 0, "position": 0, "sample": {**sample, "nodes_us": times}}]
    body = json.dumps({"attempt": 1, "report": {"kind": "round", "round": 0, "samples": places}})
    assert machine.post(f"blocks/{block.pk}/reports", body, token=token).status_code == 422
    assert not ReportRow.objects.exists()


def test_a_report_over_the_limit_is_refused(machine: NodeClient, block: Block, token: str) -> None:
    report = make_check(0, log_tail="x" * 20_000).model_dump_json()
    padded = f'{{"attempt": 1, "report": {report}}}' + " " * MAX_REPORT_BYTES
    assert machine.post(f"blocks/{block.pk}/reports", padded, token=token).status_code == 413


def test_a_forged_token_is_403_and_a_stale_attempt_409(machine: NodeClient, block: Block, token: str) -> None:
    assert send(machine, block, "ofa_forged", make_check(0))[0] == 403
    assert send(machine, block, token, make_check(0), attempt=2)[0] == 409
    assert ReportRow.objects.count() == 0


def test_a_raw_trace_is_kept_under_its_digest(machine: NodeClient, block: Block, token: str) -> None:
    packed = gzip.compress(CHROME)
    for _ in range(2):
        answer = machine.put(f"blocks/{block.pk}/traces/0/0?attempt=1", packed, token=token)
        assert answer.json() == {"sha256": sha256(packed).hexdigest()}
    trace = Trace.objects.get()
    assert storage.blob_path(team_id=block.run.team_id, sha256=trace.sha256).read_bytes() == packed


@pytest.mark.parametrize(
    "body",
    [b"", b"not gzip", CHROME, gzip.compress(b"not json"), gzip.compress(CHROME)[:-4], gzip.compress(CHROME) + b"x"],
    # said, since gzip writes the time into its head, and the processes of a run must collect the same names
    ids=["nothing", "not gzip", "not packed", "not JSON", "cut short", "too long"],
)
def test_what_is_no_trace_is_refused_and_leaves_nothing(machine: NodeClient, block: Block, token: str, body: bytes):
    answer = machine.put(f"blocks/{block.pk}/traces/0/0?attempt=1", body, token=token)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_trace")
    assert Trace.objects.count() == 0
    assert list(storage.incoming_dir().iterdir()) == []


def test_a_trace_that_unpacks_to_gigabytes_is_refused(machine: NodeClient, block: Block, token: str) -> None:
    packer = zlib.compressobj(wbits=31)
    head = packer.compress(b"[") + packer.flush(zlib.Z_FULL_FLUSH)
    # what is flushed stands for itself, and may be repeated
    spaces = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = head + spaces * (MAX_TRACE_UNPACKED_BYTES // 2**20)
    assert machine.put(f"blocks/{block.pk}/traces/0/0?attempt=1", bomb, token=token).status_code == 413


@pytest.mark.parametrize("place", ["9/0", "0/999", "x/0"])
def test_a_trace_of_an_arm_that_is_not_there_is_refused(machine: NodeClient, block: Block, token: str, place: str):
    answer = machine.put(f"blocks/{block.pk}/traces/{place}?attempt=1", gzip.compress(CHROME), token=token)
    assert answer.status_code in (404, 422)


def test_a_node_reads_the_files_of_its_block_and_no_others(machine: NodeClient, block: Block, token: str, team: Team):
    artifact = block.run.version.artifact.files.get().blob
    other = make_version(team, name="secret").artifact.files.get().blob
    for blob in (artifact, other):
        path = storage.blob_path(team_id=team.pk, sha256=blob.sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"onnx")
    answer = machine.get(f"files/{artifact.sha256}", token=token)
    assert isinstance(answer, FileResponse)
    assert b"".join(answer.streaming_content) == b"onnx"
    assert machine.get(f"files/{other.sha256}", token=token).status_code == 404
    assert machine.get("files/../../etc/passwd", token=token).status_code == 404
    assert machine.get(f"files/{artifact.sha256}").status_code == 403


def test_files_are_closed_when_the_block_is_over(machine: NodeClient, block: Block, token: str, owner: User) -> None:
    digest = block.run.version.artifact.files.get().blob.sha256
    runs.cancel_run(run=block.run, by=owner)
    assert machine.get(f"files/{digest}", token=token).status_code == 409


def test_another_node_s_token_opens_no_file(machine: NodeClient, block: Block, token: str, team: Team, owner: User):
    thief = NodeClient("thief")
    thief.enrol(fleet.invite(team=team, by=owner, auto_approve=True)[1])
    thief.ask_for_secret()
    digest = block.run.version.artifact.files.get().blob.sha256
    assert thief.get(f"files/{digest}", token=token).status_code == 403
    assert Node.objects.count() == 2


def test_a_claim_asks_the_database_few_questions(
    machine: NodeClient, block: Block, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(22):
        assert machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}).status_code == 200


def test_a_part_of_a_model_that_nobody_asked_for_is_refused(machine: NodeClient, block: Block, token: str) -> None:
    answer = machine.put(f"blocks/{block.pk}/parts/0?attempt=1", b"PK\x03\x04", token=token)
    assert (answer.status_code, answer.json()["code"]) == (422, "implausible")
    assert machine.put(f"blocks/{block.pk}/parts/0?attempt=2", b"PK", token=token).status_code == 409


@pytest.mark.parametrize("understands", ["traced-rounds, scenarios, prompts", "scenarios"])
def test_given_prompts_are_named_and_read_by_nodes_that_understand_them_alone(
    machine: NodeClient, team: Team, member: User, understands: str
) -> None:
    blob, version = make_blob(team, "prompts"), make_version(team, inputs=DECODER[0], outputs=DECODER[1])
    version.artifact.prompts = blob
    version.artifact.prompts_json = {"sha256": blob.sha256, "rows": 1, "tokens": 3}
    version.artifact.save()
    path = storage.blob_path(team_id=team.pk, sha256=blob.sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"ids")
    scenarios = ["generate:new=8", "generate:prompt=16:new=8"]
    run = make_run(version, member, matrix={"runtime": ["1.31.1"], "scenario": scenarios})
    given, drawn = run.blocks.order_by("number")
    headers = {UNDERSTANDS_HEADER: understands}
    answer = machine.post(f"blocks/{given.pk}/claim", {"attempt": 1}, **headers)
    if "prompts" not in understands:
        assert (answer.status_code, answer.json()["code"]) == (409, "not_offered")
        assert answer.json()["detail"].startswith("The agent is older than prompts that are given: upgrade it")
        arm = machine.post(f"blocks/{drawn.pk}/claim", {"attempt": 1}, **headers).json()["order"]["arms"][0]
        assert "prompts" not in arm
        return
    lease = answer.json()
    assert lease["order"]["arms"][0]["prompts"]["sha256"] == blob.sha256
    file = machine.get(f"files/{blob.sha256}", token=lease["token"])
    assert isinstance(file, FileResponse)
    assert b"".join(file.streaming_content) == b"ids"


def test_the_call_of_a_cell_is_told_to_nodes_that_understand_it_alone(
    machine: NodeClient, team: Team, member: User
) -> None:
    block = make_run(make_version(team), member, matrix={"runtime": ["1.31.1"], "call": ["run"]}).blocks.get()
    answer = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **{UNDERSTANDS_HEADER: "scenarios"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_offered")
    assert answer.json()["detail"].startswith("The agent is older than `call: run`: upgrade it")
    lease = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **{UNDERSTANDS_HEADER: "calls"}).json()
    assert lease["order"]["arms"][0]["cell"]["session"]["call"] == "run"


def test_four_bits_are_told_to_nodes_that_understand_them_alone(machine: NodeClient, team: Team, member: User) -> None:
    run = make_run(make_version(team), member, matrix={"runtime": ["1.31.1"], "precision": ["int4"]})
    block = run.blocks.get()
    answer = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **{UNDERSTANDS_HEADER: "scenarios"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_offered")
    assert answer.json()["detail"].startswith("The agent is older than 4-bit weights: upgrade it")
    lease = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **{UNDERSTANDS_HEADER: "scenarios, int4"}).json()
    assert lease["order"]["arms"][0]["cell"]["recipe"]["precision"] == "int4"


@pytest.mark.parametrize(("metric", "is_new"), [("top1", False), ("cosine", True)])
def test_a_new_accuracy_metric_is_told_to_nodes_that_understand_it_alone(
    machine: NodeClient, team: Team, member: User, metric: str, is_new: bool
) -> None:
    version = make_version(team)
    EvaluationData.objects.create(
        version=version, given=make_blob(team, "given"), data=make_blob(team, "accepted"), state=MakingState.READY,
        recipe_json={"metric": metric}, samples=100,
    )  # fmt: skip
    block = make_run(version, member, matrix={"runtime": ["1.31.1"]}).blocks.get()
    if is_new:
        answer = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **{UNDERSTANDS_HEADER: "scenarios"})
        assert (answer.status_code, answer.json()["code"]) == (409, "not_offered")
    headers = {UNDERSTANDS_HEADER: "accuracies"} if is_new else {}
    lease = machine.post(f"blocks/{block.pk}/claim", {"attempt": 1}, **headers).json()
    assert lease["order"]["arms"][0]["evaluation"]["recipe"]["metric"] == metric
