"""Messages of the broker to waiting nodes: who waits for what, and who gets it.

One task hears the bell (farm.runs.broker) and looks through the rung queue for the nodes that wait for it; a node that
begins to wait has its own queues looked through, and so has one whose own queue is rung: it may have been given others
while it waited, as a node is that has just proven what it can do. A message goes to the first node that may claim its
block, in one question to the database, with the name of another block where that goes first there; it goes back to the
end of its queue when none may, and is dropped when its block is no longer to be had.
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
from farm.runs.selectors import first_taker

log = logging.getLogger(__name__)

# threads that ask the database: more would take the interpreter from the one that answers what nodes post
DATABASE_THREADS = 2
# messages looked through at one ring, and waiting nodes asked about at once: few first, since nearly always the first
# of them may claim the block, and a question about all of a large fleet's takes as long as the claim itself
LOOK_THROUGH = 32
ASKED_FIRST = 4
ASKED_AT_ONCE = 64
# a block that a node was told of is named to nobody else for so long: it is still to be claimed
NAMED_FOR_S = 2.0
FIRST_PAUSE_S = 0.2
MAX_PAUSE_S = 5.0

P = ParamSpec("P")
R = TypeVar("R")


class BlockMessage(NamedTuple):
    """A block, and the attempt at which it may be claimed."""

    block: str
    attempt: int


def parse_message(text: bytes) -> tuple[BlockMessage | None, dict[str, object]]:
    """What a message is about, as kombu's Redis transport writes it, and the message itself; None for anything else."""
    try:
        message = json.loads(text)
        arguments = json.loads(base64.b64decode(message["body"], validate=True))[1]
        found = BlockMessage(str(int(arguments["block"])), int(arguments["attempt"]))
        is_ours = message["headers"]["task"] == MEASURE_TASK
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error):
        return None, {}
    return (found if is_ours else None), message


def replace_block(message: dict[str, object], about: BlockMessage) -> dict[str, object]:
    """The message with another block in it."""
    arguments, _, embedded = json.loads(base64.b64decode(str(message["body"])))
    body = json.dumps([arguments, about._asdict(), embedded])
    return {**message, "body": base64.b64encode(body.encode()).decode()}


class Waiter:
    """A node's open poll."""

    def __init__(self, node: Node) -> None:
        self.offer: asyncio.Future[Offer] = asyncio.get_running_loop().create_future()
        self.take_up(node)

    def take_up(self, node: Node) -> None:
        """Waits for what the node may consume by now."""
        self.node = node
        # its own queue also while it may take no block, so that a ring reaches it
        self.queues = node.queues or (name_node_queue(str(node.pk)),)


