"""Makes secrets, which are shown once and stored as digests."""

import hashlib
import secrets
from typing import Final

TOKEN_PREFIX: Final = "ofk_"
LINK_PREFIX: Final = "ofl_"
SHARE_PREFIX: Final = "ofp_"
HINT_LENGTH: Final = 10


def make_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    # no salt is needed, because our secrets are 256 random bits
    return hashlib.sha256(secret.encode()).hexdigest()
