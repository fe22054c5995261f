"""Signing in by a one-time link or through the farm's identity provider, what its groups mean here, and signing out."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.views.access import (
    action,
    carry_out,
    form_page,
    local_address,
    read_fields,
    render_refusal,
    require_administrator,
    signed_in_user,
)
from dashboard.views.teams import ROLES
from farm.accounts import selectors
from farm.accounts.openid import people, sessions
from farm.accounts.openid import sessions as openid
from farm.accounts.openid.provider import get_registration
from farm.accounts.openid.registration import CALLBACK
from farm.accounts.selectors import find_user_of_link
from farm.accounts.services import redeem_sign_in_link
from farm.base.refusals import Refusal

BACKEND = "django.contrib.auth.backends.ModelBackend"
NEXT = "next"


@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """Show the identity provider's button, and how to get a link; passwords do not exist here. Who is signed in
    already is redirected on."""
    if request.user.is_authenticated:
        return redirect(read_next_page(request))
    shown = {"next": request.GET.get(NEXT, ""), "provider": settings.OPENID, "has_links": settings.LOCAL_SIGN_IN}
    return render(request, "dashboard/sign_in.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
def redeem(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Show the page of a one-time link with one button, and take the button's order, which signs in whoever pressed
    it.

    Only the order spends the link: mail servers and chats open links to look behind them. Somebody who is signed in
    already goes on from a link that opens nothing, however old it is.
    """
    try:
        if request.method != "POST":
            shown = {"user_named": find_user_of_link(secret), "next": read_next_page(request)}
            return mark_private(render(request, "dashboard/sign_in_link.html", shown))
        login(request, redeem_sign_in_link(secret), backend=BACKEND)
        # as long as any: one that was begun for the identity provider is short
        request.session.set_expiry(None)
    except Refusal as refusal:
        if not request.user.is_authenticated:
            return mark_private(render_refusal(request, refusal))
    return mark_private(redirect(read_next_page(request)))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends the session of this browser, and leads on to where the one ends that it has with the identity provider it
    came by; where that has no such address, a message says that it goes on."""
    address, name = openid.make_sign_out_url(request), openid.session_provider_name(request)
    logout(request)
    if address:
        return render(request, "dashboard/onward.html", {"address": address, "name": name})
    if name:
        messages.success(request, f"You are signed out here. At {name} you may still be signed in.")
    return redirect("dashboard:ask_sign_in")


def read_next_page(request: HttpRequest) -> str:
    """Return the address of the page of this farm that the visitor wanted to go to; `/` where it is none, and where
    it is of the administration and the visitor may not see that."""
    wanted = local_address(request, request.POST.get(NEXT) or request.GET.get(NEXT, ""))
    # the administration sends everybody else back here
    is_in = not wanted.startswith("/admin/") or not request.user.is_authenticated or request.user.is_staff
    return wanted if wanted and is_in else "/"


def mark_private(response: HttpResponseBase) -> HttpResponseBase:
    """Mark a response whose address is a secret, and return it: no cache keeps it, no search engine lists it, no
    other address is told of it.

    The origin alone is told, because a form of a page without a referrer is taken for another site's.
    """
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Referrer-Policy"] = "strict-origin"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


@require_POST
def begin_openid(request: HttpRequest) -> HttpResponseBase:
    """Sends the browser on to the provider, by a page: the policy of forms lets them lead to this farm alone."""
    try:
        name = get_registration().name
        address = sessions.begin_sign_in(request, next_page=read_next_page(request))
    except Refusal as refusal:
        return mark_private(render_refusal(request, refusal))
    return mark_private(render(request, "dashboard/onward.html", {"address": address, "name": name}))


@require_safe
def finish_openid(request: HttpRequest) -> HttpResponseBase:
    """Sign in whoever comes back from the provider, or say in a sentence why not."""
    try:
        user, next_page, is_new = sessions.complete_sign_in(request)
    except Refusal as refusal:
        return mark_private(render_refusal(request, refusal))
    if is_new:
        no_team = " You are in no team yet: ask an admin of one to add you."
        messages.success(
            request, f"Your account “{user.username}” was made.{'' if user.memberships.exists() else no_team}"
        )
    return mark_private(redirect(local_address(request, next_page) or "/"))


@form_page
def groups(request: HttpRequest) -> HttpResponseBase:
    """Show to an administrator how the farm is registered with its provider, and which groups give which roles. A
    POST maps one more; a refusal is shown. Raises NotAllowed for others."""
    user = require_administrator(request, "its identity provider")
    if request.method == "POST":
        typed = read_fields(request, ("group", "team", "role"))
        carry_out(
            request,
            lambda: people.map_group(
                group=typed["group"], team=selectors.team_named(typed["team"], user=user), role=typed["role"], by=user
            ),
            lambda made: f"Whoever is in “{made.group}” is {made.role} of {made.team} from their next sign-in.",
        )
        return redirect("dashboard:openid")
    shown = {
        "provider": settings.OPENID,
        "callback": settings.PUBLIC_URL + CALLBACK,
        "signed_out": f"{settings.PUBLIC_URL}/sign-in/",
        "has_links": settings.LOCAL_SIGN_IN,
        "mappings": selectors.group_roles(),
        "teams": selectors.teams_visible_to(user),
        "roles": ROLES.items(),
    }
    return render(request, "dashboard/openid.html", shown)


@action
def forget_group(request: HttpRequest, mapping_id: int) -> HttpResponseBase:
    """Remove the mapping of a group to a role; its people lose the role when they next sign in."""
    user = signed_in_user(request)
    gone = people.forget_group(mapping_id=mapping_id, by=user)
    messages.success(
        request, f"“{gone.group}” means nothing in {gone.team} any more; its people lose that role as they sign in."
    )
    return redirect("dashboard:openid")
