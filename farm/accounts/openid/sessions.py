"""The browser's session of somebody who came by the identity provider, from its beginning to its end.

The conversation with the provider is imported where it is held: its libraries take 6 MB of each process, and most farms
have no provider.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest

from farm.accounts.models import User
from farm.accounts.openid.claims import read_identity
from farm.accounts.openid.people import take_in
from farm.accounts.openid.provider import registration
from farm.accounts.openid.registration import STATE_TTL_S
from farm.base.asgi import make_rate_limit_key
from farm.base.rate_limits import Buckets, Rate
from farm.base.refusals import Refusal, TooMany

log = logging.getLogger(__name__)
BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
# of the session: the provider's name and the ID token, by which the provider knows whom to sign out
NAME: Final = "openid_name"
ID_TOKEN: Final = "openid_id_token"
# beyond it a header of this farm's or the provider's proxy would be too long
MAX_HINT: Final = 4_000
# returns of one address that the provider does not vouch for; behind a proxy that is not believed all have one address
FAILURES: Final = Rate(max_tokens=30, per_s=0.5)

visitors = Buckets(FAILURES)


def begin(request: HttpRequest, *, wanted: str) -> str:
    """Where the browser goes to sign in; `wanted` is the page that it comes back to. Raises a Refusal.

    The session of a visitor who only begins ends with what it is for: anybody may begin one.
    """
    registration()
    from farm.accounts.openid.exchange import address_to_sign_in

    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_TTL_S)
    return address_to_sign_in(request, wanted=wanted)


def sign_in_who_came_back(request: HttpRequest) -> tuple[User, str, bool]:
    """Signs in whoever comes back from the provider: the user, the page they wanted, and whether their account is new.

    Raises a Refusal in one sentence; then nobody is signed in.
    """
    mine = registration()
    from farm.accounts.openid.exchange import who_came_back

    try:
        with _exchange(request):
            claims, id_token, wanted = who_came_back(request)
        identity = read_identity(claims, groups_claim=mine.groups_claim, provider=mine.name)
        user, is_new = take_in(identity, registration=mine)
    except Refusal as refusal:
        log.warning("sign-in through %s refused: %s (%s)", mine.name, refusal.detail, refusal.code)
        raise
    login(request, user, backend=BACKEND)
    request.session[NAME], request.session[ID_TOKEN] = mine.name, id_token if len(id_token) <= MAX_HINT else ""
    request.session.set_expiry(int(mine.session_h * 3600))
    return user, wanted, is_new


@contextmanager
def _exchange(request: HttpRequest) -> Iterator[None]:
    """A token of the visitor's address, given back for a good code. Raises TooMany."""
    address = make_rate_limit_key(str(request.META.get("REMOTE_ADDR", "")))
    wait_s = visitors.take(address)
    if wait_s:
        raise TooMany(f"Too many sign-ins that failed come from {address}.", retry_s=wait_s)
    yield
    visitors.charge(address, -1.0)


def provider_of(request: HttpRequest) -> str:
    return str(request.session.get(NAME, ""))


def address_to_sign_out(request: HttpRequest) -> str:
    """Where the provider signs the browser out too (RP-Initiated Logout 1.0); empty where it cannot or does not
    answer, or the session came by a link."""
    token = request.session.get(ID_TOKEN)
    if token is None or settings.OPENID is None:
        return ""
    from farm.accounts.openid.issuer import configuration

    try:
        address = configuration(settings.OPENID).get("end_session_endpoint")
    except Refusal as refusal:
        log.warning("signed out here alone: %s", refusal)
        return ""
    if not address:
        return ""
    asked = {"client_id": settings.OPENID.client_id, "post_logout_redirect_uri": f"{settings.PUBLIC_URL}/sign-in/"}
    if token:
        asked["id_token_hint"] = token
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"
