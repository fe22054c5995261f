"""Corrects kombu's Redis transport: a channel whose connection is closed raises a connection error.

If the broker dies while a message is unacknowledged, kombu 5.7 closes the connection, and then uses the closed channel
to put the message back. That raises an AttributeError, and Celery ends the worker. After a connection error, Celery
connects again. The lost message does no harm, because the database decides and the next tick sends it again.
"""

from kombu import transport
from kombu.transport import redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(redis.Channel):
    """kombu's channel, except that it raises redis' ConnectionError if its connection is closed."""

    def _connparams(self, asynchronous: bool = False) -> object:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("This channel's connection to the broker is closed.")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[no-untyped-call]


class Transport(redis.Transport):
    """kombu's Redis transport with the corrected channel."""

    Channel = Channel


def register() -> None:
    """Make kombu use this transport for `redis://` and `rediss://` addresses, in the whole process.

    Call it before the first connection.
    """
    name = f"{__name__}:{Transport.__name__}"
    transport.TRANSPORT_ALIASES |= {"redis": name, "rediss": name}
