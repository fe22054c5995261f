"""Authentication by a bearer token (`ofk_…`) or a browser session. Scopes are checked here, rights in the services.

A gate token is one whose only scope is `gate`: it belongs to one team, and serves the gates of pull requests alone.
`find_gate_token` returns None for a request with another token or a session.
"""

from importlib import import_module
from typing import cast

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from farm.accounts.models import Team, Token, User
from farm.accounts.selectors import teams_writable_by, valid_token
from farm.accounts.services import note_token_use
from farm.accounts.states import Scope
from farm.base.refusals import Missing, NotAllowed

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class TokenRequest(HttpRequest):
    """A request that was authenticated by a token."""

    token: Token


class TokenAuth(HttpBearer):
    """Authentication by a person's token. Reading needs any token but a gate token, a change the scope `changes`.

    A token with both scopes `write` and `admin` may change everything. With `takes_gates`, gate tokens are accepted
    too; the operation itself then has to call `check_gate_token`.
    """

    def __init__(self, changes: Scope = Scope.WRITE, *, takes_gates: bool = False) -> None:
        super().__init__()
        self._changes, self._takes_gates = changes, takes_gates

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        """Return the token's person, never None; set `request.user` and `request.token`, and store that it was used.

        Raises AuthenticationError for a token that is unknown, expired or revoked, NotAllowed where it lacks the scope.
        """
        row = valid_token(token)
        if row is None:
            raise AuthenticationError()
        is_reading = request.method in SAFE_METHODS
        is_allowed = self._may_read(row) if is_reading else self._may_change(row)
        if not is_allowed:
            raise make_scope_refusal(row, Scope.READ if is_reading else self._changes)
        note_token_use(row)
        request.user = row.user
        cast(TokenRequest, request).token = row
        return row.user

    def _may_read(self, token: Token) -> bool:
        return self._takes_gates or not is_gate_token(token)

    def _may_change(self, token: Token) -> bool:
        if is_gate_token(token):
            return self._takes_gates
        return self._changes in token.scopes or {Scope.WRITE, Scope.ADMIN} <= set(token.scopes)


class BrowserAuth(AuthBase):
    """Authentication by a browser session; a call returns the user, or None without a session of an active person.

    Every change needs the CSRF token too; NotAllowed is raised without it.
    """

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "onnxfarm_session"

    def __call__(self, request: HttpRequest) -> User | None:
        # check the person first: the CSRF check reads the body of a form, which a stranger must not cause
        if not request.user.is_authenticated or not request.user.is_active:
            return None
        if request.method not in SAFE_METHODS and check_csrf(request) is not None:
            raise NotAllowed("The form has expired; reload the page and try again.", code="csrf")
        return request.user


# authentication of the few operations that accept gate tokens; all others refuse them
GATED = [TokenAuth(takes_gates=True), BrowserAuth()]


def is_gate_token(token: Token) -> bool:
    return set(token.scopes) == {Scope.GATE}


def find_gate_token(request: HttpRequest) -> Token | None:
    token: Token | None = getattr(request, "token", None)
    return token if token is not None and is_gate_token(token) else None


def check_gate_token(request: HttpRequest, team: Team, *, is_its_own: bool = True) -> None:
    """Raise Missing where the request has a gate token and asks for something of another team than the token's.

    Raise it also where `is_its_own` is False, as for a run that another token started. Requests with other tokens or a
    session are never refused here.
    """
    gate = find_gate_token(request)
    if gate is not None and not (gate.team_id == team.pk and is_its_own):
        raise Missing(
            "The gate's token finds nothing here.",
            hint=f"It reads versions of team “{gate.team}”, and runs that it started.",
        )


def identify_sender(request: HttpRequest) -> User | None:
    """Identify the person by the request's headers alone, before a long body is read; None where nobody signed in.

    Scopes and the CSRF token are not checked here, and the use of a token is not stored. `request.token` is set where
    the request has a valid token, and without any token `request.session`, but never `request.user`. A bad token is not
    made good by a session.
    """
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == TokenAuth.openapi_scheme:
        token = valid_token(secret.strip())
        if token is None:
            return None
        cast(TokenRequest, request).token = token
        return token.user
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(
        request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    )
    user = get_user(request)
    return user if isinstance(user, User) else None


def check_uploader(request: HttpRequest, sender: User) -> None:
    """Raise NotAllowed, before a file is stored, for a person who may write in no team or whose token lacks `write`.

    Gate tokens are accepted; their team is checked later.
    """
    if find_gate_token(request) is None:
        require_scope(request, Scope.WRITE)
    if not teams_writable_by(sender).exists():
        raise NotAllowed("You belong to no team in which you may upload; ask an admin to add you to one.")


def person(request: HttpRequest) -> User:
    return cast(User, request.user)


def require_scope(request: HttpRequest, scope: Scope) -> None:
    """Raise NotAllowed where the request's token lacks the scope. A browser session has all of its user's rights."""
    token: Token | None = getattr(request, "token", None)
    if token is not None and scope not in token.scopes:
        raise make_scope_refusal(token, scope)


def make_scope_refusal(token: Token, scope: Scope) -> NotAllowed:
    """Make the refusal of a token that lacks this scope, with the scopes that it has."""
    return NotAllowed(
        f"The token {token.hint}… may only {' and '.join(token.scopes)}; this needs the scope `{scope}`.",
        code="scope",
        hint=f"Make one with the scope `{scope}` on the settings page.",
    )
