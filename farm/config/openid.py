"""The farm's identity provider, from the environment."""

from urllib.parse import urlsplit

from farm.accounts.openid.registration import Registration
from farm.config.environment import Environment


def registration(environment: Environment) -> Registration | None:
    """How the farm is registered; None without an issuer. What is wrong with it, `Registration.problem` says."""
    issuer = environment.oidc_issuer.strip()
    if not issuer:
        return None
    return Registration(
        issuer=issuer,
        client_id=environment.oidc_client_id.strip(),
        secret=_secret(environment),
        name=environment.oidc_name.strip()[:60] or _host(issuer),
        scopes=tuple(dict.fromkeys(["openid", *environment.oidc_scopes.split()])),
        groups_claim=environment.oidc_groups_claim.strip() or "groups",
        admin_group=environment.oidc_admin_group.strip(),
        hosts=tuple(host.strip().lower() for host in environment.oidc_hosts.split(",") if host.strip()),
        ca_file=environment.oidc_ca_file,
        session_h=environment.oidc_session_h,
        token_days=environment.oidc_token_days,
    )


def _secret(environment: Environment) -> str:
    """Empty where the file cannot be read, which is said as a missing secret, by `manage.py check` and at sign-in."""
    if environment.oidc_client_secret_file is None:
        return environment.oidc_client_secret.get_secret_value().strip()
    try:
        return environment.oidc_client_secret_file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _host(issuer: str) -> str:
    try:
        return urlsplit(issuer).hostname or "the identity provider"
    except ValueError:
        return "the identity provider"
