"""Plans that people ask for: small ones at once, large ones by a worker, one at a time, few points for viewers."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import User
from farm.fleet.models import Node
from farm.registry.models import PlanOrder, Version
from farm.registry.services import recover_rows
from farm.registry.states import MakingState
from farm.runs import services
from tests.conftest import ApiOf
from tests.integration.dashboard.conftest import client_of

pytestmark = pytest.mark.django_db
RUNTIMES = ["1.29.0", "1.31.1"]


def matrix_of(points: int, **more: object) -> dict[str, Any]:
    return {"budget": "quick", "matrix": {"batch": list(range(1, points // 2 + 1)), "runtime": RUNTIMES, **more}}


def asked(client: Client, version: Version, matrix: object, **more: object) -> Any:
    body = {"version": version.pk, "matrix": matrix, **more}
    return client.post("/api/v1/plan", body, content_type="application/json")


def open_order(user: User, version: Version, **changes: object) -> PlanOrder:
    known = {"asked_by": user, "version": version, "order_json": {}, "order_sha256": "", "points": 2}
    return PlanOrder.objects.create(**{**known, "state": MakingState.MAKING, **changes})


def test_a_viewer_plans_two_hundred_points_and_no_more(
    api_of: ApiOf, viewer: User, member: User, node: Node, version: Version
) -> None:
    assert asked(api_of(viewer), version, matrix_of(200)).json()["cells"] == 200
    refused = asked(api_of(viewer), version, matrix_of(202))
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert "at most 200 points are planned for you, and this matrix has 202" in refused.json()["detail"]
    page = client_of(viewer).post("/runs/plan/", {"version": version.pk, "matrix": json.dumps(matrix_of(202))})
    assert "at most 200 points" in page.content.decode()
    assert asked(api_of(member), version, matrix_of(202)).json()["cells"] == 202
    assert not PlanOrder.objects.exists()


def test_points_that_exclude_takes_out_do_not_count(api_of: ApiOf, viewer: User, node: Node, version: Version) -> None:
    matrix = matrix_of(400, exclude=[{"runtime": RUNTIMES[0]}])
    assert asked(api_of(viewer), version, matrix).json()["cells"] == 200


def test_a_person_has_one_plan_at_a_time(api_of: ApiOf, member: User, owner: User, node: Node, version: Version):
    order = open_order(member, version)
    busy = asked(api_of(member), version, matrix_of(2))
    assert (busy.status_code, busy.json()["code"], busy["Retry-After"]) == (429, "one_plan_at_a_time", "2")
    assert asked(api_of(member), version, matrix_of(600)).status_code == 429
    assert asked(api_of(owner), version, matrix_of(2)).status_code == 200
    order.delete()
    assert asked(api_of(member), version, matrix_of(2)).status_code == 200


def test_a_matrix_that_cannot_be_planned_keeps_nobody_from_the_next(member_api: Client, node: Node, version: Version):
    assert asked(member_api, version, {"matrix": {"runtime": ["9.9.9"]}}).status_code == 422
    assert asked(member_api, version, {"matrix": {"colour": ["red"]}}).status_code == 400
    assert asked(member_api, version, matrix_of(2), wish="soon").status_code == 400
    assert asked(member_api, version, matrix_of(2)).status_code == 200


def test_the_plan_of_a_process_that_died_is_made_by_a_worker_and_then_the_next_is_planned(
    member_api: Client, member: User, node: Node, version: Version
) -> None:
    late = timezone.now() - timedelta(seconds=61)
    order = open_order(
        member, version, order_json={"matrix": matrix_of(2), "seed": 0, "releases": [], "yanked": {}}, asked_at=late
    )
    recover_rows()
    services.make_plan(order.pk)
    order.refresh_from_db()
    assert order.state == MakingState.READY
    assert asked(member_api, version, matrix_of(2)).status_code == 200


def test_a_plan_that_nobody_works_on_keeps_nobody_waiting_for_long(
    member_api: Client, member: User, node: Node, version: Version
) -> None:
    open_order(member, version, asked_at=timezone.now() - timedelta(seconds=121))
    assert asked(member_api, version, matrix_of(2)).status_code == 200


def test_a_large_plan_is_made_by_a_worker(
    api_of: ApiOf, member: User, stranger: User, viewer: User, node: Node, version: Version
) -> None:
    client, matrix = api_of(member), matrix_of(502)
    ordered = asked(client, version, matrix, wish="3%")
    waiting = ordered.json()
    assert (ordered.status_code, waiting["state"], waiting["points"]) == (202, "pending", 502)
    assert client.get(waiting["url"]).status_code == 202
    # asked for again, it is the same order
    assert asked(client, version, matrix, wish="3%").json()["id"] == waiting["id"]
    services.make_plan(waiting["id"])
    services.make_plan(waiting["id"])
    made = client.get(waiting["url"])
    expected = services.plan_run(version=version, matrix={**matrix, "wish": "3%"})
    assert (made.status_code, made.json()) == (200, json.loads(expected.model_dump_json()))
    assert asked(client, version, matrix, wish="3%").json() == made.json()
    for other in (stranger, viewer):
        assert api_of(other).get(waiting["url"]).status_code == 404
    assert asked(client, version, matrix_of(2)).status_code == 200


def test_a_large_plan_that_its_run_would_refuse_is_refused_with_the_same_sentence(member_api: Client, version: Version):
    waiting = asked(member_api, version, matrix_of(502)).json()
    services.make_plan(waiting["id"])
    refused = member_api.get(waiting["url"])
    assert (refused.status_code, refused.json()["code"]) == (422, "plan")
    assert refused.json()["detail"] == services.plan_run(version=version, matrix=matrix_of(2)).problem


@pytest.mark.parametrize("number", ["999999", str(2**63), "0", "-1", "x"])
def test_a_plan_that_does_not_exist_is_said_so(member_api: Client, number: str) -> None:
    assert member_api.get(f"/api/v1/plans/{number}").status_code == 404


def test_plans_of_an_hour_ago_go(member_api: Client, member: User, node: Node, version: Version) -> None:
    old = {"state": MakingState.READY, "finished_at": timezone.now() - timedelta(minutes=61)}
    open_order(member, version, **old)
    asked(member_api, version, matrix_of(2))
    assert not PlanOrder.objects.exists()


def test_the_page_of_a_large_plan_waits_and_then_shows_it(member: User, node: Node, version: Version) -> None:
    client = client_of(member)

    def page(points: int) -> str:
        typed = {"version": version.pk, "matrix": json.dumps(matrix_of(points))}
        return client.post("/runs/plan/", typed).content.decode()

    assert "data-waits" in page(502)
    # another matrix was typed before anybody began
    assert "data-waits" in page(504)
    order = PlanOrder.objects.get()
    assert order.points == 504
    services.make_plan(order.pk)
    assert "data-waits" not in page(504)
    assert "504 cells" in page(504)


def test_a_page_waits_while_another_plan_of_the_same_person_is_made(member: User, node: Node, version: Version) -> None:
    open_order(member, version)
    typed = {"version": version.pk, "matrix": json.dumps(matrix_of(2))}
    assert "data-waits" in client_of(member).post("/runs/plan/", typed).content.decode()
