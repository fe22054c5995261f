"""What pages are made of is compressed for whoever takes it. Models, traces and what programs read go as they are."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from farm.api.middleware import Answer, AnswerMiddleware

PARTS_OF_PAGES = ("text/html", "text/css", "text/javascript", "image/svg+xml")


class Compression(AnswerMiddleware):
    """Files that `collectstatic` compressed are served as it left them. Bytes of chance hide what a page's length would
    tell (BREACH)."""

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(lambda request: None)  # type: ignore[arg-type]

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if kind not in PARTS_OF_PAGES or response.status_code != 200:
            return response
        return self._gzip.process_response(request, response)
