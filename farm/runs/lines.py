"""Direct lines: a user of the broker for a node of the farm's own network, who may wait for its messages and no more.

The broker's own users decide, so this asks for Redis or Valkey ≥ 6 whose `default` user is off or protected otherwise.
"""

import secrets
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

import redis

from farm.base.refusals import Invalid
from farm.runs import broker


def user_of(node_id: str) -> str:
    return f"onnxfarm-node-{node_id}"


def open_line(node_id: str, queues: Iterable[str], *, host: str = "") -> str:
    """Makes the node's user anew and gives the address with its secret, which is kept nowhere.

    `host`: how the node reaches the broker, where that is not the farm's own way. Raises Invalid when the broker is not
    to be had or knows no users.
    """
    secret = secrets.token_urlsafe(32)
    keys = [f"~{queue}" for queue in sorted(set(queues))]
    rules = ["reset", "on", f">{secret}", *keys, "resetchannels", "-@all", "+ping", "+brpop"]
    _execute("ACL", "SETUSER", user_of(node_id), *rules)
    return _address(user_of(node_id), secret, host=host)


def close_line(node_id: str) -> bool:
    return bool(_execute("ACL", "DELUSER", user_of(node_id)))


def _execute(*words: str) -> object:
    url = broker.redis_url()
    if not url:
        raise Invalid("The farm's broker is not Redis, so it has no users.", code="no_direct_line")
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            answer: object = client.execute_command(*words)
            return answer
    except redis.RedisError as problem:
        raise Invalid(f"The broker rejected a command: {problem}", code="no_direct_line") from problem


def _address(user: str, secret: str, *, host: str) -> str:
    parts = urlsplit(broker.redis_url())
    who = f"{quote(user, safe='')}:{quote(secret, safe='')}"
    if host:
        scheme = "rediss" if parts.scheme == "rediss" else "redis"
        return f"{scheme}://{who}@{host}/0"
    if parts.scheme == "unix":
        return f"unix://{who}@{parts.path}"
    return urlunsplit((parts.scheme, f"{who}@{parts.netloc.rpartition('@')[2]}", parts.path, parts.query, ""))
