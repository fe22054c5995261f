"""The browser's orders: nothing is loaded from elsewhere, nothing inline runs, no frame, no sniffing."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponseBase

# `style-src 'unsafe-inline'` is there for Plotly, which writes style elements; scripts stay external files only
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class SecurityHeaders:
    """Middleware that adds the policies to every answer that does not bring its own; sync and async.

    Refuses addresses that hold a NUL character with 400.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL would refuse it in the middle of a query
            raise BadRequest("The address holds a NUL character.")
        answer = self.get_response(request)
        return _with_headers(answer) if isinstance(answer, HttpResponseBase) else _later(answer)


async def _later(answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
    return _with_headers(await answer)


def _with_headers(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
    return response
