"""Signing in through the farm's identity provider, and what its groups mean here."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.views.access import action, fields, form_page, ordered, own_page, person, refused
from dashboard.views.sign_in import kept_private, wanted_page
from dashboard.views.teams import ROLES
from farm.accounts import selectors
from farm.accounts.openid import people, sessions
from farm.accounts.openid.provider import registration
from farm.accounts.openid.registration import CALLBACK
from farm.base.refusals import NotAllowed, Refusal


@require_POST
def begin(request: HttpRequest) -> HttpResponseBase:
    """Sends the browser on to the provider, by a page: the policy of forms lets them lead to this farm alone."""
    try:
        name = registration().name
        address = sessions.begin(request, wanted=wanted_page(request))
    except Refusal as refusal:
        return kept_private(refused(request, refusal))
    return kept_private(render(request, "dashboard/onward.html", {"address": address, "name": name}))


@require_safe
def back(request: HttpRequest) -> HttpResponseBase:
    """Whoever comes back from the provider: signed in, or told in a sentence why not."""
    try:
        user, wanted, is_new = sessions.sign_in_who_came_back(request)
    except Refusal as refusal:
        return kept_private(refused(request, refusal))
    if is_new:
        messages.success(request, _welcome(user.username, has_team=user.memberships.exists()))
    return kept_private(redirect(own_page(request, wanted) or "/"))


@form_page
def groups(request: HttpRequest) -> HttpResponseBase:
    """How the farm is registered, and which groups give which roles; a POST maps one more."""
    user = person(request)
    if not user.is_superuser:
        raise NotAllowed("Only an administrator of this farm sees its identity provider; ask one.")
    if request.method == "POST":
        typed = fields(request, ("group", "team", "role"))
        ordered(
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
def forget(request: HttpRequest, mapping_id: int) -> HttpResponseBase:
    """A group that means nothing any more."""
    user = person(request)
    gone = people.forget_group(mapping_id=mapping_id, by=user)
    messages.success(
        request, f"“{gone.group}” means nothing in {gone.team} any more; its people lose that role as they sign in."
    )
    return redirect("dashboard:openid")


def _welcome(name: str, *, has_team: bool) -> str:
    said = f"Your account “{name}” was made."
    return said if has_team else f"{said} You are in no team yet: ask an admin of one to add you."
