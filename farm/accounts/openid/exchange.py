"""The sign-in itself, by django-allauth: state, proof key (PKCE), code for tokens. What it would show or store by
itself is stopped here: its pages, its e-mail addresses, its linking of accounts.

Beyond allauth: the ID token's signature is checked although it came by TLS, with the issuer that the farm was told, a
nonce that binds it to this browser, and the same subject in what the provider says of the person (OpenID Connect Core
1.0, sections 3.1.3.7 and 5.3.2).
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import jwt
import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from farm.accounts.openid.claims import is_subject
from farm.accounts.openid.issuer import IssuerSession, away, configuration
from farm.accounts.openid.provider import registration
from farm.accounts.openid.registration import CALLBACK
from farm.base.refusals import Away, Invalid, NotAllowed, Refusal

# asymmetric ones: the client's secret signs nothing
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_S: Final = 60
MAX_ID_TOKEN: Final = 1 << 18
Claims = dict[str, Any]


def address_to_sign_in(request: HttpRequest, *, wanted: str) -> str:
    """Where the browser goes to sign in; `wanted` is the page that it comes back to. Raises a Refusal."""
    nonce = secrets.token_urlsafe(24)
    # consent and the choice of an account are the provider's to ask for
    answer = _provider(request).redirect(
        request, AuthProcess.LOGIN, next_url=wanted, auth_params={"nonce": nonce}, nonce=nonce
    )
    return str(answer["Location"])


def who_came_back(request: HttpRequest) -> tuple[Claims, str, str]:
    """Claims, ID token and wanted page of whoever comes back from the provider. Raises a Refusal, in one sentence."""
    view = OAuth2CallbackView.adapter_view(Exchange(request, OpenIDConnectProvider.id))
    came = view(request)
    if not isinstance(came, _Came):
        raise _unusable(registration().name)
    return came.claims, came.id_token, came.wanted


class Exchange(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """The farm's side of the conversation."""

    @property
    def openid_config(self) -> Claims:
        return configuration(registration())

    @property
    def basic_auth(self) -> bool:
        # Discovery 1.0: without a word about it, it is the header
        known = self.openid_config.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return "client_secret_post" not in known

    def get_provider(self) -> OpenIDConnectProvider:
        return _provider(self.request)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return settings.PUBLIC_URL + CALLBACK

    def get_access_token_data(self, *args: Any, **options: Any) -> Claims:
        try:
            found = super().get_access_token_data(*args, **options)
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            raise OAuth2Error("no answer of a token endpoint") from problem
        if not isinstance(found, dict) or not isinstance(found.get("access_token"), str):
            raise OAuth2Error("no access token")
        return found

    def parse_token(self, data: Claims) -> object:
        # how long it lives means nothing here: it is used once, and kept nowhere
        return super().parse_token({"access_token": data["access_token"]})

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **options: Any) -> object:
        sent = options["response"].get("id_token")
        if not isinstance(sent, str) or len(sent) > MAX_ID_TOKEN:
            raise OAuth2Error("no ID token")
        claims = self._checked(sent)
        if self.openid_config.get("userinfo_endpoint"):
            claims = self._said_of(token.token, subject=claims["sub"]) | claims
        login = self.get_provider().sociallogin_from_response(request, {"id_token": {"sub": claims["sub"]}})
        login.claims, login.id_token = claims, sent
        return login

    def _checked(self, id_token: str) -> Claims:
        mine = registration()
        try:
            header = jwt.get_unverified_header(id_token)
            key = self._key(header.get("kid"))
            if header.get("alg") not in ALGORITHMS:
                raise OAuth2Error("its algorithm")
            found: Claims = jwt.decode(
                id_token, key=key, algorithms=[header["alg"]], issuer=mine.issuer, audience=mine.client_id,
                leeway=LEEWAY_S, options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError) as problem:
            raise OAuth2Error("its ID token") from problem
        if found.get("azp", mine.client_id) != mine.client_id or not is_subject(found["sub"]):
            raise OAuth2Error("another party's ID token")
        return found

    def _key(self, name: object) -> jwt.PyJWK:
        """The provider's key of that name; its only one, where the token names none."""
        with IssuerSession(registration()) as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            known = jwt.PyJWKSet.from_dict(answer.json()).keys
        found = [one for one in known if one.key_id == name and one.public_key_use in (None, "sig")]
        if name is None:
            found = known
        if len(found) != 1:
            raise OAuth2Error("its keys")
        return found[0]

    def _said_of(self, access_token: str, *, subject: object) -> Claims:
        found = self._fetch_user_info(access_token)
        if not isinstance(found, dict) or found.get("sub") != subject:
            raise OAuth2Error("another person's claims")
        return found


class SignInAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """What allauth asks on its way: the provider, the session to ask it by, and what to do in the end."""

    def get_requests_session(self) -> IssuerSession:
        return IssuerSession(registration())

    def list_apps(self, request: HttpRequest, provider: object = None, client_id: object = None) -> list[SocialApp]:
        return [_app()]

    def get_provider(self, request: HttpRequest, provider: object, client_id: object = None) -> OpenIDConnectProvider:
        return _provider(request)

    def authenticate_by_email(self, login: object) -> None:
        """An e-mail address makes nobody somebody else."""

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: object,
        error: object = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, object] | None = None,
    ) -> NoReturn:
        raise _refusal(request, error, exception, has_state="state" in (extra_context or {}))

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> NoReturn:
        """Ends allauth's part: who that is here, and whether they may come in, the farm's own services say."""
        state = sociallogin.state
        if sociallogin.claims.get("nonce") != state.get("nonce"):
            raise _unusable(registration().name)
        raise ImmediateHttpResponse(_Came(sociallogin.claims, sociallogin.id_token, str(state.get("next") or "/")))


class _Came(HttpResponse):
    """Somebody who came back, carried through allauth's views; never sent."""

    def __init__(self, claims: Claims, id_token: str, wanted: str) -> None:
        super().__init__()
        self.claims, self.id_token, self.wanted = claims, id_token, wanted


class _Provider(OpenIDConnectProvider):  # type: ignore[misc]
    oauth2_adapter_class = Exchange
    pkce_enabled_default = True

    def get_oauth2_adapter(self, request: HttpRequest) -> Exchange:
        return Exchange(request, OpenIDConnectProvider.id)


def _app() -> SocialApp:
    mine = registration()
    told = {"server_url": mine.issuer, "scope": list(mine.scopes)}
    return SocialApp(
        provider=OpenIDConnectProvider.id, name=mine.name, client_id=mine.client_id, secret=mine.secret, settings=told
    )


def _provider(request: HttpRequest) -> _Provider:
    return _Provider(request, app=_app())


def _refusal(request: HttpRequest, error: object, exception: Exception | None, *, has_state: bool) -> Refusal:
    name = registration().name
    if isinstance(exception, requests.ConnectionError | requests.Timeout):
        return away(name)
    if isinstance(exception, requests.HTTPError) and exception.response is not None:
        return Away(f"{name} answered {exception.response.status_code}, so nobody was signed in.", hint="Try again.")
    if exception is not None:
        return _unusable(name)
    if not has_state:
        return NotAllowed(
            "This sign-in was used already, took more than ten minutes, or began in another browser.",
            code="stale_sign_in",
            hint="Sign in again.",
        )
    if error == AuthError.CANCELLED:
        return NotAllowed(
            f"{name} did not get your consent, so nobody was signed in.", code="denied", hint="Sign in again."
        )
    said = "".join(sign for sign in request.GET.get("error", "")[:60] if sign.isprintable())
    return Invalid(
        f"{name} refused the sign-in: “{said or 'without a reason'}”.", hint="Ask an administrator of the farm."
    )


def _unusable(name: str) -> Invalid:
    return Invalid(
        f"{name} sent an answer that does not prove who signed in, so nobody was.",
        code="unproven",
        hint="Sign in again; if this goes on, tell an administrator of the farm.",
    )
