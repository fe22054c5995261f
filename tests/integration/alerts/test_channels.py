"""Telling people: what is refused, what is tried again, and what arrives."""

import ipaddress
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.alerts.channels import webhook
from farm.alerts.channels.addresses import is_allowed, parse_webhook_url, resolve_target
from farm.alerts.channels.channel_kind import DeliveryProblem
from farm.alerts.models import AlertEvent, Channel, Delivery, Watch
from farm.alerts.services import channels, deliveries, digests, triage
from farm.alerts.services.announcements import queue_message
from farm.alerts.states import DeliveryState
from farm.base.refusals import Invalid, NotAllowed
from farm.registry.models import Version
from tests.integration.alerts.receiver import Receiver, receiving
from tests.integration.dashboard.watching import bare_alert

LOOPBACK = ["127.0.0.0/8"]


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_NETWORKS = LOOPBACK
    with receiving() as one:
        yield one


def make_channel(team: Team, by: User, target: str, kind: str = "webhook", **how: Any) -> Channel:
    return channels.create_channel(team=team, by=by, name=f"to {kind}", kind=kind, target=target, **how)


@pytest.mark.django_db
def test_a_test_message_arrives_signed_with_the_channels_secret(team: Team, owner: User, receiver: Receiver) -> None:
    channel = make_channel(team, owner, receiver.url)
    receiver.secret = channels.read_secret(channel=channel, by=owner)
    delivery = channels.test_channel(channel=channel, by=owner)
    assert deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, receiver.ids) == (DeliveryState.SENT, [delivery.message_id])
    assert receiver.verified()["type"] == "channel.test"
    assert not deliveries.deliver(delivery.pk)
    assert len(receiver.seen) == 1


@pytest.mark.django_db
def test_a_renewed_secret_signs_instead_of_the_old_one(team: Team, owner: User, receiver: Receiver) -> None:
    channel = make_channel(team, owner, receiver.url)
    old = channels.read_secret(channel=channel, by=owner)
    receiver.secret = channels.renew_secret(channel=channel, by=owner)
    assert receiver.secret != old
    deliveries.deliver(channels.test_channel(channel=channel, by=owner).pk)
    assert receiver.verified()


@pytest.mark.django_db
def test_a_receiver_that_fails_is_asked_again_with_the_same_id(team: Team, owner: User, receiver: Receiver) -> None:
    receiver.answers = [500, 429, 200]
    delivery = channels.test_channel(channel=make_channel(team, owner, receiver.url), by=owner)
    for _ in range(2):
        assert not deliveries.deliver(delivery.pk)
        delivery.refresh_from_db()
        assert delivery.state == DeliveryState.WAITING
        assert delivery.due_at > timezone.now()
        assert not deliveries.deliver(delivery.pk), "it is not due yet"
        Delivery.objects.update(due_at=timezone.now())
    assert deliveries.deliver(delivery.pk)
    assert receiver.ids == [delivery.message_id] * 3


@pytest.mark.django_db
@pytest.mark.parametrize("answer", [302, 400, 404, 410])
def test_an_answer_that_stays_is_a_failure_that_is_shown(team: Team, owner: User, receiver: Receiver, answer: int):
    receiver.answers = [answer]
    delivery = channels.test_channel(channel=make_channel(team, owner, receiver.url), by=owner)
    deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.FAILED
    assert "rejected the message" in delivery.problem
    assert "secret" not in delivery.problem
    assert len(receiver.seen) == 1, "no redirect is followed"


@pytest.mark.django_db
def test_after_many_tries_it_is_given_up(team: Team, owner: User, receiver: Receiver) -> None:
    receiver.answers = [503]
    delivery = channels.test_channel(channel=make_channel(team, owner, receiver.url), by=owner)
    for _ in range(deliveries.MAX_TRIES):
        Delivery.objects.update(due_at=timezone.now())
        deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == (DeliveryState.FAILED, deliveries.MAX_TRIES)


@pytest.mark.parametrize("how", [{"pause_s": 60.0}, {"drip": True}], ids=["silent", "dripping"])
def test_a_receiver_that_never_answers_is_left_after_seconds(how: dict[str, Any]) -> None:
    started = time.monotonic()
    with receiving(**how) as receiver, pytest.raises(DeliveryProblem, match="no answer within") as problem:
        webhook.post(receiver.url, b"{}", headers={}, networks=LOOPBACK, timeout_s=1.0)
    assert not problem.value.is_permanent
    assert time.monotonic() - started < 30


def test_nobody_listening_is_worth_another_try() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(DeliveryProblem, match="cannot be reached") as problem:
            webhook.post(url, b"{}", headers={}, networks=LOOPBACK)
    assert not problem.value.is_permanent


