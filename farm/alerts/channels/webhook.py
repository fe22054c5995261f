"""Webhooks, signed as standardwebhooks.com says: `webhook-id`, `webhook-timestamp`, `webhook-signature`.

The address is pinned, no redirect is followed, no proxy is asked, the answer's body is never read, and the whole
exchange ends after a few seconds however slowly the other side drips.
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

from farm.alerts.channels.addresses import LookUp, Target, read_url, target_of
from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem, Message

CONNECT_S = 4.0
TOTAL_S = 10.0
AGENT = "onnxfarm-webhook/1"
# the receiver says that it wants no more
GONE = 410
# answers after which trying again is worth it
_AGAIN = (408, 409, 425, 429)


def check(url: str) -> None:
    """Whether it is a webhook's address. Raises DeliveryProblem."""
    _, _, _, is_tls = read_url(url)
    if not is_tls and not settings.WEBHOOK_NETWORKS:
        raise DeliveryProblem("A webhook's address starts with https://.", is_permanent=True)


def send(message: Message, url: str) -> None:
    """Posts the payload, signed."""
    body = json.dumps(message.payload, ensure_ascii=False, separators=(",", ":"))
    headers = signed_headers(body, message_id=message.id, secret=message.secret)
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
    """Posts once. Raises DeliveryProblem unless the answer is 2xx.

    `networks`: inner ones that it may reach; without any, those that the operator named. `lookup`: the resolver.
    """
    target = target_of(url, networks=settings.WEBHOOK_NETWORKS if networks is None else networks, lookup=lookup)
    status = _status(target, body, headers=headers, timeout_s=timeout_s)
    if not 200 <= status < 300:
        is_permanent = status == GONE or (300 <= status < 500 and status not in _AGAIN)
        reason = "it redirects, which is not followed" if 300 <= status < 400 else f"status {status}"
        raise DeliveryProblem(f"{target.host} rejected the message: {reason}.", is_permanent=is_permanent)


def signed_headers(body: str, *, message_id: str, secret: str) -> dict[str, str]:
    """The headers by which a receiver knows the message, its age and its sender."""
    now = datetime.now(UTC)
    return {
        "content-type": "application/json",
        "user-agent": AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, now, body),
    }


def _status(target: Target, body: bytes, *, headers: Mapping[str, str], timeout_s: float) -> int:
    connection = _Pinned(target)
    clock = threading.Timer(timeout_s, connection.cut)
    clock.daemon = True
    clock.start()
    try:
        connection.request("POST", target.path, body=body, headers=dict(headers))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as problem:
        why = f"no answer within {timeout_s:.0f} s" if connection.was_cut else _reason(problem)
        raise DeliveryProblem(f"{target.host} cannot be reached: {why}.") from None
    finally:
        clock.cancel()
        connection.close()


def _reason(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({problem.verify_message})"
    if isinstance(problem, TimeoutError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(problem, OSError):
        return problem.strerror or type(problem).__name__
    return f"its answer is not HTTP ({type(problem).__name__})"


class _Pinned(http.client.HTTPConnection):
    """A connection to one address, which speaks to the host by its name."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port, timeout=CONNECT_S)
        self._target = target
        self.was_cut = False

    def connect(self) -> None:
        sock = socket.create_connection((str(self._target.address), self._target.port), timeout=CONNECT_S)
        if self._target.is_tls:
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self._target.host)
        self.sock = sock

    def cut(self) -> None:
        """Ends the exchange from another thread: whoever reads or writes gets an error."""
        self.was_cut = True
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)


def shown(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0].rpartition('@')[2]}/…"


KIND = ChannelKind(
    name="webhook",
    title="Webhook",
    takes="an https:// address; every message is signed",
    check=check,
    send=send,
    shown=shown,
    is_signed=True,
)
