"""Runs over HTTP, as programs see them: statuses, documents, conditional reading, and who may see what."""

import csv
import gzip
import io
from typing import Any

import pytest
from django.http import FileResponse
from django.test import Client

from farm.accounts.models import User
from farm.contract.blocks import Lease
from farm.contract.document import Document
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import services
from farm.runs.models import Run, Trace
from tests.conftest import ApiOf
from tests.integration.runs.making import PAIR, claim, first_block, post

pytestmark = pytest.mark.django_db
READ = ("/api/v1/runs/{id}", "/api/v1/runs/{id}/results", "/api/v1/runs/{id}/results.csv", "/api/v1/runs/{id}/events")
WRITE = ("/api/v1/runs/{id}/cancel", "/api/v1/runs/{id}/more")


def order(measured: Version, **changes: Any) -> dict[str, Any]:
    return {"version": measured.pk, "matrix": {"matrix": PAIR}, **changes}


def post_json(client: Client, address: str, body: Any) -> Any:
    return client.post(address, body, content_type="application/json")


def test_a_plan_shows_cells_minutes_and_refused_points(member_api: Client, node: Node, version: Version):
    matrix = {"matrix": {**PAIR, "provider": ["cpu", "openvino"]}}
    plan = post_json(member_api, "/api/v1/plan", order(version, matrix=matrix)).json()
    assert (plan["cells"], len(plan["blocks"]), len(plan["refused"])) == (2, 1, 2)
    assert plan["refused"][0]["reason"]["code"] == "provider_not_in_build"
    assert plan["blocks"][0]["comparisons"][0]["smallest_detectable"] > 0
    assert plan["minutes"] > 0
    assert Run.objects.count() == 0


def test_a_run_is_started_followed_and_read(member_api: Client, node: Node, version: Version) -> None:
    started = post_json(member_api, "/api/v1/runs", order(version))
    assert started.status_code == 201
    run = started.json()
    assert (run["state"], run["progress"]["cells_planned"], run["progress"]["cells_done"]) == ("running", 2, 0)
    assert run["url"].endswith(f"/runs/{run['id']}/")
    assert [one["id"] for one in member_api.get("/api/v1/runs").json()] == [run["id"]]
    kinds = [event["kind"] for event in member_api.get(f"/api/v1/runs/{run['id']}/events").json()]
    assert kinds == ["run_started"]


def test_a_matrix_may_be_sent_as_the_text_of_its_file(member_api: Client, node: Node, version: Version):
    text = "runtime: [1.29.0, 1.31.1]\nbatch: 1\n"
    assert post_json(member_api, "/api/v1/runs", order(version, matrix=text)).status_code == 201


def test_without_a_matrix_the_default_one_is_planned(member_api: Client, node: Node, version: Version) -> None:
    assert post_json(member_api, "/api/v1/plan", {"version": version.pk}).json()["cells"] == 8


def test_a_plan_of_a_release_that_does_not_exist_is_refused_as_its_run_would_be(
    member_api: Client, node: Node, version: Version
) -> None:
    wrong = order(version, matrix={"runtime": ["1.31.99", "1.31.1"]})
    planned, started = (post_json(member_api, f"/api/v1/{path}", wrong) for path in ("plan", "runs"))
    assert (planned.status_code, planned.json()["code"]) == (422, "plan")
    assert planned.json()["detail"] == started.json()["detail"]
    assert "1.31.99" in planned.json()["detail"]


def test_a_plan_that_no_node_takes_is_refused_as_its_run_would_be(member_api: Client, version: Version):
    planned = post_json(member_api, "/api/v1/plan", order(version))
    assert (planned.status_code, planned.json()["code"]) == (422, "plan")


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"matrix": {"runtme": ["1.31.1"]}}, 400, "runtime"),
        ({"matrix": "a: ["}, 400, "line"),
        ({"matrix": 7}, 422, "matrix"),
        ({"version": 999_999}, 404, "999999"),
        ({"version": "x"}, 422, "version"),
        ({"version": 2**70}, 422, "version"),
        ({"seed": -1}, 422, "seed"),
        ({"matrix": {"runtime": ["1.31.99"]}}, 422, "1.31"),
    ],
)
def test_an_order_that_cannot_be_is_refused_in_one_sentence(
    member_api: Client, node: Node, version: Version, changes: dict[str, Any], status: int, words: str
) -> None:
    answer = post_json(member_api, "/api/v1/runs", order(version, **changes))
    assert answer.status_code == status
    assert words in answer.json()["detail"]
    assert Run.objects.count() == 0


def test_the_document_is_a_bench_document(member_api: Client, done: Run) -> None:
    answer = member_api.get(f"/api/v1/runs/{done.pk}/results")
    document = Document.model_validate_json(answer.content)
    assert answer.json()["schema"] == "onnxfarm.bench/1"
    assert len(document.cells) == 3
    assert document.comparisons[0].verdict == "slower"


def test_the_table_has_a_line_a_cell_and_no_formula(member_api: Client, done: Run) -> None:
    done.version.model.name = "=cmd()"
    done.version.model.save()
    answer = member_api.get(f"/api/v1/runs/{done.pk}/results.csv")
    lines = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [line["id"] for line in lines] == ["c1", "c2", "c1.twin"]
    assert float(lines[0]["p50_ms"]) == pytest.approx(1.0, rel=0.05)
    assert not any(value.startswith("=") for line in lines for value in line.values())


