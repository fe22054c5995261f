"""Refusals: what a service answers instead of doing what it was asked.

Refusal
├── Invalid        400  what was sent cannot be used
├── NotAllowed     403  known, but not permitted
├── Missing        404  not there, or not visible to whoever asks
├── TooSlow        408  the body did not come in time
├── Conflict       409  the state has moved on
├── Gone           410  it was there, and is no more
├── TooLarge       413  over a quota or a limit
├── Unprocessable  422  understood, but it contradicts itself or the rules
├── TooMany        429  too much of it in a short time, or at once
├── Away           503  a part that the farm works with does not answer
└── NoSpace        507  the farm's own disk is full

Each carries one sentence for people, a code for programs and, where there is one, a hint at the way out.
"""

import math
from typing import ClassVar, Protocol, TypeVar

Row = TypeVar("Row", covariant=True)


class Refusal(Exception):
    """One sentence that says what happened, with which values; `hint` says what to do next."""

    status: ClassVar[int] = 400
    default_code: ClassVar[str] = "refused"

    def __init__(self, detail: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.detail} {self.hint}".strip()


class Invalid(Refusal):
    """What was sent cannot be used."""

    status = 400
    default_code = "invalid"


class NotAllowed(Refusal):
    """Whoever asks is known but may not do this."""

    status = 403
    default_code = "not_allowed"


class Missing(Refusal):
    """There is no such object, or whoever asks may not know of it."""

    status = 404
    default_code = "not_found"


class Conflict(Refusal):
    """The object's state does not allow it (any more)."""

    status = 409
    default_code = "conflict"


class Gone(Refusal):
    """It was there and is no more."""

    status = 410
    default_code = "gone"


class TooSlow(Refusal):
    """The body did not come in time."""

    status = 408
    default_code = "too_slow"


class TooLarge(Refusal):
    """Over a quota or a limit."""

    status = 413
    default_code = "too_large"


class Unprocessable(Refusal):
    """Understood, but it contradicts itself or the rules."""

    status = 422
    default_code = "unprocessable"


class TooMany(Refusal):
    """Too much of it in a short time, or at once; the same works after `retry_s` seconds."""

    status = 429
    default_code = "too_many"

    def __init__(self, detail: str, *, retry_s: float, code: str = "", hint: str = "") -> None:
        super().__init__(detail, code=code, hint=hint)
        self.retry_s = max(1, math.ceil(retry_s))


class Away(Refusal):
    """A part that the farm works with does not answer as it should; the same may work later."""

    status = 503
    default_code = "away"


class NoSpace(Refusal):
    """The farm's own disk is full."""

    status = 507
    default_code = "no_space"


class Rows(Protocol[Row]):
    """A query set, as far as `require_row` needs it."""

    def first(self) -> Row | None: ...


def require_row(rows: Rows[Row], detail: str, *, hint: str = "") -> Row:
    """Return the first of these rows. Raises Missing with this sentence where there is none."""
    row = rows.first()
    if row is None:
        raise Missing(detail, hint=hint)
    return row