class Exchange:
    """The waiting nodes of one gateway process. Make it inside a running event loop."""

    def __init__(self) -> None:
        # a dict keeps the order of arrival: the node that has waited longest is asked first
        self._waiting: dict[str, dict[Waiter, None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._threads = ThreadPoolExecutor(
            DATABASE_THREADS, thread_name_prefix="gateway-database", initializer=keep_database_connection
        )
        self._redis = redis.asyncio.Redis.from_url(broker.redis_url(), socket_connect_timeout=5)
        self._serving: set[asyncio.Task[None]] = set()
        # what nodes were told of, when, and of which machine they are
        self._named: dict[BlockMessage, tuple[float, str]] = {}
        self._listener = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Lets go of the broker; open polls end empty-handed."""
        self._listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listener
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            waiter.offer.cancel()
        await self._redis.aclose()
        self._threads.shutdown(wait=False)

    async def ask(self, question: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Asks the database in a thread that keeps its connection."""

        def asked() -> R:
            close_old_connections()
            try:
                return question(*args, **kwargs)
            finally:
                close_old_connections()

        return await asyncio.get_running_loop().run_in_executor(self._threads, asked)

    async def next_offer(self, node: Node, *, wait_s: float, gone: Awaitable[None]) -> Offer | None:
        """The next message that this node can use; None after `wait_s` seconds, or when whoever asked is gone."""
        waiter, hung_up = Waiter(node), asyncio.ensure_future(gone)
        try:
            await self._begin(waiter)
            await asyncio.wait((waiter.offer, hung_up), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return waiter.offer.result() if waiter.offer.done() and not waiter.offer.cancelled() else None
        finally:
            hung_up.cancel()
            self._forget(waiter)

    async def _begin(self, waiter: Waiter) -> None:
        """Looks through the queues that hold something, one after the other, until the node has its message."""
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

    def _forget(self, waiter: Waiter) -> None:
        for queue in waiter.queues:
            waiters = self._waiting.get(queue, {})
            waiters.pop(waiter, None)
            if not waiters:
                self._waiting.pop(queue, None)

    async def _renew(self, waiters: list[Waiter]) -> None:
        """Lets nodes wait for the queues that they may consume by now."""
        for waiter in waiters:
            node = await self.ask(find_connected_node, waiter.node.pk)
            # it may have got its message, or hung up, meanwhile
            if node is not None and waiter in self._waiting.get(waiter.queues[0], {}):
                self._forget(waiter)
                waiter.take_up(node)
                await self._begin(waiter)

    async def _listen(self) -> None:
        """Hears the bell for as long as the process lives; a broker that is away costs time."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.subscribe(broker.QUEUE_CHANNEL)
                    pause_s = FIRST_PAUSE_S
                    # what was rung while nobody listened
                    self._serve_soon(list(self._waiting))
                    async for message in subscription.listen():
                        self._hear(message["data"].decode())
            except (RedisError, OSError) as problem:
                log.warning("The bell is not heard (%s); listening again in %.1f s.", problem, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(MAX_PAUSE_S, 2 * pause_s)

    def _hear(self, queue: str) -> None:
        if queue.startswith(name_node_queue("")):
            self._soon(self._renew(list(self._waiting.get(queue, {}))))
        else:
            self._serve_soon([queue])

    def _serve_soon(self, queues: Iterable[str]) -> None:
        for queue in queues:
            if queue in self._waiting:
                self._soon(self._serve(queue))

    def _soon(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, queue: str) -> None:
        """Looks through a queue for those who wait for it. One at a time a queue, so that none is looked at twice."""
        try:
            async with self._locks.setdefault(queue, asyncio.Lock()):
                await self._look_through(queue)
        except (RedisError, OSError) as problem:
            log.warning("Queue %s cannot be read: %s", queue, problem)

    async def _look_through(self, queue: str) -> None:
        unclaimed: list[bytes] = []
        length = await self._redis.llen(queue)
        try:
            for _ in range(min(length, LOOK_THROUGH)):
                if queue not in self._waiting:
                    return
                text = cast(bytes | None, await self._redis.rpop(queue))
                if text is None:
                    return
                if await self._is_still_wanted(queue, text):
                    unclaimed.append(text)
        finally:
            if unclaimed:
                # to the end: the next ring's message is not behind those that nobody here may claim
                await self._redis.lpush(queue, *unclaimed)

    async def _is_still_wanted(self, queue: str, text: bytes) -> bool:
        """Gives the message to the first node that may claim its block; whether it has to go back instead."""
        found, message = parse_message(text)
        if found is None:
            log.warning("A message in %s is not a found and is dropped.", queue)
            return False
        waiters = [waiter for waiter in self._waiting.get(queue, {}) if not waiter.offer.done()]
        for asked in split_into_portions(waiters):
            named = self._lately_named()
            if found in named:
                return False
            nodes, passed_over = [waiter.node.pk for waiter in asked], {int(each.block): named[each] for each in named}
            taker, is_alive = await self.ask(first_taker, *found, nodes, passed_over=passed_over)
            if not is_alive:
                return False
            if taker is None:
                continue
            chosen = next((w for w in asked if w.node.pk == taker.node_id and not w.offer.done()), None)
            if chosen is not None and chosen in self._waiting.get(queue, {}):
                about = BlockMessage(str(taker.block), taker.attempt)
                self._named[about] = time.monotonic(), chosen.node.device
                named_message = message if about == found else replace_block(message, about)
                chosen.offer.set_result(Offer(queue=queue, message=named_message))
                # the block of the message itself may still have its turn
                return about != found
        return True

    def _lately_named(self) -> dict[BlockMessage, str]:
        """What nodes were told of just now, with the machine of each."""
        now = time.monotonic()
        self._named = {block: named for block, named in self._named.items() if now - named[0] < NAMED_FOR_S}
        return {block: device for block, (_, device) in self._named.items()}


def split_into_portions(waiters: Sequence[R]) -> Iterator[Sequence[R]]:
    """In which portions waiting nodes are asked about."""
    if waiters:
        yield waiters[:ASKED_FIRST]
    for start in range(ASKED_FIRST, len(waiters), ASKED_AT_ONCE):
        yield waiters[start : start + ASKED_AT_ONCE]
