"""Reads channels, their kinds, and their messages.

Channels are sorted by name and messages from the newest to the oldest. `shown_target` is an address without its
secrets. `kind` and `kinds` include the kinds that installed packages bring, which `kinds` lists after the farm's own.
`kind` answers for an unknown kind too, with one that cannot send.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from farm.accounts.selectors import Anyone
from farm.alerts.channels.channel_kind import ChannelKind
from farm.alerts.channels.table import KINDS, find_kind
from farm.alerts.models import Channel, Delivery
from farm.alerts.states import DeliveryState
from farm.base.refusals import require_row


def channels_visible_to(user: Anyone) -> QuerySet[Channel]:
    return Channel.objects.visible_to(user).select_related("team")


def channel(user: Anyone, channel_id: int) -> Channel:
    """Return a channel by its number. Raises Missing where the user may see no such channel."""
    return require_row(
        channels_visible_to(user).filter(pk=channel_id), f"There is no channel {channel_id} that you can access."
    )


def deliveries_of(channel: Channel) -> QuerySet[Delivery]:
    return channel.deliveries.order_by("-pk")


def kinds() -> list[ChannelKind]:
    return list(KINDS.values())


def kind(channel: Channel) -> ChannelKind:
    return find_kind(channel.kind)


def shown_target(channel: Channel) -> str:
    return find_kind(channel.kind).shown(channel.target)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a channel's messages."""

    sent: int = 0
    waiting: int = 0
    # messages that are not tried again
    failed: int = 0
    # why the last message failed; empty where none did
    problem: str = ""


def count_deliveries(channels: Iterable[Channel]) -> dict[int, Tally]:
    """Map the id of each channel that has messages to their counts, in two queries.

    Messages that are being sent count as waiting.
    """
    rows = Delivery.objects.filter(channel__in=list(channels)).order_by()
    failed = Q(state=DeliveryState.FAILED)
    counts = rows.values("channel").annotate(
        sent=Count("pk", filter=Q(state=DeliveryState.SENT)),
        waiting=Count("pk", filter=Q(state__in=(DeliveryState.WAITING, DeliveryState.SENDING))),
        failed=Count("pk", filter=failed),
        last_failed=Max("pk", filter=failed),
    )
    by_channel = {row["channel"]: row for row in counts}
    ids = [row["last_failed"] for row in by_channel.values() if row["last_failed"]]
    problems = dict(Delivery.objects.filter(pk__in=ids).values_list("channel", "problem"))
    return {
        channel: Tally(row["sent"], row["waiting"], row["failed"], problems.get(channel, ""))
        for channel, row in by_channel.items()
    }
