"""Who may open a page, what becomes of a refusal (always a page in words), and for which team a form acts.

`page`, `action` and `form_page` decorate views that only signed-in people may call: by GET, by POST, or by both.
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
    """Decorates a view that is read by signed-in people, by GET or HEAD. Others are redirected to the page where one
    signs in. A Refusal that it raises becomes a page that explains it."""
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
    """Returns the signed-in user, who administers the farm. Raises NotAllowed for others, naming `what` they wanted."""
    user = signed_in_user(request)
    if not user.is_superuser:
        raise NotAllowed(f"Only an administrator of this farm sees {what}; ask one.")
    return user


def render_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    name = "404.html" if isinstance(refusal, Missing) else "dashboard/refused.html"
    return render(request, name, {"refusal": refusal}, status=refusal.status)


def signed_in_user(request: HttpRequest) -> "User":
    """Returns the user of the request. Raises NotAllowed where nobody has signed in."""
    if not request.user.is_authenticated:
        raise NotAllowed("Sign in first.")
    return request.user


Done = TypeVar("Done")


def carry_out(request: HttpRequest, order: Callable[[], Done], done: Callable[[Done], str]) -> bool:
    """Calls `order` and leaves a message for the next page: `done` of its result, or the sentence of its Refusal,
    which is not raised further. Returns whether it was carried out."""
    try:
        messages.success(request, done(order()))
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return False
    return True


def read_number(request: HttpRequest, name: str) -> int:
    """Reads the whole number in a field of a POST; 0 for anything else, and for more than four digits."""
    typed = request.POST.get(name, "")
    return int(typed) if typed.isdecimal() and len(typed) < 5 else 0


def read_fields(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    """Reads fields of a POST by name, stripped, without NUL bytes, which no database takes; a missing one is empty."""
    return {name: request.POST.get(name, "").replace("\x00", "").strip() for name in names}


def split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def local_address(request: HttpRequest, wanted: str) -> str:
    """Returns `wanted` where it is an address of this farm, else an empty string: nobody is redirected elsewhere."""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_ours else ""


class TeamChoice(NamedTuple):
    """`chosen`: a team's name; empty where the reader has to choose."""

    teams: list["Team"]
    chosen: str


def team_choice(user: "User", *, typed: str = "", among: "Iterable[Team] | None" = None) -> TeamChoice:
    """Lists teams in which the user writes, or those `among`; chosen is the one `typed`, else the user's default. It
    is empty where that is not among the teams, and an unknown typed name is not replaced by the default."""
    teams = list(teams_writable_by(user) if among is None else among)
    default = default_team(user)
    wanted = typed or (default.name if default else "")
    return TeamChoice(teams, wanted if wanted in {team.name for team in teams} else "")
