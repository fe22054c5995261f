"""Who may open a page, what becomes of a refusal (always a page in words), and for which team a form acts."""

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
    """A page for people who have signed in. A refusal of a service or selector becomes a page that says it."""
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


def administrator(request: HttpRequest, what: str) -> "User":
    """The signed-in user, who administers the farm. Raises NotAllowed for others: they do not see `what`."""
    user = person(request)
    if not user.is_superuser:
        raise NotAllowed(f"Only an administrator of this farm sees {what}; ask one.")
    return user


def render_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    name = "404.html" if isinstance(refusal, Missing) else "dashboard/refused.html"
    return render(request, name, {"refusal": refusal}, status=refusal.status)


def person(request: HttpRequest) -> "User":
    """The signed-in user. Raises NotAllowed on a page that is not guarded."""
    if not request.user.is_authenticated:
        raise NotAllowed("Sign in first.")
    return request.user


Done = TypeVar("Done")


def carry_out(request: HttpRequest, order: Callable[[], Done], done: Callable[[Done], str]) -> None:
    """Does what was asked. The page that comes next says that it is done, or why it was refused."""
    try:
        messages.success(request, done(order()))
    except Refusal as refusal:
        messages.error(request, str(refusal))


def typed_number(request: HttpRequest, name: str) -> int:
    """The whole number that was typed into a field; 0 for anything else, and for more than four digits."""
    typed = request.POST.get(name, "")
    return int(typed) if typed.isdecimal() and len(typed) < 5 else 0


def fields(request: HttpRequest, names: Iterable[str]) -> dict[str, str]:
    """What was typed into the fields of a form, without the byte that no database takes."""
    return {name: request.POST.get(name, "").replace("\x00", "").strip() for name in names}


def own_page(request: HttpRequest, wanted: str) -> str:
    """The address that a form or link names, where it is a page of this farm; else empty."""
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_ours else ""


class TeamChoice(NamedTuple):
    """`chosen`: a team's name; empty where the reader has to choose."""

    teams: list["Team"]
    chosen: str


def team_choice(user: "User", *, typed: str = "", among: "Iterable[Team] | None" = None) -> TeamChoice:
    """The teams in which the reader writes, or those given; chosen is what was typed, else the reader's default."""
    teams = list(teams_writable_by(user) if among is None else among)
    default = default_team(user)
    wanted = typed or (default.name if default else "")
    return TeamChoice(teams, wanted if wanted in {team.name for team in teams} else "")
