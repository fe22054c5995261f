"""Signing in by a one-time link or through an identity provider, roles by the provider's groups, and signing out."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.views import access
from dashboard.views.access import action, form_page, local_address, signed_in_user
from dashboard.views.teams import ROLES
from farm.accounts import selectors
from farm.accounts.openid import people, sessions
from farm.accounts.openid.provider import get_registration
from farm.accounts.openid.registration import CALLBACK
from farm.accounts.selectors import find_user_of_link
from farm.accounts.services import redeem_sign_in_link
from farm.base.refusals import Refusal

BACKEND = "django.contrib.auth.backends.ModelBackend"
NEXT = "next"


@require_safe
def ask(request: HttpRequest) -> HttpResponse:
    """Show the sign-in page: the identity provider's button, and how to get a one-time link. There are no passwords.
    Signed-in people are redirected to the next page."""
    if request.user.is_authenticated:
        return redirect(read_next_page(request))
    shown = {"next": request.GET.get(NEXT, ""), "provider": settings.OPENID, "has_links": settings.LOCAL_SIGN_IN}
    return render(request, "dashboard/sign_in.html", shown)


@require_http_methods(["GET", "HEAD", "POST"])
def redeem(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Show the page of a one-time link with a button. The POST of that button signs in and uses up the link.

    A GET leaves the link valid, because mail servers and chats open links for previews. An invalid or expired link
    redirects signed-in people to the next page and shows others why it failed.
    """
    try:
        if request.method != "POST":
            shown = {"user_named": find_user_of_link(secret), "next": read_next_page(request)}
            return mark_private(render(request, "dashboard/sign_in_link.html", shown))
        login(request, redeem_sign_in_link(secret), backend=BACKEND)
        # a session that was started for the identity provider expires early, so use the usual expiry again
        request.session.set_expiry(None)
    except Refusal as refusal:
        if not request.user.is_authenticated:
            return mark_private(access.render_refusal(request, refusal))
    return mark_private(redirect(read_next_page(request)))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session of this browser. People who signed in through the identity provider get a page that leads to its
    sign-out page. Where the provider has none, a message says that its own session may continue. All others are
    redirected to the sign-in page."""
    address, name = sessions.make_sign_out_url(request), sessions.session_provider_name(request)
    logout(request)
    if address:
        return render(request, "dashboard/onward.html", {"address": address, "name": name})
    if name:
        messages.success(request, f"You are signed out here. At {name} you may still be signed in.")
    return redirect("dashboard:ask_sign_in")


def read_next_page(request: HttpRequest) -> str:
    """Read from `next` the address to which signing in leads. It is `/` where `next` is no address of this farm, or a
    page of Django's administration that the visitor may not see."""
    wanted = local_address(request, request.POST.get(NEXT) or request.GET.get(NEXT, ""))
    # the administration redirects others to the sign-in page, which would make an endless loop
    may_see = not wanted.startswith("/admin/") or not request.user.is_authenticated or request.user.is_staff
    return wanted if wanted and may_see else "/"


def mark_private(response: HttpResponseBase) -> HttpResponseBase:
    """Set headers on a response whose address is a secret, and return it: caches must not store it, search engines must
    not list it, and other sites get only the origin as referrer.

    The origin is sent because the CSRF check rejects forms of pages without a referrer.
    """
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["Referrer-Policy"] = "strict-origin"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


@require_POST
def begin_openid(request: HttpRequest) -> HttpResponseBase:
    """Start signing in at the identity provider, and show a page that leads there. A redirect is not possible, because
    the content security policy forbids forms to redirect to other sites."""
    try:
        name = get_registration().name
        address = sessions.begin_sign_in(request, next_page=read_next_page(request))
    except Refusal as refusal:
        return mark_private(access.render_refusal(request, refusal))
    return mark_private(render(request, "dashboard/onward.html", {"address": address, "name": name}))


@require_safe
def finish_openid(request: HttpRequest) -> HttpResponseBase:
    """Sign in the person whom the identity provider sends back and redirect to the next page, or show why that failed.
    An account is made for a new person."""
    try:
        user, next_page, is_new = sessions.complete_sign_in(request)
    except Refusal as refusal:
        return mark_private(access.render_refusal(request, refusal))
    if is_new:
        team = "" if user.memberships.exists() else " You are in no team yet: ask an admin of one to add you."
        messages.success(request, f"Your account “{user.username}” was made.{team}")
    return mark_private(redirect(local_address(request, next_page) or "/"))


@form_page
def groups(request: HttpRequest) -> HttpResponseBase:
    """Show how the farm is registered with its identity provider, and which groups have which roles. A POST maps a
    group to a role and redirects to the page, which shows a refusal. Raises NotAllowed for people who do not administer
    the farm."""
    user = access.require_administrator(request, "its identity provider")
    if request.method == "POST":
        typed = access.read_fields(request, ("group", "team", "role"))
        access.carry_out(
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
    """Remove the mapping of a group to a role. Members of the group lose the role when they next sign in. Redirects to
    the page of the provider; a refusal is raised."""
    gone = people.forget_group(mapping_id=mapping_id, by=signed_in_user(request))
    done = f"“{gone.group}” means nothing in {gone.team} any more; its people lose that role as they sign in."
    messages.success(request, done)
    return redirect("dashboard:openid")
