"""Receives messages from the farm's broker directly, for a node on the farm's own network.

Claims, files and reports still go by HTTPS, and the database decides. A message is only a hint: if this node may not
claim its block, the farm offers the block again within seconds. The node's user of the broker may only BRPOP on the
node's own queues (farm.runs.direct_lines).
"""

import json
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from farm.contract.node import Offer
from worker.agent.connection import gateway

if TYPE_CHECKING:
    import redis

VARIABLE = "ONNXFARM_NODE_BROKER"
CONNECT_S = 5.0
# how long to wait for the farm to name the node's queues
UNNAMED_S = 1.0


class BrokerConnection:
    """A connection to the broker, with the user that belongs to this node. Raises ValueError for an invalid address.

    The connection is made by the first `receive_message`. `set_queues` replaces the queues, which are none at first.
    """

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("redis", "rediss", "unix") or not urlsplit(url).username:
            raise ValueError(
                f"{VARIABLE} is not rediss://USER:SECRET@HOST:PORT/0; `manage.py direct_line NODE` prints it."
            )
        self._url = url
        self._client: redis.Redis | None = None
        self._queues: tuple[str, ...] = ()
        self._named = threading.Event()

    def set_queues(self, queues: Iterable[str]) -> None:
        self._queues = tuple(sorted(queues))
        self._named.set()

    def receive_message(self, *, wait_s: float) -> Offer | None:
        """Receive the next message of the node's queues; None when none came within `wait_s` seconds (1 at least).

        None also without queues: after UNNAMED_S before the first `set_queues`, and at once if that named none.
        Raises gateway.UnavailableError while the broker is away, and gateway.GatewayError where it refuses the node's
        user, or for an invalid message.
        """
        import redis

        if not self._named.wait(UNNAMED_S) or not self._queues:
            return None
        try:
            answer = self._connect(wait_s).brpop(list(self._queues), timeout=int(max(1, wait_s)))
            queue_and_message = cast("tuple[bytes, bytes] | None", answer)
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as problem:
            raise gateway.GatewayError(
                f"the broker refuses this node's user ({problem}); `manage.py direct_line NODE` makes it anew"
            ) from problem
        except redis.RedisError as problem:
            raise gateway.UnavailableError(f"the broker is not reachable: {problem}") from problem
        if queue_and_message is None:
            return None
        queue, message = queue_and_message
        try:
            return Offer(queue=queue.decode(), message=json.loads(message))
        except (ValueError, ValidationError) as problem:
            raise gateway.GatewayError(f"a message of the broker is not a hint: {message[:80]!r}") from problem

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _connect(self, wait_s: float) -> "redis.Redis":
        import redis

        if self._client is None:
            self._client = redis.Redis.from_url(
                self._url, socket_connect_timeout=CONNECT_S, socket_timeout=wait_s + CONNECT_S, max_connections=1
            )
        return self._client
