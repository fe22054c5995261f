"""Adds what Celery does not offer of its broker: the lengths of queues, and waking the gateways' long polls.

No decision depends on these answers. If the broker is not Redis, or does not answer, queues count as empty and no long
poll is woken: the next poll then finds the block.
"""

import functools
import logging

import redis
from django.conf import settings

log = logging.getLogger(__name__)

# the gateways subscribe to this channel; a message is the name of a queue that just got a message
QUEUE_CHANNEL = "onnxfarm.bell"


def redis_url() -> str:
    """Return the broker's address as redis-py takes it; empty if the broker is not Redis."""
    url: str = settings.CELERY_BROKER_URL
    if url.startswith(("redis+socket://", "redis+unix://")):
        return "unix://" + url.split("://", 1)[1]
    return url if url.startswith(("redis://", "rediss://", "unix://")) else ""


@functools.cache
def _client(url: str) -> "redis.Redis":
    return redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5)


def count_messages(queues: list[str]) -> dict[str, int]:
    """Count the messages that wait in each queue; 0 if the broker is not Redis or does not answer."""
    url = redis_url()
    if not url or not queues:
        return dict.fromkeys(queues, 0)
    try:
        with _client(url).pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.llen(queue)
            return dict(zip(queues, pipe.execute(), strict=True))
    except redis.RedisError as problem:
        log.warning("The broker does not tell the lengths of its queues: %s", problem)
        return dict.fromkeys(queues, 0)


def notify_gateways(queue: str) -> None:
    """Wake the gateways' long polls on this queue. A broker that does not answer is only logged."""
    url = redis_url()
    if not url:
        return
    try:
        _client(url).publish(QUEUE_CHANNEL, queue)
    except redis.RedisError as problem:
        log.warning("The bell of queue %s was not heard: %s", queue, problem)
