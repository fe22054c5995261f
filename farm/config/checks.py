"""Adds checks to `manage.py check`: of the farm's sandbox, sign-in and address."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register

from farm.config.environment import OWNS_EVERY_MODEL
from farm.registry.confinement import current_confinement


@register(Tags.security)
def check_unsandboxed(**_: object) -> list[CheckMessage]:
    """Report, as an error, a value of ONNXFARM_UNSANDBOXED that means nothing; empty if it is valid or unset."""
    value = settings.ENVIRONMENT.unsandboxed
    if value in ("", OWNS_EVERY_MODEL):
        return []
    text = f"ONNXFARM_UNSANDBOXED is {value!r}, which changes nothing."
    return [Error(text, hint=f"Unset it, or write {OWNS_EVERY_MODEL} if that is true.", id="onnxfarm.E002")]


@register(Tags.security)
def check_openid(**_: object) -> list[CheckMessage]:
    """Report, as an error, an incomplete OpenID Connect configuration, or that nobody can sign in; else empty."""
    registration = settings.OPENID
    if registration is not None and registration.problem:
        return [Error(registration.problem, hint="docs/signing-in.md says what is needed.", id="onnxfarm.E003")]
    if registration is None and not settings.LOCAL_SIGN_IN:
        text = "ONNXFARM_LOCAL_SIGN_IN is off and no identity provider is named: nobody can sign in."
        return [Error(text, hint="Set ONNXFARM_OIDC_ISSUER, or switch local sign-in on.", id="onnxfarm.E004")]
    return []


@register(Tags.security, deploy=True)
def check_address(**_: object) -> list[CheckMessage]:
    """Warn about a public address that does not begin with https://; empty if it does."""
    url = str(settings.PUBLIC_URL)
    if url.startswith("https://"):
        return []
    text = f"ONNXFARM_PUBLIC_URL is {url}: sign-in links, sessions and tokens would cross the network unencrypted."
    hint = "Put a proxy with TLS in front (deploy/Caddyfile) and write its https:// address."
    return [Warning(text, hint=hint, id="onnxfarm.W002")]


@register(Tags.security, deploy=True)
def check_sandbox(**_: object) -> list[CheckMessage]:
    """Report the level of the sandbox on this machine, always as one message.

    It is an error if uploads cannot be read, a warning if they are read without a sandbox, and else information.
    """
    confinement = current_confinement()
    if not confinement.reads_uploads:
        return [Error(confinement.advice, id="onnxfarm.E001")]
    if confinement.level == "none":
        return [Warning(confinement.advice, id="onnxfarm.W001")]
    text = f"Uploads are read in a sandbox of level {confinement.level}."
    unset_hint = f"ONNXFARM_UNSANDBOXED={OWNS_EVERY_MODEL} is set and not needed: unset it."
    hint = unset_hint if confinement.is_accepted else None
    return [Info(text, hint=hint, id="onnxfarm.I001")]
