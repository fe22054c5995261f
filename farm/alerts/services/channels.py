"""Creates, changes, tests and removes channels. Every function raises NotAllowed unless `by` manages the team.

All but `test_channel` and `read_secret` write to the audit log.
"""

import secrets
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_manage
from farm.accounts.services import record
from farm.alerts.channels.channel_kind import DeliveryProblem
from farm.alerts.channels.table import KINDS, find_kind
from farm.alerts.models import Channel, Delivery
from farm.alerts.models.channel import new_salt
from farm.alerts.services.announcements import queue_message
from farm.alerts.services.digests import first_digest_at
from farm.alerts.states import DigestEvery
from farm.base.refusals import Conflict, Invalid, NotAllowed, TooMany

# channels of a team
MAX_CHANNELS = 50
TEST = "channel.test"
# test messages of a team within an hour
MAX_TESTS = 10
HOUR = timedelta(hours=1)


def create_channel(
    *, team: Team, by: User, name: str, kind: str, target: str, digest: str = DigestEvery.NEVER
) -> Channel:
    """Create a channel that gets a digest as often as `digest` says.

    Raises Invalid for a name, kind, digest or address that cannot be used, Conflict where the name is taken or where
    the team has MAX_CHANNELS.
    """
    _check_may_manage(team, by)
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise Invalid("A channel's name has 1 to 100 printable characters.", code="bad_name")
    if kind not in KINDS:
        raise Invalid(
            f"“{kind}” is not a kind of channel; use {', '.join(KINDS)}. Restart the farm after installing a package.",
            code="unknown_kind",
        )
    if digest not in DigestEvery.values:
        raise Invalid(f"A digest comes every {' or '.join(DigestEvery.values[1:])}, or never.", code="digest")
    if Channel.objects.filter(team=team, name=name).exists():
        raise Conflict(f"There is already a channel “{name}” in team “{team.name}”.", code="name_taken")
    if Channel.objects.filter(team=team).count() >= MAX_CHANNELS:
        raise Conflict(f"Team “{team.name}” has {MAX_CHANNELS} channels; remove some.", code="too_many")
    target = target.strip()
    _check_target(kind, target)
    channel = Channel.objects.create(
        team=team,
        name=name,
        kind=kind,
        target=target,
        digest=digest,
        digest_at=first_digest_at(digest),
        created_by=by,
    )
    record(verb="channel created", subject=name, actor=by, team=team, facts={"kind": kind})
    return channel


def remove_channel(*, channel: Channel, by: User) -> None:
    """Delete a channel with its messages, also those that wait to be sent."""
    _check_may_manage(channel.team, by)
    record(verb="channel removed", subject=channel.name, actor=by, team=channel.team)
    channel.delete()


def switch_channel(*, channel: Channel, by: User, is_active: bool) -> Channel:
    """Switch a channel on or off, and return it; while a channel is off, only tests are queued for it.

    Messages that were queued before are still sent.
    """
    _check_may_manage(channel.team, by)
    channel.is_active = is_active
    channel.save(update_fields=["is_active"])
    record(verb=f"channel {'on' if is_active else 'off'}", subject=channel.name, actor=by, team=channel.team)
    return channel


def test_channel(*, channel: Channel, by: User) -> Delivery:
    """Queue a test message, also for a channel that is off, and return it; the outbox sends it like any other.

    Raises TooMany after MAX_TESTS tests of a team within an hour, because the address may belong to anybody.
    """
    _check_may_manage(channel.team, by)
    tests = Delivery.objects.filter(channel__team=channel.team, kind=TEST, created_at__gt=timezone.now() - HOUR)
    if tests.count() >= MAX_TESTS:
        detail = f"Team “{channel.team.name}” has sent {MAX_TESTS} tests within an hour."
        raise TooMany(detail, retry_s=HOUR.total_seconds() / MAX_TESTS)
    text = f"{by.username} sent a test to the channel “{channel.name}” of team “{channel.team.name}”: it works."
    return queue_message(
        channel,
        cause=f"test:{secrets.token_hex(8)}",
        kind=TEST,
        subject="onnxfarm: a test",
        text=f"{text}\n{settings.PUBLIC_URL}\n",
        payload={"text": text, "by": by.username, "at": timezone.now().isoformat()},
    )


def read_secret(*, channel: Channel, by: User) -> str:
    """Return the secret that signs the channel's messages. Raises Invalid where messages of its kind are not signed."""
    _check_may_manage(channel.team, by)
    if not find_kind(channel.kind).is_signed:
        raise Invalid(
            f"“{channel.name}” is a {channel.kind} channel, whose messages are not signed.", code="not_signed"
        )
    return channel.secret


def renew_secret(*, channel: Channel, by: User) -> str:
    """Replace the secret that signs the channel's messages, and return the new one.

    Raises Invalid where messages of its kind are not signed.
    """
    _check_may_manage(channel.team, by)
    channel.salt = new_salt()
    channel.save(update_fields=["salt"])
    record(verb="channel secret renewed", subject=channel.name, actor=by, team=channel.team)
    return read_secret(channel=channel, by=by)


def _check_may_manage(team: Team, user: User) -> None:
    if not can_manage(user, team=team):
        raise NotAllowed(f"Only an admin of team “{team.name}” may change its channels.")


def _check_target(kind: str, target: str) -> None:
    """Check the form of an address; its host is looked up each time that a message is sent."""
    if len(target) > 1000:
        raise Invalid(f"The address has {len(target)} characters; at most 1000 are kept.", code="bad_target")
    try:
        KINDS[kind].check(target)
    except DeliveryProblem as problem:
        raise Invalid(str(problem), code="bad_target") from problem
