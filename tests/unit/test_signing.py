"""Ed25519 against the test vectors of RFC 8032, section 7.1."""

import base64

import pytest

from farm.contract import signatures

# (secret key, public key, message, signature), hexadecimal
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


def as_text(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


@pytest.mark.parametrize(("private", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_standard_hold(private: str, public: str, message: str, signature: str) -> None:
    assert signatures.derive_public_key(as_text(private)) == as_text(public)
    assert signatures.sign(as_text(private), bytes.fromhex(message)) == as_text(signature)
    assert signatures.is_signature_valid(as_text(public), bytes.fromhex(message), as_text(signature))


def test_another_message_or_another_key_is_refused() -> None:
    mine, other = signatures.make_private_key(), signatures.make_private_key()
    signature = signatures.sign(mine, b"node 7")
    assert signatures.is_signature_valid(signatures.derive_public_key(mine), b"node 7", signature)
    assert not signatures.is_signature_valid(signatures.derive_public_key(mine), b"node 8", signature)
    assert not signatures.is_signature_valid(signatures.derive_public_key(other), b"node 7", signature)


@pytest.mark.parametrize("signature", ["", "not base64!", as_text("00" * 63), as_text("ff" * 64)])
def test_a_malformed_signature_is_refused_without_an_error(signature: str) -> None:
    public = signatures.derive_public_key(signatures.make_private_key())
    assert not signatures.is_signature_valid(public, b"x", signature)


def test_a_signature_whose_answer_is_not_reduced_is_refused() -> None:
    private = signatures.make_private_key()
    raw = base64.b64decode(signatures.sign(private, b"x"))
    order = 2**252 + 27742317777372353535851937790883648493
    forged = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    assert not signatures.is_signature_valid(
        signatures.derive_public_key(private), b"x", base64.b64encode(forged).decode()
    )


@pytest.mark.parametrize("public", ["", "AAAA", "kein base64"])
def test_a_malformed_public_key_is_refused_in_one_sentence(public: str) -> None:
    with pytest.raises(signatures.BadKeyError, match=r"^A key or signature .*\.$"):
        signatures.make_fingerprint(public)


def test_the_fingerprint_is_short_enough_to_compare_aloud() -> None:
    text = signatures.make_fingerprint(as_text(VECTORS[0][1]))
    assert len(text.split(":")) == 8
    assert text == signatures.make_fingerprint(as_text(VECTORS[0][1]))
