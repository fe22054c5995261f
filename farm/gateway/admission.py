"""Authentication and rate limits at the gateway, decided from the headers alone, before a body is read.

A secret that was valid within the last minute is remembered here by its digest, so that a heartbeat needs no query
beyond Django's own. An unknown secret needs a query. It is charged to the bucket of its address, and refunded if the
secret is a node's, so strangers use up their own limits and not those of nodes. A known node has two buckets, one for
requests that keep its block and one for all others. A machine that waits for approval has its own bucket too: otherwise
such machines would use up the limit of their address, and keep the working nodes of the same site out.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager

from farm.base.asgi import Scope, make_rate_limit_key, read_header
from farm.base.rate_limits import Buckets, Rate
from farm.base.refusals import Refusal, TooMany
from farm.base.secrecy import hash_secret
from farm.fleet.models import Node
from farm.fleet.selectors import find_node_of_secret
from farm.gateway.endpoints import Endpoint, Way
from farm.gateway.priority_queue import Priority

BEARER = "bearer "
UNKNOWN_NODE = "This node's secret opens nothing: it has expired or was revoked."
HINT = "If the node is still part of the farm, it asks for a new secret with its key; else enrol it again."
# for how long a valid secret is remembered; Django refuses one that was revoked meanwhile
KNOWN_S = 60.0
MAX_KNOWN = 20_000
# requests without a node's secret: of one address, and of all addresses together
STRANGER = Rate(max_tokens=60, per_s=1)
STRANGERS = Rate(max_tokens=600, per_s=30)
# requests of a machine that proved its key and waits for its approval; it asks twice a minute
WAITING = Rate(max_tokens=10, per_s=0.2)
# requests of one node: those that keep its block, and all others; each 64 KiB of a body count as one request more
LEASES = Rate(max_tokens=60, per_s=10)
OTHERS = Rate(max_tokens=300, per_s=20)
BYTES_A_TOKEN = 65_536
# requests that may be open at the same time
MAX_OF_NODE: Mapping[Way, int] = {Way.CALL: 8, Way.UPLOAD: 1, Way.FILE: 4}
MAX_OF_STRANGERS, MAX_OF_STRANGER = 32, 8


class UnknownNodeError(Refusal):
    """The refusal of a request without a valid secret of a node."""

    status = 401
    default_code = "unknown_node"


class Admission:
    """The rate limits and known secrets of one gateway process. Use it in the event loop alone.

    The parameter `ask` calls a function, with arguments, in a thread that may query the database. `find_remembered` is
    the id of a secret's node, None unless it was valid within KNOWN_S. `charge_bytes` charges a request for each
    BYTES_A_TOKEN of a body, even where the bucket is empty.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # node and time of expiry by digest; the secret that was used longest ago comes first
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._stranger, self._strangers = Buckets(STRANGER, clock=clock), Buckets(STRANGERS, clock=clock)
        self._waiting = Buckets(WAITING, clock=clock)
        self._leases, self._others = Buckets(LEASES, clock=clock), Buckets(OTHERS, clock=clock)
        self._open_requests: dict[Hashable, int] = {}

    async def identify(self, scope: Scope, ask: Callable[..., Awaitable[Node | None]]) -> int:
        """Return the id of the node that sent the request, without a query where its secret is remembered.

        Raises UnknownNodeError without a secret or with an unknown one, and TooMany for an address that sends too many
        such requests. The endpoint's own limit is not charged here.
        """
        secret = read_node_secret(scope)
        node_id = self.find_remembered(secret)
        if node_id is None:
            node_id = (await self.fetch_node(scope, secret, ask)).pk
        return node_id

    async def fetch_node(self, scope: Scope, secret: str, ask: Callable[..., Awaitable[Node | None]]) -> Node:
        """Return the row of the node that sent the request, always by a query, and remember its secret.

        Raises UnknownNodeError for a secret of no node, which is forgotten, and TooMany for an address that sends too
        many of these.
        """
        is_known = self.find_remembered(secret) is not None
        if not is_known:
            self.charge_stranger(scope)
        node = await ask(find_node_of_secret, secret) if secret else None
        if node is None:
            self.forget(secret)
            raise UnknownNodeError(UNKNOWN_NODE, hint=HINT)
        if not is_known:
            self.refund_stranger(scope)
        self.remember(secret, node.pk)
        return node

    def find_remembered(self, secret: str) -> int | None:
        node_id, expires_at = self._known.get(hash_secret(secret), (None, 0.0))
        return node_id if expires_at > self._clock() else None

    def remember(self, secret: str, node: int) -> None:
        """Let the secret count as this node's for KNOWN_S; beyond MAX_KNOWN the one used longest ago is forgotten."""
        digest = hash_secret(secret)
        self._known[digest] = (node, self._clock() + KNOWN_S)
        self._known.move_to_end(digest)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def forget(self, secret: str) -> None:
        self._known.pop(hash_secret(secret), None)

    def charge_stranger(self, scope: Scope) -> None:
        """Charge the request to its address and to all strangers together.

        Raises TooMany, with the seconds to wait, where either has used up its limit.
        """
        address = make_address_key(scope)
        # an address that is over its own limit takes nothing from the common one
        wait_s = self._stranger.take(address) or self._strangers.take(None)
        if wait_s:
            raise TooMany(
                f"Too many requests without a node's secret come from {address}, or from everywhere.",
                retry_s=wait_s,
                hint="Wait, then ask again; nodes that the farm knows are not held up.",
            )

    def refund_stranger(self, scope: Scope) -> None:
        self._stranger.charge(make_address_key(scope), -1.0)
        self._strangers.charge(None, -1.0)

    def charge_waiting_node(self, scope: Scope, node: int) -> None:
        """Charge a machine that waits for approval to its own bucket, and refund its address.

        If its own bucket is empty, the address stays charged. Nothing is raised.
        """
        if not self._waiting.take(node):
            self.refund_stranger(scope)

    def charge_request(self, endpoint: Endpoint, node: int) -> None:
        """Charge a request to its node's bucket for this endpoint. Raises TooMany where the bucket is empty."""
        wait_s = self._buckets(endpoint).take(node)
        if wait_s:
            raise TooMany("This node asks too often.", retry_s=wait_s, hint="Wait, then send the same again.")

    def charge_bytes(self, endpoint: Endpoint, node: int, *, bytes_read: int) -> None:
        self._buckets(endpoint).charge(node, bytes_read / BYTES_A_TOKEN)

    @contextmanager
    def hold_place(self, endpoint: Endpoint, node: int) -> Iterator[None]:
        """Count a request as open, inside the `with`, among the node's requests that are answered in the same way.

        Raises TooMany on entry where the node has as many open as MAX_OF_NODE allows, and KeyError for a long poll,
        which has no such limit.
        """
        with self._count_open((node, endpoint.way), max_open=MAX_OF_NODE[endpoint.way]):
            yield

    @contextmanager
    def hold_stranger_place(self, scope: Scope) -> Iterator[None]:
        """Count a request as open, inside the `with`, among those of its address and of all strangers.

        Raises TooMany on entry where MAX_OF_STRANGER of the address, or MAX_OF_STRANGERS in all, are open.
        """
        with (
            self._count_open(make_address_key(scope), max_open=MAX_OF_STRANGER),
            self._count_open("all strangers", max_open=MAX_OF_STRANGERS),
        ):
            yield

    @contextmanager
    def _count_open(self, key: Hashable, *, max_open: int) -> Iterator[None]:
        if self._open_requests.get(key, 0) >= max_open:
            raise TooMany(f"{max_open} such requests are open already.", retry_s=1.0, hint="Send the same again.")
        self._open_requests[key] = self._open_requests.get(key, 0) + 1
        try:
            yield
        finally:
            self._open_requests[key] -= 1
            if not self._open_requests[key]:
                del self._open_requests[key]

    def _buckets(self, endpoint: Endpoint) -> Buckets:
        return self._leases if endpoint.priority is Priority.LEASE else self._others


def read_node_secret(scope: Scope) -> str:
    text = read_header(scope, b"authorization")
    return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else ""


def make_address_key(scope: Scope) -> str:
    return make_rate_limit_key((scope.get("client") or ("",))[0])
