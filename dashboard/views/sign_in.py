"""Signing in by a one-time link, and out."""

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.views.access import refused
from dashboard.views.orders import own_page
from farm.accounts.refusals import Refusal
from farm.accounts.selectors import user_of_sign_in_link
from farm.accounts.services import redeem_sign_in_link

BACKEND = "django.contrib.auth.backends.ModelBackend"
NEXT = "next"


@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """Says how to get a link; passwords do not exist here."""
    if request.user.is_authenticated:
        return redirect(_next(request))
    return render(request, "dashboard/sign_in.html", {"next": request.GET.get(NEXT, "")})


@require_http_methods(["GET", "HEAD", "POST"])
def redeem(request: HttpRequest, secret: str) -> HttpResponseBase:
    """A page with one button, and the button's order, which signs in whoever pressed it.

    Only the order spends the link: mail servers and chats open links to look behind them. Somebody who is signed in
    already goes on from a link that opens nothing, however old it is.
    """
    try:
        if request.method != "POST":
            shown = {"user_named": user_of_sign_in_link(secret), "next": _next(request)}
            return _kept_private(render(request, "dashboard/sign_in_link.html", shown))
        login(request, redeem_sign_in_link(secret), backend=BACKEND)
    except Refusal as refusal:
        if not request.user.is_authenticated:
            return _kept_private(refused(request, refusal))
    return _kept_private(redirect(_next(request)))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session of this browser."""
    logout(request)
    return redirect("dashboard:ask_sign_in")


def _next(request: HttpRequest) -> str:
    """Where the visitor wanted to go, when that is a page of this farm."""
    wanted = own_page(request, request.POST.get(NEXT) or request.GET.get(NEXT, ""))
    # the administration sends everybody else back here
    is_in = not wanted.startswith("/admin/") or not request.user.is_authenticated or request.user.is_staff
    return wanted if wanted and is_in else "/"


def _kept_private(response: HttpResponseBase) -> HttpResponseBase:
    """The page's address is a secret: no cache keeps it, no search engine lists it, no other address is told of it.

    The origin alone is told, because a form of a page without a referrer is taken for another site's.
    """
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Referrer-Policy"] = "strict-origin"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response
