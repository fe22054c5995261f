"""Signs people in by OpenID Connect's code flow, with state, proof key (PKCE) and nonce of this browser's session.

Though the ID token comes by TLS, its signature is checked, and with it the configured issuer, the nonce, and that the
provider's other claims are of the same subject (OpenID Connect Core 1.0, sections 3.1.3.7 and 5.3.2).
"""

import base64
import hashlib
import secrets
import time
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import jwt
import requests
from django.conf import settings
from django.http import HttpRequest

from farm.accounts.openid.claims import is_valid_subject
from farm.accounts.openid.issuer import IssuerSession, fetch_configuration, make_away_refusal
from farm.accounts.openid.provider import get_registration
from farm.accounts.openid.registration import CALLBACK, STATE_TTL_S, Registration
from farm.base.refusals import Away, Invalid, NotAllowed

# asymmetric algorithms only, so that a token that is signed with the client's secret is refused
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
# how far the clocks of the provider and the farm may differ
LEEWAY_S: Final = 60
MAX_ID_TOKEN: Final = 1 << 18
# key in the session: pending sign-ins of this browser, by their state, because each of several windows may begin one
PENDING: Final = "openid_begun"
MAX_PENDING: Final = 10
Claims = dict[str, Any]


class UnprovenError(Exception):
    """An answer of the provider that does not prove who signed in."""


class Callback(NamedTuple):
    """The result of the callback. `next_page` is the page that the person asked for before they signed in."""

    claims: Claims
    id_token: str
    next_page: str


