"""Kombu transport `onnxfarm+https://…`: a Celery worker whose broker is the farm's HTTPS gateway.

The worker consumes only. A message is a hint that the database may confirm or not (409), so acknowledging one says
nothing to anybody: acks count prefetch here, and nothing is restored or requeued. The worker keeps a message
unacknowledged while it measures (acks_late), and so asks for no other.

`broker_transport_options["mailbox"]` holds the Mailbox that the messages come from.
"""

import time
from collections.abc import Callable
from queue import Empty

from kombu import transport
from kombu.transport import virtual

from worker.agent.connection.mailbox import Mailbox

NAME = "onnxfarm"
# how soon the worker's loop looks at signals and ended tasks again
TURN_S = 0.25

Deliver = Callable[[dict[str, object], str], None]


class PublishingRefusedError(RuntimeError):
    """A node publishes nothing: it talks to the farm by HTTP requests."""


class Channel(virtual.Channel):
    """Delivers what the mailbox holds. Queues are names that the farm chose; there is nothing to declare."""

    do_restore = False

    def _poll(self, cycle: object, callback: Deliver, timeout: float | None = None) -> None:
        offer = self._mailbox.take(TURN_S if timeout is None else min(timeout, TURN_S))
        if offer is None:
            raise Empty
        if offer.queue not in self.connection._callbacks:
            raise Empty  # no longer consumed: the farm rings again
        callback(offer.message, offer.queue)

    @property
    def _mailbox(self) -> Mailbox:
        mailbox: Mailbox = self.connection.client.transport_options["mailbox"]
        return mailbox

    def _get(self, queue: str, timeout: float | None = None) -> None:
        raise Empty

    def _put(self, queue: str, message: object, **kwargs: object) -> None:
        raise PublishingRefusedError(f"A node publishes nothing; a message to {queue!r} was refused.")

    def _restore(self, message: object) -> None:
        """An unfinished message is not given back: the farm rings a block until it is claimed."""

    def _purge(self, queue: str) -> int:
        return 0


class Transport(virtual.Transport):
    """Registered under NAME; the part after `onnxfarm+` is the address of the gateway."""

    Channel = Channel
    driver_type = NAME
    driver_name = NAME
    can_parse_url = True

    def driver_version(self) -> str:
        return "1"

    def drain_events(self, connection: object, timeout: float | None = None, **_: object) -> None:
        """Deliver one message. Raises TimeoutError when none came."""
        started = time.monotonic()
        try:
            assert self.cycle is not None  # made by the constructor
            self.cycle.get(self._deliver, timeout=timeout)  # type: ignore[no-untyped-call]
        except Empty:
            # prefetch is used up while measuring: the mailbox was not asked, so the pause is made here
            time.sleep(max(0.0, TURN_S - (time.monotonic() - started)))
            raise TimeoutError from None


def register_transport() -> None:
    transport.TRANSPORT_ALIASES[NAME] = f"{__name__}:Transport"
