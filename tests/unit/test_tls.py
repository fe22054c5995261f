"""`onnxfarm serve --tls-cert --tls-key`: what a certificate has to be, and what is said of one that is not."""

import ipaddress
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from farm.config.embedded.plan import NotPossibleError, Plan, find_free_port, make_plan
from farm.config.embedded.tls import add_tls


def made(
    folder: Path, names: Sequence[x509.GeneralName], *, common: str = "a farm", password: bytes = b""
) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(who, who, private.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem, how = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    cert, key = folder / f"{common}.pem", folder / f"{common}.key"
    cert.write_bytes(builder.sign(private, SHA256()).public_bytes(pem))
    lock_home = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    key.write_bytes(private.private_bytes(pem, how, lock_home))
    return cert, key


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return make_plan(home=tmp_path / "home", port=find_free_port())


LAN = x509.IPAddress(ipaddress.ip_address("192.168.1.7"))
SIX = x509.IPAddress(ipaddress.ip_address("fd00::7"))


@pytest.mark.parametrize(
    ("names", "common", "host"),
    [
        ([LAN, x509.DNSName("*.lan"), x509.DNSName("farm.lan")], "x", "farm.lan"),
        ([LAN], "x", "192.168.1.7"),
        ([SIX], "x", "[fd00::7]"),
        ([], "old.lan", "old.lan"),
    ],
)
def test_people_and_nodes_are_told_a_name_of_the_certificate(
    plan: Plan, tmp_path: Path, names: list[x509.GeneralName], common: str, host: str
) -> None:
    cert, key = made(tmp_path, names, common=common)
    found = add_tls(plan, cert=cert, key=key, port=find_free_port())
    assert found.pages_url == f"https://{host}:{found.tls.port}"
    assert found.nodes_url == f"https://{host}:{found.tls.gateway_port}"
    assert "ONNXFARM_BEHIND_PROXY" not in found.environment


def test_an_address_that_the_operator_set_stays(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_PUBLIC_URL", "https://farm.example")
    cert, key = made(tmp_path, [x509.DNSName("farm.lan")])
    plan = make_plan(home=tmp_path / "home", port=find_free_port())
    assert add_tls(plan, cert=cert, key=key, port=find_free_port()).pages_url == "https://farm.example"


def test_a_certificate_that_names_no_host_is_said(plan: Plan, tmp_path: Path) -> None:
    cert, key = made(tmp_path, [x509.DNSName("*.lan")])
    with pytest.raises(NotPossibleError, match="names no host that can be typed: set ONNXFARM_PUBLIC_URL"):
        add_tls(plan, cert=cert, key=key, port=find_free_port())


def test_a_key_of_another_certificate_is_said(plan: Plan, tmp_path: Path) -> None:
    cert, _ = made(tmp_path, [LAN])
    _, other = made(tmp_path, [LAN], common="other")
    with pytest.raises(NotPossibleError, match=r"is not the key of .* \(KEY_VALUES_MISMATCH\)"):
        add_tls(plan, cert=cert, key=other, port=find_free_port())


def test_a_key_with_a_password_is_said_and_nobody_is_asked_for_it(plan: Plan, tmp_path: Path) -> None:
    cert, key = made(tmp_path, [LAN], password=b"secret")
    with pytest.raises(NotPossibleError, match="it asks for a password"):
        add_tls(plan, cert=cert, key=key, port=find_free_port())


@pytest.mark.parametrize("content", [None, b"", b"\x00" * 40, b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_no_certificate_is_said(plan: Plan, tmp_path: Path, content: bytes | None) -> None:
    _, key = made(tmp_path, [LAN])
    cert = tmp_path / "broken.pem"
    if content is not None:
        cert.write_bytes(content)
    with pytest.raises(NotPossibleError, match=r"cannot be read|is not a certificate in PEM"):
        add_tls(plan, cert=cert, key=key, port=find_free_port())


def test_a_key_that_is_not_there_is_said(plan: Plan, tmp_path: Path) -> None:
    cert, key = made(tmp_path, [LAN])
    key.unlink()
    with pytest.raises(NotPossibleError, match="No such file"):
        add_tls(plan, cert=cert, key=key, port=find_free_port())


def test_a_port_that_is_taken_is_said_with_its_option(plan: Plan, tmp_path: Path) -> None:
    cert, key = made(tmp_path, [LAN])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(NotPossibleError, match="--tls-port N"):
            add_tls(plan, cert=cert, key=key, port=taken.getsockname()[1])
