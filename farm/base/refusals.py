"""Refusals: the errors that a service raises instead of doing what a request asks for.

Refusal
├── Invalid        400  the request cannot be used as it is
├── NotAllowed     403  the sender is known but may not do this
├── Missing        404  there is no such object, or the sender may not know of it
├── TooSlow        408  the body did not come in time
├── Conflict       409  the state has moved on
├── Gone           410  the object existed and was removed
├── TooLarge       413  over a quota or a limit
├── Unprocessable  422  understood, but it contradicts itself or the rules
├── TooMany        429  too many requests in a short time, or at once
├── Away           503  a service that the farm works with does not answer
└── NoSpace        507  the farm's own disk is full

Each has a sentence for people, a code for programs and, if possible, a hint on what to do. TooMany rounds its seconds
up, to 1 at least, and sends them in the header Retry-After.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeVar

Row = TypeVar("Row", covariant=True)


class Refusal(Exception):
    """One sentence that says what happened, with which values; `hint` says what to do next."""

    status: ClassVar[int] = 400
    default_code: ClassVar[str] = "refused"
    # headers of the HTTP answer
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, detail: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.detail} {self.hint}".strip()


class Invalid(Refusal):
    """The request cannot be used as it is."""

    status = 400
    default_code = "invalid"


class NotAllowed(Refusal):
    """The sender is known but may not do this."""

    status = 403
    default_code = "not_allowed"


class Missing(Refusal):
    """There is no such object, or the sender may not know of it."""

    status = 404
    default_code = "not_found"


class Conflict(Refusal):
    """The object's state does not allow it (any more)."""

    status = 409
    default_code = "conflict"


class Gone(Refusal):
    """The object existed and was removed."""

    status = 410
    default_code = "gone"


class TooSlow(Refusal):
    """The body did not come in time."""

    status = 408
    default_code = "too_slow"


class TooLarge(Refusal):
    """The request exceeds a quota or a limit."""

    status = 413
    default_code = "too_large"


class Unprocessable(Refusal):
    """The request is understood, but it contradicts itself or the rules."""

    status = 422
    default_code = "unprocessable"


class TooMany(Refusal):
    """Too many requests came in a short time, or at once; the same request works after `retry_s` seconds."""

    status = 429
    default_code = "too_many"

    def __init__(self, detail: str, *, retry_s: float, code: str = "", hint: str = "") -> None:
        super().__init__(detail, code=code, hint=hint)
        self.retry_s = max(1, math.ceil(retry_s))
        self.headers = {"Retry-After": str(self.retry_s)}


class Away(Refusal):
    """A service that the farm works with does not answer as it should; the same request may work later."""

    status = 503
    default_code = "away"


class NoSpace(Refusal):
    """The farm's own disk is full."""

    status = 507
    default_code = "no_space"


class Rows(Protocol[Row]):
    """A query set, as `require_row` needs it."""

    def first(self) -> Row | None: ...


def require_row(rows: Rows[Row], detail: str, *, hint: str = "") -> Row:
    """Return the first of these rows. Raises Missing with this sentence where there is none."""
    row = rows.first()
    if row is None:
        raise Missing(detail, hint=hint)
    return row
