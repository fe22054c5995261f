"""A mail server's address as Django's EMAIL_… settings."""

from urllib.parse import unquote, urlsplit

PORTS = {"smtp": 25, "smtps": 465, "smtp+tls": 587}
TIMEOUT_S = 15


def mail_settings(url: str) -> dict[str, object]:
    """Settings of `smtp://user:password@host:port`; without an address, mail is refused before it is sent.

    Raises ValueError for any other scheme, or without a host.
    """
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(
            f"ONNXFARM_MAIL_URL starts with {parts.scheme or 'nothing'}://; use smtp://host, "
            "smtps://user:password@host or smtp+tls://user:password@host"
        )
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_TIMEOUT": TIMEOUT_S,
    }
