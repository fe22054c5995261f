"""Channels in the settings: added, tried out, silenced, removed; what failed for good is shown."""

import re

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.alerts.models import Channel, Delivery
from farm.alerts.services.channels import create_channel
from farm.alerts.services.channels import test_channel as try_channel
from farm.alerts.states import DeliveryState
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, count_queries

pytestmark = pytest.mark.django_db
HOOK = "https://example.org/hook?key=hidden"


@pytest.fixture
def channel(team: Team, owner: User) -> Channel:
    return create_channel(team=team, by=owner, name="hook", kind="webhook", target=HOOK)


def test_a_channel_is_added_and_its_secrets_stay_hidden(signed_in: Client) -> None:
    assert "No channels yet" in assert_is_page(signed_in.get("/settings/channels/"))
    given = {"team": "vision", "name": "hook", "kind": "webhook", "target": HOOK, "digest": "week"}
    words = assert_is_page(signed_in.post("/settings/channels/", given, follow=True))
    assert "“hook” was added" in words
    assert "https://example.org/…" in words
    assert "hidden" not in words
    assert Channel.objects.get().digest == "week"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"kind": "pigeon"}, "kind"),
        ({"kind": "mail", "target": "team@example.org"}, "kind"),
        ({"digest": "hour"}, "digest"),
        ({"target": "http://example.org/"}, "target"),
        ({"target": "not an address"}, "target"),
        ({"kind": "apprise", "target": "nonsense://x"}, "target"),
        ({"target": "https://example.org/" + "x" * 1000}, "target"),
        ({"team": "elsewhere"}, "team"),
    ],
)
def test_a_bad_channel_keeps_what_was_typed_and_marks_its_field(signed_in: Client, changes: dict[str, str], field: str):
    given = {"team": "vision", "name": "hook", "kind": "webhook", "target": "https://example.org/", "digest": "never"}
    response = signed_in.post("/settings/channels/", given | changes)
    assert 400 <= response.status_code < 500
    text = response.content.decode()
    assert f'{field}-error">' in text
    assert f'value="{(given | changes)["target"]}"' in text
    assert not Channel.objects.exists()


def test_a_test_message_goes_out_and_its_fate_is_shown(signed_in: Client, channel: Channel) -> None:
    words = assert_is_page(signed_in.post(f"/settings/channels/{channel.pk}/test/", follow=True))
    assert "gets a test message" in words
    assert "channel.test" in words
    assert "waiting" in words
    assert Delivery.objects.get().channel == channel


def test_what_failed_for_good_is_shown_first(signed_in: Client, channel: Channel, owner: User) -> None:
    one = try_channel(channel=channel, by=owner)
    Delivery.objects.filter(pk=one.pk).update(
        state=DeliveryState.FAILED, tries=9, problem="example.org answered 410 Gone."
    )
    for address in ("/settings/channels/", f"/settings/channels/{channel.pk}/"):
        words = assert_is_page(signed_in.get(address))
        assert "1 message failed permanently; last error: example.org answered 410 Gone." in words


def test_a_secret_is_shown_on_demand_and_renewed(signed_in: Client, channel: Channel) -> None:
    def secret(what: str) -> str:
        text = signed_in.post(f"/settings/channels/{channel.pk}/{what}/").content.decode()
        found = re.search(r"whsec_[\w+/=]+", text)
        return found[0]

    assert "whsec_" not in signed_in.get(f"/settings/channels/{channel.pk}/").content.decode()
    first = secret("secret")
    assert secret("secret") == first
    assert secret("renew") != first


def test_a_channel_is_silenced_told_again_and_removed(signed_in: Client, channel: Channel) -> None:
    assert "paused" in assert_is_page(signed_in.post(f"/settings/channels/{channel.pk}/silence/", follow=True))
    assert "is resumed" in assert_is_page(signed_in.post(f"/settings/channels/{channel.pk}/listen/", follow=True))
    assert "is removed" in assert_is_page(signed_in.post(f"/settings/channels/{channel.pk}/remove/", follow=True))
    assert_is_page(signed_in.get(f"/settings/channels/{channel.pk}/"), 404)


def test_only_admins_change_channels(member: User, stranger: User, channel: Channel) -> None:
    client = client_of(member)
    assert "Admins of a team add and change its channels" in assert_is_page(client.get("/settings/channels/"))
    assert "Send a test" not in assert_is_page(client.get(f"/settings/channels/{channel.pk}/"))
    for what in ("test", "remove", "secret", "renew", "silence"):
        assert_is_page(client.post(f"/settings/channels/{channel.pk}/{what}/"), 403)
        assert_is_page(client_of(stranger).post(f"/settings/channels/{channel.pk}/{what}/"), 404)
    assert_is_page(client.post(f"/settings/channels/{channel.pk}/explode/"), 404)
    refused = client.post("/settings/channels/", {"name": "mine", "kind": "webhook", "target": "https://a.example/"})
    assert refused.status_code == 403


def test_the_settings_take_as_many_queries_for_many_channels_as_for_few(signed_in: Client, team: Team, owner: User):
    def add(number: int) -> None:
        one = create_channel(team=team, by=owner, name=f"c{number}", kind="webhook", target="https://example.org/")
        try_channel(channel=one, by=owner)

    for number in range(2):
        add(number)
    few = count_queries(signed_in, "/settings/channels/")
    for number in range(2, 9):
        add(number)
    assert count_queries(signed_in, "/settings/channels/") == few <= 13
