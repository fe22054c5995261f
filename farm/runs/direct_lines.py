"""Opens direct lines: a node in the farm's own network reads its messages from the broker itself, as its user.

The broker ensures that the user can only wait for the node's own messages. So it has to be Redis or Valkey ≥ 6, with
its `default` user switched off or protected.
"""

import secrets
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

import redis

from farm.base.refusals import Invalid
from farm.runs import broker


def make_user_name(node_id: str) -> str:
    return f"onnxfarm-node-{node_id}"


def open_line(node_id: str, queues: Iterable[str], *, host: str = "") -> str:
    """Create the node's user at the broker, or give it a new secret; return the broker's address with that secret.

    The secret is stored nowhere else. `host` is the broker's host and port as the node reaches them, empty if they
    are the farm's own. The address of a broker on a Unix socket begins with `unix://`. Raises Invalid if the broker is
    not Redis, does not answer or refuses the command.
    """
    secret = secrets.token_urlsafe(32)
    keys = [f"~{queue}" for queue in sorted(set(queues))]
    rules = ["reset", "on", f">{secret}", *keys, "resetchannels", "-@all", "+ping", "+brpop"]
    _execute("ACL", "SETUSER", make_user_name(node_id), *rules)
    return _make_address(make_user_name(node_id), secret, host=host)


def close_line(node_id: str) -> bool:
    """Delete the node's user at the broker; return whether there was one. Raises Invalid as `open_line` does."""
    return bool(_execute("ACL", "DELUSER", make_user_name(node_id)))


def _execute(*words: str) -> object:
    url = broker.redis_url()
    if not url:
        raise Invalid("The farm's broker is not Redis, so it has no users.", code="no_direct_line")
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            answer: object = client.execute_command(*words)
            return answer
    except redis.RedisError as problem:
        raise Invalid(f"The broker could not carry out a command: {problem}", code="no_direct_line") from problem


def _make_address(user: str, secret: str, *, host: str) -> str:
    parts = urlsplit(broker.redis_url())
    credentials = f"{quote(user, safe='')}:{quote(secret, safe='')}"
    if host:
        scheme = "rediss" if parts.scheme == "rediss" else "redis"
        return f"{scheme}://{credentials}@{host}/0"
    if parts.scheme == "unix":
        return f"unix://{credentials}@{parts.path}"
    return urlunsplit((parts.scheme, f"{credentials}@{parts.netloc.rpartition('@')[2]}", parts.path, parts.query, ""))
