"""Who comes in at the gateway, decided from the headers alone, before a byte of a body is kept.

A secret that opened the farm within the last minute is known here by its digest, so that a heartbeat costs no question
to the database beyond the one that Django asks when it answers. An unknown one costs a question, which whoever shows it
pays from the bucket of their address, and gets back when it is a node's. So strangers use up their own patience and
not the nodes'; a node that is known pays from buckets of its own, one for what keeps its block, one for the rest. So
does a machine that waits for its approval: those of one site would else keep its working nodes out.
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
# a revoked secret may hand in as much longer, and is refused by Django all the same
KNOWN_S = 60.0
MAX_KNOWN = 20_000
# failures of one address, and of all together
STRANGER = Rate(max_tokens=60, per_s=1)
STRANGERS = Rate(max_tokens=600, per_s=30)
# questions of a machine that proved its key and waits for its approval; it asks twice a minute
WAITING = Rate(max_tokens=10, per_s=0.2)
# requests of one node: what keeps its block, and the rest, in which 64 KiB of a message count as one more
LEASES = Rate(max_tokens=60, per_s=10)
OTHERS = Rate(max_tokens=300, per_s=20)
BYTES_A_TOKEN = 65_536
# at once
MAX_OF_NODE: Mapping[Way, int] = {Way.CALL: 8, Way.UPLOAD: 1, Way.FILE: 4}
MAX_OF_STRANGERS, MAX_OF_STRANGER = 32, 8


class UnknownNodeError(Refusal):
    """Whoever asks shows no secret of a node."""

    status = 401
    default_code = "unknown_node"


class Admission:
    """Who is let in at one gateway process. For its event loop alone; `ask` asks the database in a thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._stranger, self._strangers = Buckets(STRANGER, clock=clock), Buckets(STRANGERS, clock=clock)
        self._waiting = Buckets(WAITING, clock=clock)
        self._leases, self._others = Buckets(LEASES, clock=clock), Buckets(OTHERS, clock=clock)
        self._inside: dict[Hashable, int] = {}

    async def node(self, scope: Scope, ask: Callable[..., Awaitable[Node | None]]) -> int:
        """The number of the node that asks. Raises UnknownNodeError, and TooMany for a stranger who asks too often."""
        secret = secret_of(scope)
        known = self.known(secret)
        return known if known is not None else (await self.ask_node(scope, secret, ask)).pk

    async def ask_node(self, scope: Scope, secret: str, ask: Callable[..., Awaitable[Node | None]]) -> Node:
        """The row of the node that asks. Raises as `node`."""
        is_known = self.known(secret) is not None
        if not is_known:
            self.charge_stranger(scope)
        node = await ask(find_node_of_secret, secret) if secret else None
        if node is None:
            self.forget(secret)
            raise UnknownNodeError(UNKNOWN_NODE, hint=HINT)
        if not is_known:
            self.give_back(scope)
        self.remember(secret, node.pk)
        return node

    def known(self, secret: str) -> int | None:
        found = self._known.get(hash_secret(secret))
        return found[0] if found is not None and found[1] > self._clock() else None

    def remember(self, secret: str, node: int) -> None:
        """This secret has just opened the farm."""
        digest = hash_secret(secret)
        self._known[digest] = (node, self._clock() + KNOWN_S)
        self._known.move_to_end(digest)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def forget(self, secret: str) -> None:
        self._known.pop(hash_secret(secret), None)

    def charge_stranger(self, scope: Scope) -> None:
        """A stranger pays for a question. Raises TooMany."""
        address = address_of(scope)
        # whoever has used up their own patience takes nothing of everybody's
        wait_s = self._stranger.take(address) or self._strangers.take(None)
        if wait_s:
            raise TooMany(
                f"Too many requests without a node's secret come from {address}, or from everywhere.",
                retry_s=wait_s,
                hint="Wait, then ask again; nodes that the farm knows are not held up.",
            )

    def give_back(self, scope: Scope) -> None:
        """What a stranger paid: it was a node, or became one."""
        self._stranger.charge(address_of(scope), -1.0)
        self._strangers.charge(None, -1.0)

    def excuse(self, scope: Scope, node: int) -> None:
        """A machine that waits for its approval pays for itself; where it asks too often, as a stranger."""
        if not self._waiting.take(node):
            self.give_back(scope)

    def count(self, endpoint: Endpoint, node: int) -> None:
        """A node pays for a request. Raises TooMany."""
        wait_s = self._buckets(endpoint).take(node)
        if wait_s:
            raise TooMany("This node asks too often.", retry_s=wait_s, hint="Wait, then send the same again.")

    def charge(self, endpoint: Endpoint, node: int, *, bytes_read: int) -> None:
        self._buckets(endpoint).charge(node, bytes_read / BYTES_A_TOKEN)

    @contextmanager
    def inside(self, endpoint: Endpoint, node: int) -> Iterator[None]:
        """One of the requests that a node may have open at once. Raises TooMany."""
        with self._place((node, endpoint.way), max_open=MAX_OF_NODE[endpoint.way]):
            yield

    @contextmanager
    def inside_as_stranger(self, scope: Scope) -> Iterator[None]:
        """One of the requests that an address, and all strangers together, may have open at once. Raises TooMany."""
        with (
            self._place(address_of(scope), max_open=MAX_OF_STRANGER),
            self._place("all strangers", max_open=MAX_OF_STRANGERS),
        ):
            yield

    @contextmanager
    def _place(self, key: Hashable, *, max_open: int) -> Iterator[None]:
        if self._inside.get(key, 0) >= max_open:
            raise TooMany(f"{max_open} such requests are open already.", retry_s=1.0, hint="Send the same again.")
        self._inside[key] = self._inside.get(key, 0) + 1
        try:
            yield
        finally:
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key]

    def _buckets(self, endpoint: Endpoint) -> Buckets:
        return self._leases if endpoint.priority is Priority.LEASE else self._others


def secret_of(scope: Scope) -> str:
    text = read_header(scope, b"authorization")
    return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else ""


def address_of(scope: Scope) -> str:
    """Where a request comes from; of IPv6 the site."""
    return make_rate_limit_key((scope.get("client") or ("",))[0])
