"""Access to pages, pages for refusals, and the reading of forms and of the team for which they act.

`page`, `action` and `form_page` decorate views for signed-in people: by GET, by POST, or by both. All three redirect
others to the sign-in page, and turn a Refusal that the view raises into a page that explains it, a Missing into the
page of an unknown address.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from farm.accounts.selectors import default_team, teams_writable_by
from farm.base.refusals import Missing, NotAllowed, Refusal

if TYPE_CHECKING:
    from farm.accounts.models import Team, User


P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(view: View[P]) -> View[P]:
    return _guarded(require_safe(view))


def action(view: View[P]) -> View[P]:
    return _guarded(require_POST(view))


def form_page(view: View[P]) -> View[P]:
    return _guarded(require_http_methods(["GET", "HEAD", "POST"])(view))


def _guarded(view: View[P]) -> View[P]:
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        try:
            return view(request, *args, **kwargs)
        except Refusal as refusal:
            return render_refusal(request, refusal)

    return guarded


def require_administrator(request: HttpRequest, what: str) -> "User":
    """Return the signed-in user if they administer the farm, else raise NotAllowed. `what` completes the refusal: “Only
    an administrator of this farm sees …”."""
    user = signed_in_user(request)
    if not user.is_superuser:
        raise NotAllowed(f"Only an administrator of this farm sees {what}; ask one.")
    return user


def render_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    # a missing object gets the page of an unknown address
    name = "404.html" if isinstance(refusal, Missing) else "dashboard/refused.html"
    return render(request, name, {"refusal": refusal}, status=refusal.status)


def signed_in_user(request: HttpRequest) -> "User":
    """Return the user of the request. Raises NotAllowed where nobody has signed in."""
    if not request.user.is_authenticated:
        raise NotAllowed("Sign in first.")
    return request.user


Done = TypeVar("Done")


def carry_out(
    request: HttpRequest, service: Callable[P, Done], done: Callable[[Done], str], *args: P.args, **given: P.kwargs
) -> bool:
    """Call `service` with the arguments that follow `done`, and leave a message for the next page: `done` of its
    result, or the text of its Refusal, which is not raised again. Returns whether `service` succeeded."""
    try:
        messages.success(request, done(service(*args, **given)))
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return False
    return True


def read_number(request: HttpRequest, name: str) -> int:
    """Read the whole number in the field `name` of a POST. Anything else, and more than four digits, is read as 0."""
    typed = request.POST.get(name, "")
    return int(typed) if typed.isdecimal() and len(typed) < 5 else 0


def read_fields(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    """Read these fields of a POST, stripped and without NUL bytes, which databases reject. A missing field is empty."""
    return {name: request.POST.get(name, "").replace("\x00", "").strip() for name in names}


def split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def local_address(request: HttpRequest, wanted: str) -> str:
    # a redirect to any other address could lead to another site
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else ""


class TeamChoice(NamedTuple):
    """The teams that a form offers. `chosen`: the name of the selected team, empty where the reader has to choose."""

    teams: list["Team"]
    chosen: str


def team_choice(user: "User", *, typed: str = "", among: "Iterable[Team] | None" = None) -> TeamChoice:
    """Offer the teams in which the user may write, or the teams in `among`. The team named `typed` is selected, or
    without `typed` the user's default team; none where that team is not offered."""
    teams = list(teams_writable_by(user) if among is None else among)
    default = default_team(user)
    wanted = typed or (default.name if default else "")
    return TeamChoice(teams, wanted if wanted in {team.name for team in teams} else "")
