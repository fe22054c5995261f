"""Node keys: Ed25519, so that a node proves who it is without a shared secret.

Keys and signatures travel as base64 of their 32 and 64 bytes.
"""

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class BadKeyError(ValueError):
    """A key or signature is not base64 of the bytes it should have."""


def make_private_key() -> str:
    return base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()


def derive_public_key(private: str) -> str:
    return base64.b64encode(_private(private).public_key().public_bytes_raw()).decode()


def fingerprint(public: str) -> str:
    """What people compare before they approve a node: SHA-256 of the public key, 16 bytes in groups of four digits."""
    digits = hashlib.sha256(_decoded(public, 32)).hexdigest()[:32]
    return ":".join(digits[i : i + 4] for i in range(0, 32, 4))


def sign(private: str, message: bytes) -> str:
    return base64.b64encode(_private(private).sign(message)).decode()


def is_signature_valid(public: str, message: bytes, signature: str) -> bool:
    """Whether `signature` of `message` was made with the private key of `public`. False for malformed input."""
    try:
        key = Ed25519PublicKey.from_public_bytes(_decoded(public, 32))
        key.verify(_decoded(signature, 64), message)
    except (BadKeyError, InvalidSignature):
        return False
    return True


def _private(text: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_decoded(text, 32))


def _decoded(text: str, size: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise BadKeyError(f"A key or signature is not base64: {problem}.") from problem
    if len(raw) != size:
        raise BadKeyError(f"A key or signature has {len(raw)} bytes instead of {size}.")
    return raw