def start_authorization(request: HttpRequest, *, next_page: str) -> str:
    """Store a pending sign-in in the session, and return the URL of the provider's sign-in page.

    `next_page` is the page to show afterwards. A browser's newest MAX_PENDING sign-ins can be completed.
    Raises Missing where the farm has no provider, Away or Invalid where the provider cannot be used.
    """
    registration = get_registration()
    address = fetch_configuration(registration)["authorization_endpoint"]
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    newest = dict(list(request.session.get(PENDING, {}).items())[1 - MAX_PENDING :])
    attempt = {"nonce": nonce, "verifier": verifier, "wanted": next_page, "at": time.time()}
    request.session[PENDING] = {**newest, state: attempt}
    # without `prompt`: the provider decides whether it asks for consent or for an account
    parameters = {
        "client_id": registration.client_id,
        "redirect_uri": settings.PUBLIC_URL + CALLBACK,
        "response_type": "code",
        "scope": " ".join(registration.scopes),
        "state": state,
        "nonce": nonce,
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"


def redeem_callback(request: HttpRequest) -> Callback:
    """Exchange the code in the provider's callback for the person's claims and ID token. Each callback works once.

    Nobody is signed in here. Raises NotAllowed for a stale sign-in or one without consent, Away where the provider does
    not answer or an endpoint answers with an error, Invalid where the provider refused the sign-in or its answer does
    not prove who signed in, and Missing where the farm has no provider.
    """
    registration = get_registration()
    attempt = _take_attempt(request)
    code = _read_code(request, registration)
    try:
        with IssuerSession(registration) as session:
            exchange = _Exchange(session, registration)
            claims, id_token = exchange.redeem(code, verifier=attempt["verifier"], nonce=attempt["nonce"])
    except (requests.ConnectionError, requests.Timeout) as problem:
        raise make_away_refusal(registration.name) from problem
    except requests.HTTPError as problem:
        raise Away(f"{registration.name} answered {problem}, so nobody was signed in.", hint="Try again.") from problem
    except (requests.RequestException, UnprovenError) as problem:
        raise Invalid(
            f"{registration.name} sent an answer that does not prove who signed in, so nobody was.",
            code="unproven",
            hint="Sign in again; if this goes on, tell an administrator of the farm.",
        ) from problem
    return Callback(claims, id_token, attempt["wanted"])


def _take_attempt(request: HttpRequest) -> dict[str, Any]:
    """Remove the pending sign-in that the callback's `state` names from the session, and return it.

    Raises NotAllowed where there is none or where it is too old.
    """
    pending = request.session.get(PENDING, {})
    attempt: dict[str, Any] | None = pending.pop(request.GET.get("state", ""), None)
    if attempt is not None:
        request.session[PENDING] = pending
        # saved at once: the rest takes a while, and the same URL may be opened meanwhile
        request.session.save()
    if attempt is None or time.time() - attempt["at"] > STATE_TTL_S:
        raise NotAllowed(
            "This sign-in was used already, took more than ten minutes, or began in another browser.",
            code="stale_sign_in",
            hint="Sign in again.",
        )
    return attempt


def _read_code(request: HttpRequest, registration: Registration) -> str:
    """Return the code. Raises NotAllowed or Invalid where the provider sent an error in its place."""
    error, code = request.GET.get("error"), request.GET.get("code")
    if error is None and code:
        return code
    if error == "access_denied":
        raise NotAllowed(
            f"{registration.name} did not get your consent, so nobody was signed in.",
            code="denied",
            hint="Sign in again.",
        )
    reason = "".join(sign for sign in (error or "")[:60] if sign.isprintable())
    raise Invalid(
        f"{registration.name} refused the sign-in: “{reason or 'without a reason'}”.",
        hint="Ask an administrator of the farm.",
    )


class _Exchange:
    """The requests from the farm to the provider, which raise RequestException and UnprovenError."""

    def __init__(self, session: IssuerSession, registration: Registration) -> None:
        self._session, self._registration = session, registration
        self._provider = fetch_configuration(registration)

    def redeem(self, code: str, *, verifier: str, nonce: str) -> tuple[Claims, str]:
        """Exchange a code for the person's claims and the ID token."""
        tokens = self._fetch_tokens(code, verifier=verifier)
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str) or len(id_token) > MAX_ID_TOKEN or not isinstance(access_token, str):
            raise UnprovenError("the token endpoint sent no ID token or no access token")
        claims = self._verify_id_token(id_token)
        if claims.get("nonce") != nonce:
            raise UnprovenError("the ID token has the nonce of another sign-in")
        return self._fetch_user_info(access_token, subject=claims["sub"]) | claims, id_token

    def _fetch_tokens(self, code: str, *, verifier: str) -> Claims:
        registration = self._registration
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.PUBLIC_URL + CALLBACK,
            "code_verifier": verifier,
        }
        # Discovery 1.0: a provider that lists no methods takes the secret in the header
        methods = self._provider.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        auth = None if "client_secret_post" in methods else (registration.client_id, registration.secret)
        if auth is None:
            form |= {"client_id": registration.client_id, "client_secret": registration.secret}
        answer = self._session.post(self._provider["token_endpoint"], data=form, auth=auth)
        if answer.status_code != 200:
            raise UnprovenError(f"the token endpoint answered {answer.status_code}")
        return _read_object(answer)

    def _verify_id_token(self, id_token: str) -> Claims:
        client_id = self._registration.client_id
        try:
            header = jwt.get_unverified_header(id_token)
            if header.get("alg") not in ALGORITHMS:
                raise UnprovenError(f"the ID token is signed with the algorithm {header.get('alg')!r}")
            claims: Claims = jwt.decode(
                id_token, key=self._find_key(header.get("kid")), algorithms=[header["alg"]], audience=client_id,
                issuer=self._registration.issuer, leeway=LEEWAY_S,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError) as problem:
            raise UnprovenError(f"the ID token is refused: {problem}") from problem
        if claims.get("azp", client_id) != client_id or not is_valid_subject(claims["sub"]):
            raise UnprovenError("the ID token is for another party, or its subject is no valid text")
        return claims

    def _find_key(self, name: object) -> jwt.PyJWK:
        """Return the provider's key of that name, or its only key where the token names none."""
        keys = jwt.PyJWKSet.from_dict(self._fetch_object(self._provider["jwks_uri"])).keys
        fitting = [key for key in keys if key.key_id == name and key.public_key_use in (None, "sig")]
        if name is None:
            fitting = keys
        if len(fitting) != 1:
            raise UnprovenError(f"{len(fitting)} of the provider's keys fit the ID token, in place of one")
        return fitting[0]

    def _fetch_user_info(self, access_token: str, *, subject: object) -> Claims:
        """Return the provider's further claims of the person; empty where it has no endpoint for them."""
        address = self._provider.get("userinfo_endpoint")
        if not address:
            return {}
        claims = self._fetch_object(address, headers={"Authorization": f"Bearer {access_token}"})
        if claims.get("sub") != subject:
            raise UnprovenError("the userinfo endpoint answered for another subject")
        return claims

    def _fetch_object(self, address: str, *, headers: dict[str, str] | None = None) -> Claims:
        answer = self._session.get(address, headers=headers)
        if answer.status_code >= 400:
            raise requests.HTTPError(answer.status_code)
        return _read_object(answer)


def _read_object(answer: requests.Response) -> Claims:
    document = answer.json()
    if not isinstance(document, dict):
        raise UnprovenError("an endpoint answered with no JSON object")
    return document
