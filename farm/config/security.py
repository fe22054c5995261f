"""Sets security headers: browsers load nothing from other hosts, run no inline scripts and show no page in a frame."""

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponseBase

from farm.api.middleware import Answer, AnswerMiddleware

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


class SecurityHeaders(AnswerMiddleware):
    """Middleware that adds the policies to responses, and raises BadRequest for a URL with a NUL character."""

    def __call__(self, request: HttpRequest) -> Answer:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL would refuse it in the middle of a query
            raise BadRequest("The address holds a NUL character.")
        return super().__call__(request)

    def change_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add each policy that the response does not have."""
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response
