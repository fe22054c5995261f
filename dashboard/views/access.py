"""Who may open a page, and what becomes of a refusal: always a page in words."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from farm.base.refusals import Missing, NotAllowed, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(view: View[P]) -> View[P]:
    """A page for people who have signed in. A refusal of a service or selector becomes a page that says it."""
    return _guarded(require_safe(view))


def action(view: View[P]) -> View[P]:
    """What such a person orders: POST alone."""
    return _guarded(require_POST(view))


def form_page(view: View[P]) -> View[P]:
    """A page with a form that is posted to itself."""
    return _guarded(require_http_methods(["GET", "HEAD", "POST"])(view))


def _guarded(view: View[P]) -> View[P]:
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
