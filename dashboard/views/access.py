"""Who may open a page, and what becomes of a refusal: always a page in words."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from farm.base.refusals import Missing, NotAllowed, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(view: View[P]) -> View[P]:
    """A page for people who have signed in. A refusal of a service or selector becomes a page that says it."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        try:
            return view(request, *args, **kwargs)
        except Refusal as refusal:
            return refused(request, refusal)

    return guarded


def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The page of a refusal, with its own status."""
    name = "404.html" if isinstance(refusal, Missing) else "dashboard/refused.html"
    return render(request, name, {"refusal": refusal}, status=refusal.status)


def person(request: HttpRequest) -> "User":
    """The signed-in user. Raises NotAllowed on a page that is not guarded."""
    if not request.user.is_authenticated:
        raise NotAllowed("Sign in first.")
    return request.user
