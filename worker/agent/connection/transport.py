"""The Kombu transport `onnxfarm+https://…`, by which the farm's HTTPS gateway is the broker of a Celery worker.

The worker only consumes. A message is a hint, and the database decides who gets the block. So an acknowledgement only
counts for prefetch, and nothing is restored or requeued. While the worker measures, its message is unacknowledged
(acks_late), and so it asks for no other.

`broker_transport_options["mailbox"]` is the Mailbox from which the messages come.
"""

import time
from collections.abc import Callable
from queue import Empty

from kombu import transport
from kombu.transport import virtual

from worker.agent.connection.mailbox import Mailbox

NAME = "onnxfarm"
# the longest wait before the worker's loop checks for signals and ended tasks again
TURN_S = 0.25

Deliver = Callable[[dict[str, object], str], None]


class PublishingRefusedError(RuntimeError):
    """A message was to be published. A node publishes none; it sends HTTP requests to the farm."""


class Channel(virtual.Channel):
    """Delivers the messages of the mailbox. Queues are names that the farm chose, and need not be declared."""

    do_restore = False

    def _poll(self, cycle: object, callback: Deliver, timeout: float | None = None) -> None:
        offer = self._mailbox.take(TURN_S if timeout is None else min(timeout, TURN_S))
        if offer is None:
            raise Empty
        if offer.queue not in self.connection._callbacks:
            raise Empty  # the queue is no longer consumed, and the farm offers the block again
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
        """Do nothing with an unfinished message, because the farm offers a block until it is claimed."""

    def _purge(self, queue: str) -> int:
        return 0


class Transport(virtual.Transport):
    """The transport, registered as NAME. The part of its URL after `onnxfarm+` is the gateway's address."""

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
            # while a block is measured, prefetch is used up and the mailbox was not asked: pause here
            time.sleep(max(0.0, TURN_S - (time.monotonic() - started)))
            raise TimeoutError from None


def register_transport() -> None:
    transport.TRANSPORT_ALIASES[NAME] = f"{__name__}:Transport"
