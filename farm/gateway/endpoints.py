"""The addresses for nodes, with what the gateway checks before Django: the sender, and the size and time of a body.

The gateway answers 404 for all other addresses. The web process serves pages, uploads of people and Django's admin.
"""

import re
from dataclasses import dataclass, field
from enum import Enum

from farm.contract.node import MAX_COMPILED_BYTES, MAX_PART_BYTES, MAX_REPORT_BYTES, MAX_TRACE_BYTES
from farm.gateway.priority_queue import Priority

PREFIX = "/api/node/v1/"
# the limit of a message other than a report, such as a hello with the tail of the node's log
SMALL_BYTES = 262_144
# the limit of a body that holds an attempt's number or a signature
TINY_BYTES = 8_192
# the seconds in which a body has to arrive
SMALL_S, REPORT_S, UPLOAD_S = 15.0, 60.0, 600.0
# for a body of a machine without a secret; only a few such requests may be open at once
STRANGER_S = 5.0


class Way(Enum):
    """How the gateway answers an address."""

    POLL = "poll"  # a coroutine waits
    CALL = "call"  # the body is read whole, then one thread answers all calls in turn
    UPLOAD = "upload"  # the body is stored while it arrives, then a separate thread answers
    FILE = "file"  # the answer is streamed from the store


@dataclass(frozen=True)
class Endpoint:
    """An address with its method."""

    name: str
    method: str
    address: str
    way: Way
    # limits of the body: its size, and the seconds that it may take
    max_bytes: int = 0
    body_s: float = SMALL_S
    priority: Priority = Priority.OTHER
    # whether machines without a secret may use it
    is_open: bool = False
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        words = re.escape(PREFIX + self.address).replace("X", "[^/]+")
        object.__setattr__(self, "pattern", re.compile(words))


def _open(name: str, *, max_bytes: int) -> Endpoint:
    """Make an endpoint for machines without a secret."""
    return Endpoint(
        name, "POST", name, Way.CALL, max_bytes=max_bytes, body_s=STRANGER_S, priority=Priority.STRANGER, is_open=True
    )


ENDPOINTS = (
    Endpoint("messages", "GET", "messages", Way.POLL),
    Endpoint("heartbeat", "POST", "blocks/X/heartbeat", Way.CALL, max_bytes=TINY_BYTES, priority=Priority.LEASE),
    Endpoint("claim", "POST", "blocks/X/claim", Way.CALL, max_bytes=TINY_BYTES, priority=Priority.LEASE),
    Endpoint(
        "reports",
        "POST",
        "blocks/X/reports",
        Way.CALL,
        max_bytes=MAX_REPORT_BYTES,
        body_s=REPORT_S,
        priority=Priority.REPORT,
    ),
    Endpoint("hello", "POST", "hello", Way.CALL, max_bytes=SMALL_BYTES),
    Endpoint("standing", "GET", "standing", Way.CALL),
    _open("secret", max_bytes=TINY_BYTES),
    _open("enrol", max_bytes=SMALL_BYTES),
    Endpoint("files", "GET", "files/X", Way.FILE),
    Endpoint("runtimes", "GET", "runtimes/X", Way.CALL),
    Endpoint("runtime-files", "GET", "runtime-files/X", Way.FILE),
    # browsers load the page's files before they have a secret
    Endpoint("tab", "GET", "tab/X", Way.CALL, body_s=STRANGER_S, priority=Priority.STRANGER, is_open=True),
    Endpoint("traces", "PUT", "blocks/X/traces/X/X", Way.UPLOAD, max_bytes=MAX_TRACE_BYTES, body_s=UPLOAD_S),
    Endpoint("compiled", "PUT", "blocks/X/compiled/X", Way.UPLOAD, max_bytes=MAX_COMPILED_BYTES, body_s=UPLOAD_S),
    Endpoint("parts", "PUT", "blocks/X/parts/X", Way.UPLOAD, max_bytes=MAX_PART_BYTES, body_s=UPLOAD_S),
)


def find_endpoints(path: str) -> list[Endpoint]:
    return [endpoint for endpoint in ENDPOINTS if endpoint.pattern.fullmatch(path)]
