"""Browser sessions of people who sign in through the identity provider.

The requests to the provider are imported where they are made: their libraries take 6 MB of each process, and most farms
have no provider.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest

from farm.accounts.models import User
from farm.accounts.openid.claims import read_identity
from farm.accounts.openid.people import sign_in_person
from farm.accounts.openid.provider import get_registration
from farm.accounts.openid.registration import STATE_TTL_S
from farm.base.asgi import make_rate_limit_key
from farm.base.rate_limits import Buckets, Rate
from farm.base.refusals import Refusal, TooMany

log = logging.getLogger(__name__)
BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
# keys in the session: the provider's name, and the ID token that tells the provider whom to sign out
NAME: Final = "openid_name"
ID_TOKEN: Final = "openid_id_token"
# a longer ID token would make a header too long for this farm's or the provider's proxy
MAX_HINT: Final = 4_000
MAX_CAUSE: Final = 300
# failed callbacks from one address; behind a proxy that is not trusted all people have the same address
FAILURES: Final = Rate(max_tokens=30, per_s=0.5)

visitors = Buckets(FAILURES)


class SignIn(NamedTuple):
    """A person who has signed in, the page to show them, and whether their account was created just now."""

    user: User
    next_page: str
    is_new: bool


def begin_sign_in(request: HttpRequest, *, next_page: str) -> str:
    """Begin a sign-in, and return the URL of the provider's sign-in page.

    `next_page` is the page to show afterwards. A visitor's session lasts only as long as the sign-in may take, because
    anybody may begin one. Raises Missing where the farm has no provider, Away or Invalid where the provider cannot be
    used.
    """
    get_registration()
    from farm.accounts.openid.exchange import start_authorization

    if not request.user.is_authenticated:
        request.session.set_expiry(STATE_TTL_S)
    return start_authorization(request, next_page=next_page)


def complete_sign_in(request: HttpRequest) -> SignIn:
    """Sign in the person whom the provider's callback names, and create their account where they have none.

    The browser's session then lasts as long as the registration says, and keeps the provider's name and ID token.
    Raises a Refusal of one sentence where nobody is signed in, which is written to the log, and TooMany after many
    failures from one address.
    """
    registration = get_registration()
    from farm.accounts.openid.exchange import redeem_callback

    try:
        with _charge_address(request):
            claims, id_token, next_page = redeem_callback(request)
        identity = read_identity(claims, groups_claim=registration.groups_claim, provider=registration.name)
        user, is_new = sign_in_person(identity, registration=registration)
    except Refusal as refusal:
        # the cause says which of the checks failed; it may quote the provider, so it is kept on one line
        cause = repr(str(refusal.__cause__))[:MAX_CAUSE] if refusal.__cause__ else refusal.code
        log.warning("sign-in through %s refused: %s (%s)", registration.name, refusal.detail, cause)
        raise
    login(request, user, backend=BACKEND)
    request.session[NAME], request.session[ID_TOKEN] = registration.name, id_token if len(id_token) <= MAX_HINT else ""
    request.session.set_expiry(int(registration.session_h * 3600))
    return SignIn(user, next_page, is_new)


@contextmanager
def _charge_address(request: HttpRequest) -> Iterator[None]:
    """Charge the visitor's address, and refund it where nothing is raised inside. Raises TooMany."""
    address = make_rate_limit_key(str(request.META.get("REMOTE_ADDR", "")))
    wait_s = visitors.take(address)
    if wait_s:
        raise TooMany(f"Too many sign-ins that failed come from {address}.", retry_s=wait_s)
    yield
    visitors.charge(address, -1.0)


def session_provider_name(request: HttpRequest) -> str:
    return str(request.session.get(NAME, ""))


def make_sign_out_url(request: HttpRequest) -> str:
    """Make the URL at which the provider signs the browser out too (RP-Initiated Logout 1.0).

    It is empty where the provider cannot do that or does not answer, or where the person signed in by a link. The
    session of this farm is not ended here.
    """
    token = request.session.get(ID_TOKEN)
    if token is None or settings.OPENID is None:
        return ""
    from farm.accounts.openid.issuer import fetch_configuration

    try:
        address = fetch_configuration(settings.OPENID).get("end_session_endpoint")
    except Refusal as refusal:
        log.warning("signed out here alone: %s", refusal)
        return ""
    if not address:
        return ""
    parameters = {"client_id": settings.OPENID.client_id, "post_logout_redirect_uri": f"{settings.PUBLIC_URL}/sign-in/"}
    if token:
        parameters["id_token_hint"] = token
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"
