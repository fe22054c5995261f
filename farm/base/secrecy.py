"""Secrets: made here, shown once, stored as digests."""

import hashlib
import secrets
from typing import Final

TOKEN_PREFIX: Final = "ofk_"
LINK_PREFIX: Final = "ofl_"
SHARE_PREFIX: Final = "ofp_"
HINT_LENGTH: Final = 10


def new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """SHA-256 in hexadecimal: enough for 256 random bits, which cannot be guessed from it."""
    return hashlib.sha256(secret.encode()).hexdigest()
