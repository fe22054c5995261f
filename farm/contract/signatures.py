"""Ed25519 keys of nodes, so that a node proves who it is without a shared secret.

Keys are base64 of 32 bytes, and signatures of 64 bytes. Every function that takes a key raises BadKeyError for a
malformed one, except `is_signature_valid`.
"""

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class BadKeyError(ValueError):
    """The error for a key or a signature that is not base64 of the right number of bytes."""


def make_private_key() -> str:
    return base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()


def derive_public_key(private: str) -> str:
    return base64.b64encode(_load_private_key(private).public_key().public_bytes_raw()).decode()


def make_fingerprint(public: str) -> str:
    """Make the fingerprint that people compare: 32 hex digits of the key's SHA-256, as groups of four with colons.

    Raises BadKeyError for a malformed key.
    """
    digits = hashlib.sha256(_decode(public, 32)).hexdigest()[:32]
    return ":".join(digits[i : i + 4] for i in range(0, 32, 4))


def sign(private: str, message: bytes) -> str:
    return base64.b64encode(_load_private_key(private).sign(message)).decode()


def is_signature_valid(public: str, message: bytes, signature: str) -> bool:
    """Say whether `message` was signed with the private key of `public`; False for a malformed key or signature."""
    try:
        key = Ed25519PublicKey.from_public_bytes(_decode(public, 32))
        key.verify(_decode(signature, 64), message)
    except (BadKeyError, InvalidSignature):
        return False
    return True


def _load_private_key(text: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_decode(text, 32))


def _decode(text: str, size: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise BadKeyError(f"A key or signature is not base64: {problem}.") from problem
    if len(raw) != size:
        raise BadKeyError(f"A key or signature has {len(raw)} bytes instead of {size}.")
    return raw
