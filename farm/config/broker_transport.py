"""kombu's Redis transport with one correction: a channel whose connection is closed raises a connection error.

When the broker dies while a message is unacknowledged, kombu 5.7 closes the connection first and then asks the closed
channel for a client, to put the message back. That ends in an AttributeError, which Celery takes for a bug and ends the
worker with; a connection error it ignores and connects anew. The message is not missed: the database decides, and the
next tick rings again.
"""

from kombu import transport
from kombu.transport import redis
from redis.exceptions import ConnectionError as RedisConnectionError


class Channel(redis.Channel):
    """kombu's channel, which raises redis' ConnectionError where its connection is closed."""

    def _connparams(self, asynchronous: bool = False) -> object:
        if self.connection is None or self.connection.client is None:
            raise RedisConnectionError("This channel's connection to the broker is closed.")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[no-untyped-call]


class Transport(redis.Transport):
    """The transport of `redis://`, `rediss://` and `redis+socket://` addresses in the farm's own Celery."""

    Channel = Channel


def register() -> None:
    """Make kombu use this transport for `redis://` and `rediss://` addresses in the whole process.

    Call it before the first connection.
    """
    name = f"{__name__}:{Transport.__name__}"
    transport.TRANSPORT_ALIASES |= {"redis": name, "rediss": name}
