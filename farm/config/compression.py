"""Compresses web pages, scripts and images for browsers that accept gzip, but no models, traces and JSON."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from farm.api.middleware import Answer, AnswerMiddleware

COMPRESSED_TYPES = ("text/html", "text/css", "text/javascript", "image/svg+xml")


class Compression(AnswerMiddleware):
    """Middleware that compresses responses of COMPRESSED_TYPES. Django adds random bytes against BREACH.

    Files that `collectstatic` has compressed are not compressed again.
    """

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(lambda request: None)  # type: ignore[arg-type]

    def change_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a response with status 200 and one of COMPRESSED_TYPES, if the browser accepts gzip.

        Any other is returned as it is, and so is one that is very short or encoded already. `Vary` names
        Accept-Encoding where a browser's gzip decides.
        """
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        if media_type not in COMPRESSED_TYPES or response.status_code != 200:
            return response
        return self._gzip.process_response(request, response)
