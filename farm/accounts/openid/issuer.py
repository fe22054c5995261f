"""Requests to the identity provider, to no other host, with limits on time and size.

The provider's own document names its endpoints (OpenID Connect Discovery 1.0, section 4). It has to name the configured
issuer, and addresses on that issuer's host or on hosts that the farm's administrator listed.
"""

import io
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import requests
from django.core.cache import cache
from urllib3.exceptions import HTTPError

from farm.accounts.openid.registration import Registration
from farm.base.refusals import Away, Invalid

WELL_KNOWN: Final = "/.well-known/openid-configuration"
# how long the provider may be silent, and how long a whole body may take
TIMEOUT_S: Final = 5.0
DEADLINE_S: Final = 10.0
MAX_BYTES: Final = 1 << 20
# how long the provider's configuration, and the fact that it did not answer, are cached
CACHE_TTL_S: Final = 300
FAILURE_TTL_S: Final = 5
# addresses that the configuration must name, and those that it may name
NEEDED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
OPTIONAL: Final = ("userinfo_endpoint", "end_session_endpoint")
SETTING: Final = "ONNXFARM_OIDC_HOSTS"


class IssuerSession(requests.Session):
    """A session for the issuer alone, which raises InvalidURL for other hosts.

    It follows no redirect, and uses no proxy or password of the environment.
    """

    def __init__(self, registration: Registration) -> None:
        super().__init__()
        self.registration = registration
        self.trust_env = False
        self.verify = registration.ca_file or True

    def request(self, method: str, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        """Send a request, and return the answer with its whole body read, whatever its status.

        Raises InvalidURL for another host, and another RequestException for a body that is too long or too slow.
        """
        if not isinstance(url, str) or not self.registration.allows_url(url):
            raise requests.exceptions.InvalidURL("not an address of the identity provider")
        options |= {"timeout": TIMEOUT_S, "allow_redirects": False, "stream": True}
        answer = super().request(method, url, *args, **options)
        with closing(answer.raw):
            body = _read_body(answer)
        answer.raw = io.BytesIO(body)
        return answer


def fetch_configuration(registration: Registration) -> dict[str, Any]:
    """Fetch and check the provider's own document, which is cached for CACHE_TTL_S.

    Raises Away where the provider does not answer, and again for FAILURE_TTL_S without asking it; Invalid where the
    document or the farm's registration cannot be used.
    """
    if registration.problem:
        raise Invalid(f"This farm's sign-in is not set up: {registration.problem}")
    key = f"openid:{registration.issuer}"
    if (cached := cache.get(key)) is not None:
        if not cached:
            raise make_away_refusal(registration.name)
        return dict(cached)
    try:
        configuration = _fetch_document(registration)
    except Away:
        # anybody may open the sign-in page, and it must not wait again for a provider that was away a moment ago
        cache.set(key, {}, FAILURE_TTL_S)
        raise
    _check_configuration(configuration, registration)
    cache.set(key, configuration, CACHE_TTL_S)
    return configuration


def make_away_refusal(name: str) -> Away:
    """Make the refusal for a provider that does not answer."""
    return Away(
        f"{name} does not answer, so nobody was signed in.", hint="Try again in a minute, or ask an administrator."
    )


def _fetch_document(registration: Registration) -> dict[str, Any]:
    try:
        with IssuerSession(registration) as session:
            answer = session.get(registration.issuer.rstrip("/") + WELL_KNOWN)
        if answer.status_code != 200:
            raise Away(
                f"{registration.name} answers {answer.status_code} where its configuration should be.",
                hint="Ask an administrator whether ONNXFARM_OIDC_ISSUER is right.",
            )
        configuration = answer.json()
    except requests.exceptions.JSONDecodeError:
        configuration = None
    except requests.RequestException as problem:
        raise make_away_refusal(registration.name) from problem
    if not isinstance(configuration, dict):
        raise Invalid(f"{registration.name} sent no configuration that this farm can read.")
    return configuration


def _check_configuration(configuration: Mapping[str, Any], registration: Registration) -> None:
    """Raise Invalid for a document of another issuer, or with addresses on other hosts."""
    name, issuer = registration.name, configuration.get("issuer")
    if issuer != registration.issuer:
        raise Invalid(
            f"{name} says that it is “{str(issuer)[:200]}”, and this farm expects “{registration.issuer}”: nobody was "
            f"signed in.",
            code="other_issuer",
        )
    for part in NEEDED + OPTIONAL:
        url = configuration.get(part)
        if url is None and part in OPTIONAL:
            continue
        if not registration.allows_url(url):
            raise Invalid(
                f"{name} names “{str(url)[:200]}” as its {part}, which is not on the issuer's host.",
                hint=f"If that is right, an administrator lists the host in {SETTING}.",
                code="elsewhere",
            )


def _read_body(answer: requests.Response) -> bytes:
    """Read the body. Raises RequestException where it is too long or too slow."""
    until = time.monotonic() + DEADLINE_S
    body = bytearray()
    try:
        while part := answer.raw.read1(1 << 16, decode_content=True):
            body += part
            if len(body) > MAX_BYTES:
                raise requests.exceptions.ContentDecodingError(f"more than {MAX_BYTES} bytes")
            if time.monotonic() > until:
                raise requests.exceptions.ReadTimeout(f"not read within {DEADLINE_S:.0f} s")
    except (OSError, HTTPError) as problem:
        if isinstance(problem, requests.RequestException):
            raise
        raise requests.exceptions.ConnectionError(str(problem)) from problem
    return bytes(body)
