"""A method that an address does not take, answered as every error of the API is: in JSON, with words."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from farm.api.errors import API_ROOT, problem

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class MethodsInWords:
    """Middleware; sync and async. What an address takes stays in the header `Allow`."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        return _said(request, answer) if isinstance(answer, HttpResponseBase) else _later(request, answer)


async def _later(request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
    return _said(request, await answer)


def _said(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != 405 or not request.path.startswith(API_ROOT):
        return response
    allowed = response.headers.get("Allow", "")
    words = problem(405, f"{request.path} takes no {request.method}.", hint=f"It takes {allowed}." if allowed else "")
    words.headers["Allow"] = allowed
    return words
