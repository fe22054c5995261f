"""Compresses the parts of web pages for browsers that accept gzip. Models, traces and JSON are sent as they are."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from farm.api.middleware import Answer, AnswerMiddleware

PARTS_OF_PAGES = ("text/html", "text/css", "text/javascript", "image/svg+xml")


class Compression(AnswerMiddleware):
    """Middleware that compresses HTML, CSS, scripts and SVG. Django adds random bytes against BREACH.

    Files that `collectstatic` has compressed are served as they are.
    """

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(lambda request: None)  # type: ignore[arg-type]

    def change_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a part of a page that is answered with 200; return any other answer as it is."""
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if kind not in PARTS_OF_PAGES or response.status_code != 200:
            return response
        return self._gzip.process_response(request, response)
