"""Sends webhooks, signed as standardwebhooks.com says: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

The connection goes to the address that was checked, without redirects and proxies. The answer's body is never read, and
the whole exchange ends after a few seconds, however slowly the receiver answers.

`show_host` hides all of an address but its scheme, host and port.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.conf import settings
from standardwebhooks import Webhook

from farm.alerts.channels.addresses import LookUp, Target, parse_webhook_url, resolve_target
from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem, Message

# limits of each read or write, and of the whole exchange
CONNECT_S = 4.0
TOTAL_S = 10.0
AGENT = "onnxfarm-webhook/1"
# a receiver that answers with this status wants no more messages
GONE = 410
# statuses below 500 after which another try may help
_RETRIED = (408, 409, 425, 429)


def check(url: str) -> None:
    """Check the form of a webhook's address; its host is not looked up.

    Raises a permanent DeliveryProblem for an address that cannot be used, and for http:// where the farm's settings
    list no inner networks.
    """
    if not parse_webhook_url(url).is_tls and not settings.WEBHOOK_NETWORKS:
        raise DeliveryProblem(
            "A webhook's address starts with https://; http:// reaches only the inner networks that this farm's "
            "administrator lists in ONNXFARM_WEBHOOK_NETWORKS, and none is listed.",
            is_permanent=True,
        )


def send(message: Message, url: str) -> None:
    """Post the payload of a message as JSON, signed with its secret. Raises DeliveryProblem unless it is accepted."""
    body = json.dumps(message.payload, ensure_ascii=False, separators=(",", ":"))
    headers = sign_headers(body, message_id=message.id, secret=message.secret)
    post(url, body.encode(), headers=headers)


def post(
    url: str,
    body: bytes,
    *,
    headers: Mapping[str, str],
    networks: Sequence[str] | None = None,
    timeout_s: float = TOTAL_S,
    lookup: LookUp | None = None,
) -> None:
    """Post once. Raises DeliveryProblem unless the status is 2xx; it is permanent where another try would not help.

    It is raised too where the address is refused, or where the host does not answer within `timeout_s`.
    `networks` are the inner networks that may be reached; None means those of ONNXFARM_WEBHOOK_NETWORKS. `lookup`
    replaces the resolver.
    """
    target = resolve_target(url, networks=settings.WEBHOOK_NETWORKS if networks is None else networks, lookup=lookup)
    status = _exchange(target, body, headers=headers, timeout_s=timeout_s)
    if not 200 <= status < 300:
        is_permanent = status == GONE or (300 <= status < 500 and status not in _RETRIED)
        reason = "it redirects, which is not followed" if 300 <= status < 400 else f"status {status}"
        raise DeliveryProblem(f"{target.url.host} rejected the message: {reason}.", is_permanent=is_permanent)


def sign_headers(body: str, *, message_id: str, secret: str) -> dict[str, str]:
    """Make the headers of a message, with its id, the time of now, and the signature of both and the body."""
    now = datetime.now(UTC)
    return {
        "content-type": "application/json",
        "user-agent": AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, now, body),
    }


def _exchange(target: Target, body: bytes, *, headers: Mapping[str, str], timeout_s: float) -> int:
    """Post the body and return the status of the answer."""
    connection = _PinnedConnection(target)
    timer = threading.Timer(timeout_s, connection.cut)
    timer.daemon = True
    timer.start()
    try:
        connection.request("POST", target.url.path, body=body, headers=dict(headers))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as problem:
        reason = f"no answer within {timeout_s:.0f} s" if connection.was_cut else _describe_failure(problem)
        raise DeliveryProblem(f"{target.url.host} cannot be reached: {reason}.") from None
    finally:
        timer.cancel()
        connection.close()


def _describe_failure(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({problem.verify_message})"
    if isinstance(problem, TimeoutError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(problem, OSError):
        return problem.strerror or type(problem).__name__
    return f"its answer is not HTTP ({type(problem).__name__})"


class _PinnedConnection(http.client.HTTPConnection):
    """A connection to the address that was checked, with the host's name in TLS and HTTP."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.url.host, target.url.port, timeout=CONNECT_S)
        self._target = target
        self.was_cut = False

    def connect(self) -> None:
        url = self._target.url
        sock = socket.create_connection((str(self._target.address), url.port), timeout=CONNECT_S)
        if url.is_tls:
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=url.host)
        self.sock = sock

    def cut(self) -> None:
        """End the exchange from another thread: a read or write that waits then raises an error."""
        self.was_cut = True
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)


def show_host(url: str) -> str:
    scheme, _, address = url.partition("://")
    return f"{scheme}://{address.partition('/')[0].partition('?')[0].rpartition('@')[2]}/…"


KIND = ChannelKind(
    name="webhook",
    title="Webhook",
    takes="an https:// address; every message is signed",
    check=check,
    send=send,
    shown=show_host,
    is_signed=True,
)
