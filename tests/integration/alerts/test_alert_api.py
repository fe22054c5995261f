"""Alerts over HTTP: the lists, one alert with its log, and each order for member, viewer and stranger."""

from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.accounts.states import Scope
from farm.alerts.models import Alert, Watch
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.conftest import ApiOf
from tests.integration.alerts.driving import Lab, offer, slower_alert, slower_from
from tests.integration.dashboard.rows import begin_run
from tests.integration.dashboard.watching import bare_alert

pytestmark = pytest.mark.django_db
JSON = "application/json"
ALERTS = "/api/v1/alerts"
LATER = "2099-12-24T08:00:00Z"


@pytest.fixture
def alert(watch: Watch, node: Node, version: Version) -> Alert:
    """An alert of a release that is slower, with what was looked into."""
    return slower_alert(node)


@pytest.fixture
def known(watch: Watch, node: Node, version: Version, member: User) -> Alert:
    """An alert whose run was started and measured nothing yet: all that orders look at, in milliseconds."""
    one = bare_alert(watch, version, bad="1.30.0")
    one.symptoms.update(run=begin_run(version, member))
    return one


def post(client: Client, alert: Alert, what: str, **body: Any) -> Any:
    return client.post(f"{ALERTS}/{alert.pk}/{what}", body, content_type=JSON)


def test_an_alert_is_listed_and_read_with_its_evidence_and_log(client: Client, alert: Alert) -> None:
    (listed,) = client.get(ALERTS).json()
    assert (listed["id"], listed["state"], listed["release"]) == (alert.pk, "open", "onnxruntime==1.30.0")
    page = client.get(f"{ALERTS}/{alert.pk}").json()
    assert {key: page[key] for key in listed} == listed
    (symptom,) = page["symptoms"]
    assert (symptom["kind"], symptom["run"] is not None) == ("slower", True)
    kinds = [one["kind"] for one in page["investigations"]]
    assert kinds == ["since_when", "work_around"]
    assert page["investigations"][0]["answer"]["first_bad"] == "1.30.0"
    assert [one["kind"] for one in page["events"]] == ["opened", "explained"]


def test_lists_are_narrowed_by_state_watch_and_model(client: Client, alert: Alert) -> None:
    for asked, count in (
        ({"list": "resolved"}, 0),
        ({"list": "all"}, 1),
        ({"watch": alert.watch_id}, 1),
        ({"watch": alert.watch_id + 1}, 0),
        ({"model": alert.model_id}, 1),
        ({"model": alert.model_id + 1}, 0),
        ({"after": 1}, 0),
    ):
        assert len(client.get(ALERTS, asked).json()) == count, asked
    assert client.get(ALERTS, {"list": "closed"}).status_code == 422
    assert client.get(ALERTS, {"watch": "one"}).status_code == 422


