"""The farm's registration with its identity provider, from the configuration. No Django here: the settings use it."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

CALLBACK: Final = "/sign-in/openid/back/"
# how long a sign-in may take from its beginning to the provider's callback
STATE_TTL_S: Final = 600
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Registration:
    """The farm's registration with its identity provider."""

    issuer: str
    client_id: str
    secret: str = field(repr=False)
    name: str
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    admin_group: str = ""
    # further hosts that the issuer's own document may name
    hosts: tuple[str, ...] = ()
    ca_file: str = ""
    # hours that a session lasts
    session_h: float = 12.0
    # days that tokens work after their person last signed in
    token_days: float = 30.0

    @property
    def problem(self) -> str:
        """Return a sentence about the first mistake in the configuration; empty where it has none."""
        if not self.client_id or not self.secret:
            return "ONNXFARM_OIDC_CLIENT_ID or its secret is missing: register the farm with the identity provider."
        try:
            parts = urlsplit(self.issuer)
            port = parts.port
        except ValueError:
            return "ONNXFARM_OIDC_ISSUER cannot be read as an address."
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or is_local) or port == 0:
            return "ONNXFARM_OIDC_ISSUER has to begin with https:// and name a host."
        if parts.query or parts.fragment or parts.username or parts.password:
            return "ONNXFARM_OIDC_ISSUER holds no user, no password, no query and no fragment."
        return ""

    def allows_url(self, url: object) -> bool:
        """Say whether the farm may send requests to this URL.

        True where scheme, host and port are the issuer's, or where it is an https:// URL of one of `hosts`. False for
        any URL with a user or a password, and for anything that is no URL.
        """
        if not isinstance(url, str) or any(ord(sign) <= 32 or ord(sign) == 127 for sign in url):
            return False
        try:
            wanted, issuer = urlsplit(url), urlsplit(self.issuer)
            if wanted.username is not None or wanted.password is not None or "\\" in url:
                return False
            origins = [(part.scheme, part.hostname, part.port) for part in (wanted, issuer)]
        except ValueError:
            return False
        return origins[0] == origins[1] or (wanted.scheme == "https" and wanted.netloc.lower() in self.hosts)
