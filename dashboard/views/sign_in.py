"""Signing in by a one-time link, and out."""

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST, require_safe

from dashboard.views.access import refused
from farm.accounts.refusals import Refusal
from farm.accounts.services import redeem_sign_in_link

BACKEND = "django.contrib.auth.backends.ModelBackend"
NEXT = "next"


@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """Says how to get a link; passwords do not exist here."""
    if request.user.is_authenticated:
        return redirect(_next(request))
    return render(request, "dashboard/sign_in.html", {"next": request.GET.get(NEXT, "")})


@require_GET
def redeem(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Signs in whoever holds the link. Somebody who is signed in already goes on, however old the link is."""
    try:
        user = redeem_sign_in_link(secret)
    except Refusal as refusal:
        return redirect(_next(request)) if request.user.is_authenticated else refused(request, refusal)
    login(request, user, backend=BACKEND)
    return redirect(_next(request))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session of this browser."""
    logout(request)
    return redirect("dashboard:ask_sign_in")


def _next(request: HttpRequest) -> str:
    """Where the visitor wanted to go, when that is a page of this farm."""
    wanted = request.GET.get(NEXT, "")
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_ours else "/"