INNER = [
    "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.2.1",
    "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "fec0::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a00:1::1",
    "2001:0:a00:1::", "2001:0:808:808:0:0:80ff:fffe", "::127.0.0.1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_an_inner_address_is_refused_in_every_wrapping(address: str) -> None:
    assert not is_allowed(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"]
)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(ipaddress.ip_address(address))


def test_a_named_network_is_allowed_and_no_other() -> None:
    networks = [ipaddress.ip_network("10.1.0.0/16")]
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.2.3"), networks)


def test_plain_http_is_for_the_named_networks_and_not_for_the_internet() -> None:
    with pytest.raises(DeliveryProblem, match="starts with https://") as problem:
        resolve_target("http://1.1.1.1/hook", networks=LOOPBACK)
    assert problem.value.is_permanent
    assert not resolve_target("http://127.0.0.1/hook", networks=LOOPBACK).url.is_tls


def test_every_address_of_a_name_has_to_be_allowed() -> None:
    answers = [(0, 0, 0, "", ("1.1.1.1", 443)), (0, 0, 0, "", ("10.0.0.1", 443))]
    with pytest.raises(DeliveryProblem, match="inside a network") as problem:
        resolve_target("https://example.org/", lookup=lambda *_, **__: answers)
    assert problem.value.is_permanent


def test_a_name_is_looked_up_once_and_its_answer_is_what_is_connected_to() -> None:
    asked: list[str] = []

    def lookup(host: str, *rest: Any, **more: Any) -> Any:
        asked.append(host)
        return socket.getaddrinfo("127.0.0.1", *rest, **more)

    with receiving() as receiver:
        url = f"http://hook.example:{receiver.server.server_port}/x"
        webhook.post(url, b"{}", headers={}, networks=LOOPBACK, lookup=lookup)
        assert receiver.seen[0][0]["host"].startswith("hook.example:")
    assert asked == ["hook.example"]


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "https://", "//example.org", "https://user:pw@example.org/", "https://example.org:99999/",
     "https://exa mple.org/", "https://example.org/\r\nx: y", "javascript:alert(1)", "https://[::1"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(DeliveryProblem):
        parse_webhook_url(url)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "target"),
    [("webhook", "http://example.org/"), ("webhook", "nonsense"), ("mail", "no address"), ("apprise", "file:///etc"),
     ("apprise", "json://127.0.0.1/"), ("apprise", "slack://"), ("pigeon", "coop"),
     ("webhook", "https://" + "a" * 1000)],
)  # fmt: skip
def test_a_channel_that_cannot_work_is_refused_in_one_sentence(
    team: Team, owner: User, settings: Settings, kind: str, target: str
) -> None:
    settings.HAS_MAIL = True
    with pytest.raises(Invalid) as refusal:
        channels.create_channel(team=team, by=owner, name="x", kind=kind, target=target)
    assert refusal.value.detail.endswith(".")


@pytest.mark.django_db
def test_only_admins_make_channels_and_see_secrets(team: Team, owner: User, member: User, receiver: Receiver) -> None:
    with pytest.raises(NotAllowed):
        make_channel(team, member, receiver.url)
    channel = make_channel(team, owner, receiver.url)
    with pytest.raises(NotAllowed):
        channels.read_secret(channel=channel, by=member)


@pytest.mark.django_db
def test_mail_goes_out_with_the_same_message_id_each_time(team: Team, owner: User, settings: Settings) -> None:
    settings.HAS_MAIL = True
    channel = make_channel(team, owner, "team@example.org", kind="mail")
    delivery = channels.test_channel(channel=channel, by=owner)
    assert deliveries.deliver(delivery.pk)
    (sent,) = mail.outbox
    assert sent.to == ["team@example.org"]
    assert delivery.message_id in sent.message()["Message-ID"]


@pytest.mark.django_db
def test_a_farm_without_a_mail_server_refuses_mail_channels(team: Team, owner: User) -> None:
    with pytest.raises(Invalid, match="not set up to send mail"):
        make_channel(team, owner, "team@example.org", kind="mail")


@pytest.mark.django_db
def test_a_refused_http_webhook_names_the_setting_that_allows_it(team: Team, owner: User) -> None:
    with pytest.raises(Invalid, match="ONNXFARM_WEBHOOK_NETWORKS"):
        make_channel(team, owner, "http://10.1.2.3/hook")


@pytest.mark.django_db
def test_an_inner_webhook_fails_for_good_and_says_why(team: Team, owner: User, settings: Settings) -> None:
    settings.WEBHOOK_NETWORKS = ["10.0.0.0/8"]
    channel = make_channel(team, owner, "http://127.0.0.1:1/")
    delivery = channels.test_channel(channel=channel, by=owner)
    assert not deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.FAILED
    assert "inside a network" in delivery.problem


@pytest.mark.django_db
def test_a_digest_comes_once_when_its_day_has_come_and_says_how_many_false_alerts_to_expect(
    team: Team, owner: User, receiver: Receiver
) -> None:
    channel = make_channel(team, owner, receiver.url, digest="day")
    assert digests.send_due_digests() == 0
    Channel.objects.update(digest_at=timezone.now())
    assert digests.send_due_digests() == 1
    assert digests.send_due_digests() == 0
    delivery = channel.deliveries.get()
    assert "Chance alone would raise" in delivery.text
    assert delivery.payload["data"]["expected_false_alerts"] == 0
    assert "0 marked as false positives" in delivery.subject


@pytest.mark.django_db
def test_a_long_subject_ends_after_a_word(team: Team, owner: User) -> None:
    channel = channels.create_channel(
        team=team, by=owner, name="hook", kind="webhook", target="https://example.org/hook"
    )
    sent = queue_message(
        channel, cause="test", kind="test", subject="onnxfarm: " + 40 * "fusion removed ", text="", payload={}
    )
    assert sent.subject.endswith((" fusion …", " removed …"))
    assert len(sent.subject) <= 300


@pytest.mark.django_db
def test_a_digest_counts_what_was_called_invalid_since_the_last_one(watch: Watch, version: Version, owner: User):
    for number, days in enumerate((9, 2, 1)):
        alert = bare_alert(watch, version, bad=f"1.3{number}.0", opened_at=timezone.now() - timedelta(days=30))
        triage.mark_invalid(alert=alert, by=owner, reason="the machine was throttled")
        AlertEvent.objects.filter(alert=alert).update(at=timezone.now() - timedelta(days=days))
    told = digests.make_digest(watch.team, since=timezone.now() - timedelta(days=7))
    assert (told["invalid"], told["opened"]) == (2, [])
    triage.reopen(alert=alert, by=owner)
    told = digests.make_digest(watch.team, since=timezone.now() - timedelta(days=7))
    assert "0 new alerts, 1 open, 1 marked as false positives." in digests.describe_digest(told)
