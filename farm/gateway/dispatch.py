"""Hands the broker's messages to waiting nodes.

One task listens for notices of filled queues (farm.runs.broker), and then serves the nodes that wait for that queue. A
node that begins to wait has its own queues served, and so has a node whose own queue is named, because it may have been
given other queues while it waited. A message goes to the first node that may claim its block, found by one query. Where
another block has to go first on that node, the message names that one. A message that no waiting node may claim goes
back to the end of its queue, and one whose block can no longer be claimed is dropped.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, ParamSpec, TypeVar, cast

import redis.asyncio
from django.db import close_old_connections
from redis.exceptions import RedisError

from farm.contract.node import Offer
from farm.contract.version import MEASURE_TASK, name_node_queue
from farm.fleet.models import Node
from farm.fleet.selectors import find_connected_node
from farm.gateway.calls import keep_database_connection
from farm.runs import broker
from farm.runs.selectors import find_claimant

log = logging.getLogger(__name__)

# threads that query the database; more would slow the thread that answers nodes
DATABASE_THREADS = 2
# messages read at one notice, and waiting nodes in one query. The first query has few, as nearly always the first node
# may claim the block, and a query about all nodes of a large fleet takes as long as the claim itself
MAX_MESSAGES = 32
FIRST_PORTION = 4
PORTION = 64
# a block that was offered to a node is offered to no other for this time, so that the node can claim it
RESERVED_S = 2.0
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0

P = ParamSpec("P")
R = TypeVar("R")


class BlockMessage(NamedTuple):
    """A block, and the attempt at which it may be claimed."""

    block: str
    attempt: int


def parse_message(text: bytes) -> tuple[BlockMessage | None, dict[str, object]]:
    """Parse a message of kombu's Redis transport into its block and attempt, and the message itself.

    The first is None where it is not about a block, the second empty where it cannot be parsed.
    """
    try:
        message = json.loads(text)
        arguments = json.loads(base64.b64decode(message["body"], validate=True))[1]
        block = BlockMessage(str(int(arguments["block"])), int(arguments["attempt"]))
        is_ours = message["headers"]["task"] == MEASURE_TASK
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error):
        return None, {}
    return (block if is_ours else None), message


def replace_block(message: dict[str, object], block: BlockMessage) -> dict[str, object]:
    """Return a copy of a message that `parse_message` could parse, which names another block and attempt."""
    arguments, _, embedded = json.loads(base64.b64decode(str(message["body"])))
    body = json.dumps([arguments, block._asdict(), embedded])
    return {**message, "body": base64.b64encode(body.encode()).decode()}


class Waiter:
    """A node's open poll."""

    def __init__(self, node: Node) -> None:
        self.offer: asyncio.Future[Offer] = asyncio.get_running_loop().create_future()
        self.wait_as(node)

    def wait_as(self, node: Node) -> None:
        """Set the node's current row, and the queues to wait for; a node that may take no block has only its own."""
        self.node = node
        # on its own queue, a notice reaches also a node that may take no block
        self.queues = node.queues or (name_node_queue(str(node.pk)),)


