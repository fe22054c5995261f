"""Watches over HTTP: every address for owner, viewer and stranger, and what cannot be used."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from farm.accounts.models import User
from farm.accounts.states import Scope
from farm.alerts.models import Watch, WatchRound
from farm.registry.models import Version
from farm.rules.findings.kinds import KEYS
from tests.conftest import ApiOf
from tests.integration.alerts.driving import Lab, make_watch, offer

pytestmark = pytest.mark.django_db
JSON = "application/json"
WATCHES = "/api/v1/watches"


def order(**changes: Any) -> dict[str, Any]:
    known = {"name": "nightly", "reference": "1.29.0", "models": ["encoder"], "matrix": {"batch": [1]}}
    return {**known, **changes}


def test_a_watch_is_made_read_changed_and_removed(client: Client, version: Version) -> None:
    made = client.post(WATCHES, order(models=[version.model.name], schedule="0 3 * * 1"), content_type=JSON)
    assert made.status_code == 201, made.content
    watch = made.json()
    assert (watch["team"], watch["reference"], watch["is_active"]) == ("vision", "1.29.0", True)
    assert watch["models"] == [{"id": version.model.pk, "name": version.model.name}]
    assert watch["matrix"]["matrix"] == {"batch": [1]}
    assert watch["next_at"] is not None
    assert watch["url"].endswith(f"/watches/{watch['id']}/")
    address = f"{WATCHES}/{watch['id']}"
    assert client.get(address).json() == watch
    assert [one["id"] for one in client.get(WATCHES).json()] == [watch["id"]]
    changes = {"is_active": False, "rule": {"latency": 0.1}, "schedule": "", "matrix": None}
    changed = client.patch(address, changes, content_type=JSON).json()
    assert (changed["is_active"], changed["rule"]["latency"], changed["next_at"]) == (False, 0.1, None)
    assert changed["matrix"]["matrix"] != {"batch": [1]}
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404


def test_a_watch_may_be_made_paused_and_by_label_and_number(client: Client, version: Version) -> None:
    made = client.post(WATCHES, order(models=[version.model.pk], label="prod", is_active=False), content_type=JSON)
    assert (made.json()["label"], made.json()["is_active"]) == ("prod", False)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"name": ""}, 400, "name"),
        ({"name": "x" * 101}, 422, "name"),
        ({"name": "upgrades"}, 409, "already a watch"),
        ({"reference": "1.17.2"}, 400, "nearest"),
        ({"reference": "latest"}, 400, "not a version"),
        ({"reference": None}, 422, "reference"),
        ({"models": []}, 400, "model"),
        ({"models": ["no such"]}, 404, "no such"),
        ({"models": ["nul\x00"]}, 400, "holds NUL"),
        ({"models": [999]}, 404, "999"),
        ({"models": [10**30]}, 404, ""),
        ({"matrix": {"runtime": ["1.31.1"]}}, 400, "leave `runtime` out"),
        ({"matrix": {"btch": [1]}}, 400, "did you mean 'batch'"),
        ({"matrix": {"opset": [21, "max-of-runtime"]}}, 400, "max-of-runtime"),
        ({"matrix": {"include": [{"opset": "max-of-runtime"}]}}, 400, "opset max-of-runtime gives each release"),
        ({"matrix": "batch: [one]"}, 400, "'one'"),
        ({"rule": {"latency": -1}}, 400, "latency"),
        ({"rule": {"kinds": ["slow"]}}, 400, "kinds"),
        ({"schedule": "every day"}, 400, "five fields"),
        ({"schedule": "0 0 31 4 *"}, 400, "five fields"),
        ({"distribution": "onnxruntimes"}, 400, "did you mean 'onnxruntime'"),
        ({"team": "elsewhere"}, 404, "elsewhere"),
        ({"channels": [7]}, 404, "channel 7"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    client: Client, watch: Watch, changes: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post(WATCHES, order(models=[watch.watched.get().pk]) | changes, content_type=JSON)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    assert Watch.objects.count() == 1


def test_viewers_look_and_strangers_see_nothing(api_of: ApiOf, watch: Watch, viewer: User, stranger: User) -> None:
    address = f"{WATCHES}/{watch.pk}"
    looking, far = api_of(viewer), api_of(stranger)
    assert looking.get(address).status_code == 200
    for method, to, body in (
        ("patch", address, {"is_active": False}),
        ("delete", address, {}),
        ("post", f"{address}/call", {"candidate": "1.31.1"}),
    ):
        assert getattr(looking, method)(to, body, content_type=JSON).status_code == 403
        assert getattr(far, method)(to, body, content_type=JSON).status_code == 404
    for page in ("", "/rounds", "/points"):
        assert far.get(address + page).status_code == 404
    assert far.get(WATCHES).json() == []
    assert looking.post(WATCHES, order(), content_type=JSON).status_code == 403


def test_a_token_to_read_changes_nothing(api_of: ApiOf, watch: Watch, member: User) -> None:
    reading = api_of(member, Scope.READ)
    answer = reading.post(f"{WATCHES}/{watch.pk}/call", {}, content_type=JSON)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope")
    assert reading.get(f"{WATCHES}/{watch.pk}").status_code == 200


def test_a_pipeline_calls_a_watch_and_reads_its_round_and_points(client: Client, watch: Watch, lab: Lab) -> None:
    offer("1.29.0", "1.30.0")
    called = client.post(f"{WATCHES}/{watch.pk}/call", {"candidate": "1.31.1"}, content_type=JSON)
    assert called.status_code == 202, called.content
    (one,) = called.json()
    assert (one["cause"], one["old"], one["new"], one["state"]) == ("call", "1.29.0", "1.31.1", "waiting")
    lab.live()
    rounds = client.get(f"{WATCHES}/{watch.pk}/rounds").json()
    mine = next(found for found in rounds if found["id"] == one["id"])
    assert (mine["state"], mine["outcome"], mine["compared"]) == ("judged", "quiet", 1)
    points = client.get(f"{WATCHES}/{watch.pk}/points").json()
    assert {point["runtime"] for point in points} >= {"onnxruntime==1.31.1"}
    line = client.get(f"{WATCHES}/{watch.pk}/points", {"series": points[0]["series"], "limit": 1}).json()
    assert line == points[:1]
    assert WatchRound.objects.filter(cause="call").count() == 1


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"candidate": "1.29.0"}, 400, "Both sides are 1.29.0"),
        ({"candidate": "9.9"}, 400, "nearest"),
        ({"baseline": "nothing"}, 400, "not a version"),
        ({"versions": [999]}, 404, "999"),
        ({"candidat": "1.31.1"}, 422, "candidat"),
    ],
)
def test_a_call_that_cannot_be_meant_starts_nothing(
    client: Client, watch: Watch, body: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post(f"{WATCHES}/{watch.pk}/call", body, content_type=JSON)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    assert not WatchRound.objects.exists()


@pytest.mark.parametrize("address", [WATCHES, f"{WATCHES}/1", f"{WATCHES}/1/rounds", f"{WATCHES}/1/points"])
def test_nobody_reads_without_a_token(db: None, address: str) -> None:
    assert Client().get(address).status_code == 401


def test_a_rule_of_before_that_named_every_kind_alerts_on_those_that_came_later(
    watch: Watch, version: Version, owner: User
) -> None:
    assert "kinds" not in watch.rule_json
    before = ["parity", "failed", "slower", "placement", "ttft", "session", "first", "memory", "growth"]
    some = make_watch(version, owner, name="some", rule={"kinds": ["slower"]})
    Watch.objects.filter(pk=watch.pk).update(rule_json={"latency": 0.1, "kinds": before})
    import_module("farm.alerts.migrations.0005_kinds_of_later").name_no_kinds(apps, connection.schema_editor())
    rule = Watch.objects.get(pk=watch.pk).rule
    assert (rule.latency, rule.kinds) == (0.1, KEYS)
    assert Watch.objects.get(pk=some.pk).rule.kinds == ("slower",)
