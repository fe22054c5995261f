"""Ed25519 (RFC 8032, section 5.1), so that a node proves who it is without a shared secret.

Written on Python's integers, because nothing else here needs a cryptography wheel: one signature or check costs a few
milliseconds and happens once in weeks. Signing is not constant-time; the signer is the machine that owns the key.
Keys and signatures travel as base64 of their 32 and 64 bytes.
"""

import base64
import binascii
import hashlib
import secrets

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_SQRT_M1 = pow(2, (_P - 1) // 4, _P)

# a point in extended homogeneous coordinates: x = X/Z, y = Y/Z, x·y = T/Z
_Point = tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


class BadKeyError(ValueError):
    """A key is not base64 of 32 bytes, or its bytes are no point of the curve."""


def make_private_key() -> str:
    """A new private key."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def public_key(private: str) -> str:
    """The public key that belongs to a private one."""
    scalar, _ = _expand(_decoded(private, 32))
    return base64.b64encode(_packed(_times(scalar, _BASE))).decode()


def fingerprint(public: str) -> str:
    """What people compare before they approve a node: SHA-256 of the public key, 16 bytes in groups of four digits."""
    digits = hashlib.sha256(_decoded(public, 32)).hexdigest()[:32]
    return ":".join(digits[i : i + 4] for i in range(0, 32, 4))


def sign(private: str, message: bytes) -> str:
    """The signature of a message."""
    scalar, prefix = _expand(_decoded(private, 32))
    public = _packed(_times(scalar, _BASE))
    nonce = _hashed(prefix + message)
    commitment = _packed(_times(nonce, _BASE))
    answer = (nonce + _hashed(commitment + public + message) * scalar) % _L
    return base64.b64encode(commitment + answer.to_bytes(32, "little")).decode()


def is_signed(public: str, message: bytes, signature: str) -> bool:
    """Whether `signature` of `message` was made with the private key of `public`. False for malformed input."""
    try:
        key, raw = _decoded(public, 32), _decoded(signature, 64)
        owner, commitment = _unpacked(key), _unpacked(raw[:32])
    except BadKeyError:
        return False
    answer = int.from_bytes(raw[32:], "little")
    if answer >= _L:
        return False
    challenge = _hashed(raw[:32] + key + message)
    return _is_same(_times(answer, _BASE), _plus(commitment, _times(challenge, owner)))


def check_public_key(public: str) -> None:
    """Raises BadKeyError unless `public` is a usable public key: on the curve and not of small order."""
    if _is_same(_times(8, _unpacked(_decoded(public, 32))), _NEUTRAL):
        raise BadKeyError("The public key is a point of small order. Make a new key pair.")


def _decoded(text: str, size: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise BadKeyError(f"A key or signature is not base64: {problem}.") from problem
    if len(raw) != size:
        raise BadKeyError(f"A key or signature has {len(raw)} bytes instead of {size}.")
    return raw


def _expand(seed: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little")
    scalar &= (1 << 254) - 8
    return scalar | 1 << 254, digest[32:]


def _hashed(content: bytes) -> int:
    return int.from_bytes(hashlib.sha512(content).digest(), "little") % _L


def _plus(p: _Point, q: _Point) -> _Point:
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    product = _NEUTRAL
    while scalar:
        if scalar & 1:
            product = _plus(product, point)
        point = _plus(point, point)
        scalar >>= 1
    return product


def _is_same(p: _Point, q: _Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 and (p[1] * q[2] - q[1] * p[2]) % _P == 0


def _packed(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _unpacked(raw: bytes) -> _Point:
    packed = int.from_bytes(raw, "little")
    y, sign_bit = packed & (1 << 255) - 1, packed >> 255
    if y >= _P:
        raise BadKeyError("A key's bytes are no point of the curve.")
    x = _x_of(y, sign_bit)
    return x, y, 1, x * y % _P


def _x_of(y: int, sign_bit: int) -> int:
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _SQRT_M1 % _P
    if (x * x - square) % _P or (x == 0 and sign_bit):
        raise BadKeyError("A key's bytes are no point of the curve.")
    return x if x & 1 == sign_bit else _P - x


_BASE: _Point = _unpacked((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
