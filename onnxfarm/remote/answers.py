"""What a farm answers, and how patiently it is asked."""

import random
from collections.abc import Iterator

import httpx2

from onnxfarm.problems import Infrastructure, Usage

TRIES = 6
FIRST_WAIT_S = 0.3
LONGEST_WAIT_S = 8.0
AWAY = (502, 503, 504)


def waits() -> Iterator[float | None]:
    """Pauses between tries, growing and jittered; None after the last."""
    for number in range(TRIES - 1):
        yield min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**number) * random.uniform(0.8, 1.2)
    yield None


def accepted(response: httpx2.Response) -> httpx2.Response:
    """The response unless it is a refusal, which raises with the farm's own sentence."""
    if response.is_success:
        return response
    if response.is_redirect:
        raise Infrastructure(
            f"{response.request.url} redirects to {response.headers['Location'][:200]}, where no token is sent: "
            "is this the address of a farm? Give its own address, with https:// and the full host name, in --server."
        )
    words = _words(response)
    if 400 <= response.status_code < 500:
        raise Usage(words)
    raise Infrastructure(words)


def _words(response: httpx2.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        body = {}
    if isinstance(body, dict) and isinstance(body.get("detail"), str):
        return f"{body['detail']} {body.get('hint') or ''}".strip()
    return f"{response.request.url} answered {response.status_code} without a reason: is this the address of a farm?"
