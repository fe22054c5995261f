"""A base for middleware that changes answers, in sync and in async processes."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class AnswerMiddleware:
    """Middleware that sends what `change_response` of a subclass returns for each answer.

    Django's own MiddlewareMixin calls it in a thread in an async process, which would slow down every request.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return self.change_response(request, answer)
        return self._await_and_change(request, answer)

    def change_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        raise NotImplementedError

    async def _await_and_change(self, request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return self.change_response(request, await answer)
