"""Middleware that changes answers on their way out, sync and async."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class AnswerMiddleware:
    """A subclass says in `changed` what becomes of an answer.

    Django's own MiddlewareMixin calls a thread for that in an async process, which every request would pay for.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        return self.changed(request, answer) if isinstance(answer, HttpResponseBase) else self._later(request, answer)

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        raise NotImplementedError

    async def _later(self, request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return self.changed(request, await answer)
