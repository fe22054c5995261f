"""What a page orders: the fields of its form, what was done or refused in words, and the page to go on to."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from django.contrib import messages
from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme

from farm.base.refusals import Refusal

Done = TypeVar("Done")


def ordered(request: HttpRequest, order: Callable[[], Done], done: Callable[[Done], str]) -> None:
    """Does what was asked. The page that comes next says that it is done, or why it was refused."""
    try:
        messages.success(request, done(order()))
    except Refusal as refusal:
        messages.error(request, str(refusal))


def fields(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    """What was typed into the fields of a form, without the byte that no database takes."""
    return {name: request.POST.get(name, "").replace("\x00", "").strip() for name in names}


def own_page(request: HttpRequest, wanted: str) -> str:
    """The address that a form or link names, where it is a page of this farm; else empty."""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_ours else ""
