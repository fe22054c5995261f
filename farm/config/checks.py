"""What `manage.py check` says of a farm's sandbox, beside Django's own checks."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register

from farm.config.environment import OWNS_EVERY_MODEL
from farm.registry.confinement import current_confinement


@register(Tags.security)
def check_override(**_: object) -> list[CheckMessage]:
    """A word that is not the one asked for means nothing, and says so."""
    given = settings.ENVIRONMENT.unsandboxed
    if given in ("", OWNS_EVERY_MODEL):
        return []
    text = f"ONNXFARM_UNSANDBOXED is {given!r}, which changes nothing."
    return [Error(text, hint=f"Unset it, or write {OWNS_EVERY_MODEL} if that is true.", id="onnxfarm.E002")]


@register(Tags.security)
def check_openid(**_: object) -> list[CheckMessage]:
    """An identity provider that is named in part, and a farm that nobody could get into."""
    known = settings.OPENID
    if known is not None and known.problem:
        return [Error(known.problem, hint="docs/signing-in.md says what is needed.", id="onnxfarm.E003")]
    if known is None and not settings.LOCAL_SIGN_IN:
        text = "ONNXFARM_LOCAL_SIGN_IN is off and no identity provider is named: nobody can sign in."
        return [Error(text, hint="Set ONNXFARM_OIDC_ISSUER, or switch local sign-in on.", id="onnxfarm.E004")]
    return []


@register(Tags.security, deploy=True)
def check_address(**_: object) -> list[CheckMessage]:
    """An address by plain HTTP serves a single machine."""
    url = str(settings.PUBLIC_URL)
    if url.startswith("https://"):
        return []
    text = f"ONNXFARM_PUBLIC_URL is {url}: sign-in links, sessions and tokens would cross the network unencrypted."
    hint = "Put a proxy with TLS in front (deploy/Caddyfile) and write its https:// address."
    return [Warning(text, hint=hint, id="onnxfarm.W002")]


@register(Tags.security, deploy=True)
def check_sandbox(**_: object) -> list[CheckMessage]:
    """The level on this machine, and whether uploads are read."""
    found = current_confinement()
    if not found.reads_uploads:
        return [Error(found.advice, id="onnxfarm.E001")]
    if found.level == "none":
        return [Warning(found.advice, id="onnxfarm.W001")]
    text = f"Uploads are read in a sandbox of level {found.level}."
    hint = f"ONNXFARM_UNSANDBOXED={OWNS_EVERY_MODEL} is set and not needed: unset it." if found.is_accepted else None
    return [Info(text, hint=hint, id="onnxfarm.I001")]