def test_every_order_is_an_arrow_with_a_line_in_the_log(client: Client, alert: Alert, owner: User) -> None:
    page = post(client, alert, "acknowledge", note="mine").json()
    assert (page["state"], page["assignee"], page["note"]) == ("acknowledged", "member", "mine")
    assert post(client, alert, "assign", assignee="owner").json()["assignee"] == "owner"
    assert post(client, alert, "notes", note="asked upstream").json()["note"] == "asked upstream"
    page = post(client, alert, "snooze", until=LATER).json()
    assert (page["is_snoozed"], page["snoozed_until"]) == (True, LATER)
    assert [one["id"] for one in client.get(ALERTS, {"list": "snoozed"}).json()] == [alert.pk]
    assert post(client, alert, "snooze", release="1.32.0").json()["snoozed_for"] == "1.32.0"
    assert post(client, alert, "snooze", release="  ").status_code == 400
    assert post(client, alert, "invalid", reason="another machine").json()["state"] == "invalid"
    assert post(client, alert, "reopen", note="no").json()["state"] == "open"
    assert post(client, alert, "assign", assignee="owner").json()["state"] == "acknowledged"
    page = post(client, alert, "infra", reason="the disk was full").json()
    assert page["state"] == "infra"
    told = [(one["kind"], one["by"]) for one in page["events"][2:]]
    assert told == [
        ("acknowledged", "member"), ("acknowledged", "member"), ("note", "member"), ("snoozed", "member"),
        ("snoozed", "member"), ("invalid", "member"), ("reopened", "member"), ("acknowledged", "member"),
        ("infra", "member"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "body", "status", "words"),
    [
        ("acknowledge", {"assignee": "stranger"}, 400, "is not in team"),
        ("acknowledge", {"assignee": "viewer"}, 400, "may not change alerts"),
        ("acknowledge", {"note": "x" * 4001}, 422, "note"),
        ("assign", {"assignee": ""}, 400, "is not in team"),
        ("assign", {}, 422, "assignee"),
        ("snooze", {}, 400, "either a date or a release"),
        ("snooze", {"until": LATER, "release": "1.32.0"}, 400, "not both"),
        ("snooze", {"until": "2020-01-01T00:00:00Z"}, 400, "is in the past"),
        ("snooze", {"until": "2099-12-24T08:00"}, 400, "no time zone"),
        ("snooze", {"until": "soon"}, 422, "until"),
        ("snooze", {"release": "soon"}, 400, "not a version"),
        ("snooze", {"release": "1.30.0"}, 400, "not later than 1.30.0"),
        ("snooze", {"release": "onnxruntime==1.29.0"}, 400, "not later than 1.30.0"),
        ("invalid", {"reason": "  "}, 400, "Give a reason"),
        ("invalid", {"reason": "\x00"}, 400, "holds NUL"),
        ("invalid", {}, 422, "reason"),
        ("infra", {"reason": ""}, 400, "Give a reason"),
        ("reopen", {}, 409, "is open already"),
        ("notes", {"note": ""}, 400, "Give a reason"),
        ("notes", {"text": "x"}, 422, "text"),
        ("bisections", {"good": "1.30.0", "bad": "1.29.0"}, 400, "swap them"),
        ("bisections", {"good": "1.17.2"}, 400, "nearest"),
        ("work-arounds", {"optimizers": ["rm -rf"]}, 400, "letters and digits"),
        ("delete", {}, 404, "nothing at"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    client: Client, known: Alert, viewer: User, stranger: User, what: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = post(client, known, what, **body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    known.refresh_from_db()
    assert (known.state, known.events.count()) == ("open", 1)


def test_viewers_look_and_strangers_see_nothing(api_of: ApiOf, alert: Alert, viewer: User, stranger: User) -> None:
    looking, far = api_of(viewer), api_of(stranger)
    assert looking.get(f"{ALERTS}/{alert.pk}").status_code == 200
    orders = {
        "acknowledge": {}, "assign": {"assignee": "viewer"}, "snooze": {"until": LATER}, "invalid": {"reason": "x"},
        "infra": {"reason": "x"}, "reopen": {}, "notes": {"note": "x"}, "bisections": {}, "work-arounds": {},
    }  # fmt: skip
    for what, body in orders.items():
        assert post(looking, alert, what, **body).status_code in (400, 403), what
        assert post(far, alert, what, **body).status_code == 404, what
    assert far.get(ALERTS, {"list": "all"}).json() == []
    investigation = alert.investigations.first()
    for address in (
        f"{ALERTS}/{alert.pk}",
        f"{ALERTS}/{alert.pk}/bisections",
        f"/api/v1/investigations/{investigation.pk}",
    ):
        assert (looking.get(address).status_code, far.get(address).status_code) == (200, 404)
    assert alert.events.count() == 2


def test_a_token_to_read_orders_nothing(api_of: ApiOf, alert: Alert, member: User) -> None:
    assert post(api_of(member, Scope.READ), alert, "acknowledge").json()["code"] == "scope"


def test_a_bisection_is_asked_for_again_followed_and_answered(client: Client, alert: Alert, node: Node) -> None:
    offer("1.29.0", "1.30.0", "1.31.0")
    asked = post(client, alert, "bisections", good="1.29.0", bad="1.31.0")
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    again = post(client, alert, "bisections")
    assert (again.status_code, again.json()["code"]) == (409, "being_asked")
    Lab(node, p50_ms=slower_from("1.30.0")).live()
    found = client.get(f"/api/v1/investigations/{asked.json()['id']}").json()
    assert (found["state"], found["answer"]["first_bad"]) == ("answered", "1.30.0")
    assert [step["version"] for step in found["steps"]] == ["1.31.0", "1.30.0"]
    assert len(client.get(f"{ALERTS}/{alert.pk}/bisections").json()) == 2


def test_a_work_around_is_asked_for_by_name(client: Client, alert: Alert) -> None:
    asked = post(client, alert, "work-arounds", optimizers=["BiasSoftmaxFusion"])
    assert (asked.status_code, asked.json()["asked"]) == (202, {"given": ["BiasSoftmaxFusion"]})
