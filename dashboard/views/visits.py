"""When a reader was here last, kept in a signed cookie of their browser: a visit ends after half an hour of nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from dashboard.views.access import person

NAME = "onnxfarm_visit"
SALT = "dashboard.visit"
ENDS_AFTER = timedelta(minutes=30)
KEPT_S = 365 * 24 * 3600


@dataclass(frozen=True)
class Visit:
    """`since`: when the visit before this one ended; None on the first one."""

    since: datetime | None
    now: datetime

    def keep(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Notes in the browser that the reader was here."""
        since = int(self.since.timestamp()) if self.since is not None else 0
        value = f"{person(request).pk}:{since}:{int(self.now.timestamp())}"
        response.set_signed_cookie(
            NAME,
            value,
            salt=SALT,
            max_age=KEPT_S,
            httponly=True,
            samesite="Lax",
            secure=bool(settings.SESSION_COOKIE_SECURE),
        )
        return response


def visit(request: HttpRequest) -> Visit:
    """The reader's visit as their browser remembers it; a first one for another reader's cookie, or a forged one."""
    now = timezone.now()
    parts = (request.get_signed_cookie(NAME, default="", salt=SALT) or "").split(":")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or parts[0] != str(person(request).pk):
        return Visit(None, now)
    since, last = (datetime.fromtimestamp(int(part), UTC) for part in parts[1:])
    if now - last > ENDS_AFTER:
        return Visit(last, now)
    return Visit(since if int(parts[1]) else None, now)
