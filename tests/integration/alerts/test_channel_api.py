"""Channels over HTTP: an admin's, with the scope `admin`; what is secret stays so."""

from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.accounts.states import ALL_OF_A_PERSON
from farm.alerts.models import Channel, Delivery
from tests.conftest import ApiOf

pytestmark = pytest.mark.django_db
JSON = "application/json"
CHANNELS = "/api/v1/channels"
HOOK = {"name": "hook", "kind": "webhook", "target": "https://hooks.example/secret-path?token=s3cret"}


@pytest.fixture
def client(api_of: ApiOf, owner: User) -> Client:
    return api_of(owner, *ALL_OF_A_PERSON)


@pytest.fixture
def channel(client: Client) -> dict[str, Any]:
    made = client.post(CHANNELS, HOOK, content_type=JSON)
    assert made.status_code == 201, made.content
    found: dict[str, Any] = made.json()
    return found


def test_a_channel_is_made_read_silenced_and_removed(client: Client, channel: dict[str, Any]) -> None:
    address = f"{CHANNELS}/{channel['id']}"
    assert (channel["target"], channel["team"], channel["is_active"]) == ("https://hooks.example/…", "vision", True)
    assert client.get(address).json() == channel
    assert client.get(CHANNELS).json() == [channel]
    assert client.patch(address, {"is_active": False}, content_type=JSON).json()["is_active"] is False
    assert client.delete(address).status_code == 204
    assert not Channel.objects.exists()


def test_the_test_button_queues_a_message_that_is_listed(client: Client, channel: dict[str, Any]) -> None:
    tested = client.post(f"{CHANNELS}/{channel['id']}/test", {}, content_type=JSON)
    assert (tested.status_code, tested.json()["kind"], tested.json()["state"]) == (202, "channel.test", "waiting")
    (told,) = client.get(f"{CHANNELS}/{channel['id']}/deliveries").json()
    assert told == tested.json()
    assert Delivery.objects.count() == 1


def test_no_more_than_ten_tests_an_hour_are_sent(client: Client, channel: dict[str, Any]) -> None:
    statuses = [client.post(f"{CHANNELS}/{channel['id']}/test", {}, content_type=JSON).status_code for _ in range(11)]
    assert statuses == [202] * 10 + [429]


def test_a_webhooks_secret_is_shown_and_renewed(client: Client, channel: dict[str, Any]) -> None:
    address = f"{CHANNELS}/{channel['id']}/secret"
    first = client.get(address).json()["secret"]
    assert first.startswith("whsec_")
    renewed = client.post(address, {}, content_type=JSON).json()["secret"]
    assert renewed != first
    assert client.get(address).json()["secret"] == renewed


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"name": ""}, 400, "1 to 100"),
        ({"name": "a\x00b"}, 400, "holds NUL"),
        ({"name": "taken"}, 409, "already a channel"),
        ({"kind": "pigeon"}, 400, "Restart the farm after installing a package"),
        ({"target": "http://hooks.example"}, 400, "https://"),
        ({"target": "ftp://hooks.example"}, 400, "https://"),
        ({"target": "https://user:word@hooks.example"}, 400, "no user"),
        ({"target": "x" * 2001}, 422, "target"),
        ({"kind": "apprise", "target": "json://inner.example"}, 400, "not allowed here"),
        ({"kind": "mail", "target": "nobody"}, 400, "mail"),
        ({"digest": "hourly"}, 400, "digest"),
        ({"team": "elsewhere"}, 404, "elsewhere"),
        ({"colour": 1}, 422, "colour"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(client: Client, changes: dict[str, Any], status: int, words: str):
    client.post(CHANNELS, HOOK | {"name": "taken"}, content_type=JSON)
    answer = client.post(CHANNELS, HOOK | changes, content_type=JSON)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.content
    assert Channel.objects.count() == 1


def test_members_look_strangers_see_nothing_and_tokens_need_the_scope(
    api_of: ApiOf, channel: dict[str, Any], owner: User, member: User, stranger: User
) -> None:
    address = f"{CHANNELS}/{channel['id']}"
    looking, far, weak = api_of(member, *ALL_OF_A_PERSON), api_of(stranger, *ALL_OF_A_PERSON), api_of(owner)
    assert (looking.get(address).status_code, far.get(address).status_code) == (200, 404)
    orders: list[tuple[str, str, dict[str, Any]]] = [
        ("post", f"{address}/test", {}), ("patch", address, {"is_active": False}), ("get", f"{address}/secret", {}),
        ("post", f"{address}/secret", {}), ("delete", address, {}),
    ]  # fmt: skip
    for method, to, body in orders:
        options = {} if method == "get" else {"content_type": JSON}
        assert getattr(looking, method)(to, body, **options).status_code == 403, to
        assert getattr(far, method)(to, body, **options).status_code == 404, to
        assert getattr(weak, method)(to, body, **options).json()["code"] == "scope", to
    assert looking.post(CHANNELS, HOOK | {"name": "other"}, content_type=JSON).status_code == 403
    assert far.get(f"{address}/deliveries").status_code == 404
    assert far.get(CHANNELS).json() == []


def test_a_mail_channel_has_no_secret(client: Client, channel: dict[str, Any]) -> None:
    Channel.objects.filter(pk=channel["id"]).update(kind="mail", target="team@example.org")
    answer = client.get(f"{CHANNELS}/{channel['id']}/secret")
    assert (answer.status_code, answer.json()["code"]) == (400, "not_signed")