def test_raw_timings_of_a_cell_are_downloaded_by_those_who_may_see_the_run(
    api_of: ApiOf, member: User, stranger: User, done: Run
) -> None:
    address = f"/api/v1/runs/{done.pk}/cells/c2/timings.csv"
    answer = api_of(member).get(address)
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["round"] for row in rows} == {str(number) for number in range(8)}
    assert all(int(row["ns"]) > 0 for row in rows)
    assert "c2.timings.csv" in answer.headers["Content-Disposition"]
    assert api_of(stranger).get(address).status_code == 404
    assert Client().get(address).status_code == 401
    missing = api_of(member).get(f"/api/v1/runs/{done.pk}/cells/c9/timings.csv")
    assert (missing.status_code, "c9" in missing.json()["detail"]) == (404, True)


def test_what_has_not_changed_is_not_sent_again(member_api: Client, run: Run, node: Node) -> None:
    for address in (f"/api/v1/runs/{run.pk}", f"/api/v1/runs/{run.pk}/results"):
        tag = member_api.get(address).headers["ETag"]
        again = member_api.get(address, headers={"if-none-match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert member_api.get(address, headers={"if-none-match": '"other"'}).status_code == 200
    tag = member_api.get(f"/api/v1/runs/{run.pk}").headers["ETag"]
    claim(node, first_block(run))
    assert member_api.get(f"/api/v1/runs/{run.pk}", headers={"if-none-match": tag}).status_code == 200


def test_following_a_run_costs_few_questions(member_api: Client, run: Run, django_assert_max_num_queries: Any):
    member_api.get(f"/api/v1/runs/{run.pk}")
    # the last of them: what it waits for, when it begins by what is ahead of it, and how long it will take
    with django_assert_max_num_queries(15):
        member_api.get(f"/api/v1/runs/{run.pk}")


def test_events_go_on_after_the_last_one_read(member_api: Client, done: Run) -> None:
    every = member_api.get(f"/api/v1/runs/{done.pk}/events").json()
    assert every[-1]["kind"] == "run_finished"
    assert member_api.get(f"/api/v1/runs/{done.pk}/events?after={every[1]['id']}").json() == every[2:]


def test_a_run_is_cancelled_and_continued(member_api: Client, done: Run, run: Run) -> None:
    more = post_json(member_api, f"/api/v1/runs/{done.pk}/more", {"rounds": 4, "blocks": ["b1"]})
    assert (more.status_code, more.json()["state"]) == (200, "running")
    cancelled = post_json(member_api, f"/api/v1/runs/{done.pk}/cancel", {})
    # what was measured before is all that the run was planned for
    assert (cancelled.json()["state"], cancelled.json()["outcome"]) == ("finished", "complete")
    assert post_json(member_api, f"/api/v1/runs/{done.pk}/more", {"rounds": 0}).status_code == 400
    unknown = post_json(member_api, f"/api/v1/runs/{done.pk}/more", {"rounds": 4, "blocks": ["x"]})
    assert (unknown.status_code, unknown.json()["detail"]) == (
        400,
        "“x” is no block: give its number, such as 3 or b3.",
    )


@pytest.mark.parametrize("address", READ)
def test_members_and_viewers_read_and_others_do_not_know_it_exists(
    api_of: ApiOf, owner: User, viewer: User, stranger: User, done: Run, address: str
) -> None:
    where = address.format(id=done.pk)
    assert api_of(owner).get(where).status_code == 200
    assert api_of(viewer).get(where).status_code == 200
    assert api_of(stranger).get(where).status_code == 404
    assert Client().get(where).status_code == 401
    assert api_of(owner).get(address.format(id=999_999)).status_code == 404


@pytest.mark.parametrize("address", WRITE)
def test_only_members_change_a_run(api_of: ApiOf, member: User, viewer: User, stranger: User, done: Run, address: str):
    where, body = address.format(id=done.pk), {"rounds": 4, "blocks": [1]}
    assert post_json(Client(), where, body).status_code == 401
    assert post_json(api_of(stranger), where, body).status_code == 404
    assert post_json(api_of(viewer), where, body).status_code == 403
    assert post_json(api_of(member, "read"), where, body).status_code == 403
    assert post_json(api_of(member), where, body).status_code == 200


def test_a_raw_trace_is_downloaded_by_those_who_may_see_the_run(
    api_of: ApiOf, member: User, stranger: User, run: Run, node: Node, lease: Lease
) -> None:
    packed = gzip.compress(b'[{"cat": "Node"}]')
    services.accept_trace(
        node=node, block_id=lease.order.block, attempt=1, token=lease.token, place=(0, 0), chunks=[packed]
    )
    post(node, lease, EndReport())
    address = f"/api/v1/traces/{Trace.objects.get().pk}.json"
    answer = api_of(member).get(address, headers={"accept-encoding": "gzip, br"})
    assert isinstance(answer, FileResponse)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert b"".join(answer.streaming_content) == packed
    plain = api_of(member).get(address)
    assert isinstance(plain, FileResponse)
    assert {"Content-Encoding", "Content-Length"}.isdisjoint(plain.headers)
    assert b"".join(plain.streaming_content) == b'[{"cat": "Node"}]'
    (cell,) = {arm.name for arm in run.blocks.get().arms.filter(number=0)}
    (listed,) = api_of(member).get(f"/api/v1/runs/{run.pk}/cells/{cell}/traces").json()
    assert (listed["url"], listed["round"]) == (address, 0)
    assert api_of(stranger).get(address).status_code == 404
    assert Client().get(address).status_code == 401