class Exchange:
    """The waiting nodes of one gateway process. Make it inside a running event loop."""

    def __init__(self) -> None:
        # a dict keeps the order of arrival, so that the node that has waited longest comes first
        self._waiting: dict[str, dict[Waiter, None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._threads = ThreadPoolExecutor(
            DATABASE_THREADS, thread_name_prefix="gateway-database", initializer=keep_database_connection
        )
        self._redis = redis.asyncio.Redis.from_url(broker.redis_url(), socket_connect_timeout=5)
        self._tasks: set[asyncio.Task[None]] = set()
        # when each block was last offered, and the machine of the node
        self._offered: dict[BlockMessage, tuple[float, str]] = {}
        self._listener = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Close the connection to the broker; open polls end without an offer."""
        self._listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listener
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            waiter.offer.cancel()
        await self._redis.aclose()
        self._threads.shutdown(wait=False)

    async def ask_database(self, question: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a thread that keeps its database connection, and return its result or raise its error."""

        def call_with_fresh_connection() -> R:
            close_old_connections()
            try:
                return question(*args, **kwargs)
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._threads, call_with_fresh_connection)

    async def next_offer(self, node: Node, *, wait_s: float, gone: Awaitable[None]) -> Offer | None:
        """Wait for the next message that this node can use; None after `wait_s` seconds, or once `gone` is done.

        This does not claim the block: the node does that next.
        """
        waiter, disconnect = Waiter(node), asyncio.ensure_future(gone)
        try:
            await self._register(waiter)
            await asyncio.wait((waiter.offer, disconnect), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return waiter.offer.result() if waiter.offer.done() and not waiter.offer.cancelled() else None
        finally:
            disconnect.cancel()
            self._unregister(waiter)

    async def _register(self, waiter: Waiter) -> None:
        """Register a waiter and serve its queues that are not empty, until it has its message."""
        for queue in waiter.queues:
            self._waiting.setdefault(queue, {})[waiter] = None
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for queue in waiter.queues:
                    pipe.llen(queue)
                lengths = await pipe.execute() if waiter.queues else []
        except (RedisError, OSError) as problem:
            log.warning("The broker is not reachable: %s", problem)
            return
        for queue, length in zip(waiter.queues, lengths, strict=True):
            if length and not waiter.offer.done():
                await self._serve(queue)

    def _unregister(self, waiter: Waiter) -> None:
        for queue in waiter.queues:
            waiters = self._waiting.get(queue, {})
            waiters.pop(waiter, None)
            if not waiters:
                self._waiting.pop(queue, None)

    async def _renew(self, waiters: list[Waiter]) -> None:
        """Let nodes wait for the queues that they may consume now."""
        for waiter in waiters:
            node = await self.ask_database(find_connected_node, waiter.node.pk)
            # meanwhile the node may have got its message, or disconnected
            if node is not None and waiter in self._waiting.get(waiter.queues[0], {}):
                self._unregister(waiter)
                waiter.wait_as(node)
                await self._register(waiter)

    async def _listen(self) -> None:
        """Listen for notices as long as the process lives, and reconnect where the broker goes away."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.subscribe(broker.QUEUE_CHANNEL)
                    pause_s = FIRST_PAUSE_S
                    # queues that were filled before this process listened
                    self._serve_soon(list(self._waiting))
                    async for message in subscription.listen():
                        self._handle_notice(message["data"].decode())
            except (RedisError, OSError) as problem:
                log.warning("The broker's notices do not arrive (%s); listening again in %.1f s.", problem, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, 2 * pause_s)

    def _handle_notice(self, queue: str) -> None:
        if queue.startswith(name_node_queue("")):
            self._start_task(self._renew(list(self._waiting.get(queue, {}))))
        else:
            self._serve_soon([queue])

    def _serve_soon(self, queues: Iterable[str]) -> None:
        for queue in queues:
            if queue in self._waiting:
                self._start_task(self._serve(queue))

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, queue: str) -> None:
        """Serve the nodes that wait for a queue. A lock for each queue keeps two tasks from reading it at once."""
        try:
            async with self._locks.setdefault(queue, asyncio.Lock()):
                await self._read_queue(queue)
        except (RedisError, OSError) as problem:
            log.warning("Queue %s cannot be read: %s", queue, problem)

    async def _read_queue(self, queue: str) -> None:
        unclaimed: list[bytes] = []
        length = await self._redis.llen(queue)
        try:
            for _ in range(min(length, MAX_MESSAGES)):
                if queue not in self._waiting:
                    return
                text = cast(bytes | None, await self._redis.rpop(queue))
                if text is None:
                    return
                if not await self._offer_message(queue, text):
                    unclaimed.append(text)
        finally:
            if unclaimed:
                # to the end, so that the next message does not wait behind those that nobody here may claim
                await self._redis.lpush(queue, *unclaimed)

    async def _offer_message(self, queue: str, text: bytes) -> bool:
        """Offer the message to the first node that may claim its block, or drop it where it is of no use any more.

        Return False where it must go back to the queue.
        """
        block, message = parse_message(text)
        if block is None:
            log.warning("A message in %s is not about a block and is dropped.", queue)
            return True
        waiters = [waiter for waiter in self._waiting.get(queue, {}) if not waiter.offer.done()]
        for portion in split_into_portions(waiters):
            reserved = self._list_reserved_blocks()
            if block in reserved:
                return True
            nodes = [waiter.node.pk for waiter in portion]
            passed_over = {int(offered.block): device for offered, device in reserved.items()}
            taker, is_queued = await self.ask_database(find_claimant, *block, nodes, passed_over=passed_over)
            if not is_queued:
                return True
            if taker is None:
                continue
            chosen = next((w for w in portion if w.node.pk == taker.node_id and not w.offer.done()), None)
            if chosen is not None and chosen in self._waiting.get(queue, {}):
                offered_block = BlockMessage(str(taker.block), taker.attempt)
                self._offered[offered_block] = time.monotonic(), chosen.node.device
                offer = message if offered_block == block else replace_block(message, offered_block)
                chosen.offer.set_result(Offer(queue=queue, message=offer))
                # where another block goes first, the message's own block still waits for its turn
                return offered_block == block
        return False

    def _list_reserved_blocks(self) -> dict[BlockMessage, str]:
        """Map the blocks that were offered within RESERVED_S to the machine of each."""
        now = time.monotonic()
        self._offered = {block: (at, device) for block, (at, device) in self._offered.items() if now - at < RESERVED_S}
        return {block: device for block, (_, device) in self._offered.items()}


def split_into_portions(waiters: Sequence[R]) -> Iterator[Sequence[R]]:
    """Split waiting nodes into portions, one for each query: FIRST_PORTION of them, then PORTION each."""
    if waiters:
        yield waiters[:FIRST_PORTION]
    for start in range(FIRST_PORTION, len(waiters), PORTION):
        yield waiters[start : start + PORTION]
