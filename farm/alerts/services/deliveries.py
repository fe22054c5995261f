"""Sends the messages of the outbox: one sender claims each, and a message that did not arrive is tried again later.

A sender that dies leaves its message as `sending`; when its time is over, another takes it with the same message id.
"""

import logging
from datetime import timedelta
from random import uniform

from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.utils import timezone

from farm.alerts.channels.channel_kind import DeliveryProblem, Message
from farm.alerts.channels.table import find_kind
from farm.alerts.models import Delivery
from farm.alerts.states import DeliveryState
from farm.contract.version import DELIVERY_QUEUE
from farm.registry.services.messages import DELIVER, send_hint

log = logging.getLogger(__name__)

# after this time a sender is taken for dead; no kind of channel takes that long
SENDING_S = 60.0
MAX_TRIES = 9
# the pause after the first failed try; each further pause is four times as long
FIRST_WAIT_S = 20.0
MAX_WAIT_S = 6 * 3600.0
# how many messages a tick asks workers to send
MAX_AT_ONCE = 20
# how many messages of a team are sent at once, so that a team whose receivers hang does not block the others
MAX_SENDING_PER_TEAM = 2


def send_due_hints() -> int:
    """Ask workers to send the messages that are due or whose sender died; return how many.

    The longest due come first. At most MAX_AT_ONCE are asked for, and none of channels or teams that are busy.
    """
    delivery_ids = list(_list_due().order_by("due_at").values_list("pk", flat=True)[:MAX_AT_ONCE])
    for delivery_id in delivery_ids:
        send_hint(DELIVER, delivery_id, queue=DELIVERY_QUEUE)
    return len(delivery_ids)


def deliver(delivery_id: int) -> bool:
    """Claim a message, send it, and return whether it arrived.

    Return False, with nothing sent, where another sender has it, where it is not due, or where too many messages are
    being sent to its channel or team. A message that did not arrive is tried again later, MAX_TRIES times in all,
    unless its problem is permanent. No error of sending is raised.
    """
    delivery = _claim(delivery_id)
    if delivery is None:
        return False
    try:
        channel = delivery.channel
        message = Message(delivery.message_id, delivery.subject, delivery.text, delivery.payload, channel.secret)
        find_kind(channel.kind).send(message, channel.target)
    except DeliveryProblem as problem:
        _put_back(delivery, problem)
        return False
    except Exception:
        log.exception("delivery %s broke", delivery_id)
        _put_back(delivery, DeliveryProblem("Internal error while sending; see the farm's log."))
        return False
    return delivery.end_try(DeliveryState.SENT, sent_at=timezone.now(), problem="")


def _list_due() -> QuerySet[Delivery]:
    """List due messages of channels to which nothing is being sent, within each team's MAX_SENDING_PER_TEAM."""
    # Python's clock wrote `due_at`; a database's may be coarser, so that a message due now would not be
    now = timezone.now()
    sending = Delivery.objects.filter(state=DeliveryState.SENDING, due_at__gt=now)
    busy = sending.filter(channel=OuterRef("channel"))
    counted = sending.order_by().values("channel__team").annotate(count=Count("pk"))
    full = counted.filter(count__gte=MAX_SENDING_PER_TEAM).values("channel__team")
    open_states = (DeliveryState.WAITING, DeliveryState.SENDING)
    due = Delivery.objects.filter(~Exists(busy), state__in=open_states, due_at__lte=now)
    return due.exclude(channel__team__in=full)


def _claim(delivery_id: int) -> Delivery | None:
    """Claim a message by one conditional UPDATE; None where it is not due or another sender has it."""
    due = _list_due().filter(pk=delivery_id)
    changes = {"state": DeliveryState.SENDING, "tries": F("tries") + 1}
    if not due.update(due_at=timezone.now() + timedelta(seconds=SENDING_S), **changes):
        return None
    return Delivery.objects.select_related("channel").get(pk=delivery_id)


def _put_back(delivery: Delivery, problem: DeliveryProblem) -> None:
    """Put a message off to a later try, or give it up after a permanent problem or MAX_TRIES."""
    text = str(problem)[:500]
    if problem.is_permanent or delivery.tries >= MAX_TRIES:
        delivery.end_try(DeliveryState.FAILED, problem=text)
    else:
        wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 4 ** (delivery.tries - 1)) * uniform(0.8, 1.2)
        delivery.end_try(DeliveryState.WAITING, problem=text, due_at=timezone.now() + timedelta(seconds=wait_s))
