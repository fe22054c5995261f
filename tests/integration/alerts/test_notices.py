"""Notices through apprise: what an address may hold, and where its connections may lead."""

import datetime
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.alerts.channels import apprise
from farm.alerts.channels.apprise import PARAMETERS, build_address
from farm.alerts.channels.channel_kind import DeliveryProblem
from farm.alerts.channels.pins import Pins
from farm.alerts.services import channels, deliveries
from farm.alerts.states import DeliveryState
from tests.integration.alerts.receiver import Receiver, receiving

LOOPBACK = ["127.0.0.0/8", "::1/128"]
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
TEAMS = "workflows://prod-1.logic.example:443/643e69f83c8944438d68119179a10a64/KODuebWbDGYFr0z0eu"
TELEGRAM = "tgram://123456789:abcdefg_hijklmnop/12315544"
# one address of each service that is allowed, with a parameter of its own
TAKEN = [
    f"{SLACK}/#general?footer=no",
    f"{TEAMS}?wrap=no",
    f"{TELEGRAM}?silent=yes&format=markdown",
    "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?tts=yes",
    "gchat://workspace/key/token?thread=x",
    "gotifys://push.example/AbCdEfGhIjKlMnO?priority=5",
    "matrixs://user:word@chat.example/#room?msgtype=notice",
    "mmosts://chat.example/3ccdd113474722377935511fc85d3dd4?channel=bench",
    "opsgenie://a6k4ABnck26hDh8AA3EDHoOVdDEUlw3nty?priority=3",
    "pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7F?severity=critical",
    "pover://" + "u" * 30 + "@" + "t" * 30 + "?priority=low",
    "rockets://user:word@chat.example/#bench?avatar=no",
    "webex://" + "a" * 80,
]


@pytest.mark.parametrize("address", TAKEN)
def test_every_service_that_is_allowed_can_be_named(address: str) -> None:
    apprise.check(address)


def test_each_allowed_service_has_its_line_above() -> None:
    assert {address.partition(":")[0] for address in TAKEN} == set(PARAMETERS)


@pytest.mark.parametrize(
    "address",
    [
        f"{SLACK}?template=file:///etc/passwd",
        f"{SLACK}?footer=no&template=http://169.254.169.254/latest/meta-data/",
        f"{SLACK}?footer=no;template=/etc/passwd",
        f"{SLACK}?TEMPLATE=/etc/passwd",
        f"{SLACK}?%74emplate=/etc/passwd",
        f"{SLACK}?+template=/etc/passwd",
        f"{SLACK}/#general?template=/etc/passwd",
        f"{SLACK}?footer=no?&template=/etc/passwd",
        f"{SLACK}?:name=value",
        f"{SLACK}?verify=no",
        f"{SLACK}?redirect=yes",
        f"{SLACK}?rto=86400",
        f"{SLACK}?retry=9&wait=3600",
        f"{SLACK}?store=yes",
        f"{TEAMS}?template=/etc/passwd",
        f"{TELEGRAM}?template=/etc/passwd",
        f"{TELEGRAM}?image=yes",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?template=/etc/passwd",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?avatar_url=http://10.0.0.1/",
        "matrixs://user:word@chat.example/#room?discovery=yes",
        "matrixs://user:word@chat.example/#room?e2ee=yes",
        "pover://" + "u" * 30 + "@" + "t" * 30 + "?key=/etc/passwd",
        "opsgenie://a6k4ABnck26hDh8AA3EDHoOVdDEUlw3nty?+detail=x",
    ],
)
def test_an_admin_cannot_have_the_farm_fetch_a_file_or_an_address(address: str) -> None:
    with pytest.raises(DeliveryProblem, match="is not allowed in a") as problem:
        apprise.check(address)
    assert problem.value.is_permanent
    with pytest.raises(DeliveryProblem):
        apprise.notify(address, subject="x", text="y")


@pytest.mark.parametrize(
    "address",
    ["json://inner.example", "mailto://user:word@mail.example", "file:///etc/passwd", "matrix://user:word@chat.example",
     "https://hooks.slack.com/services/T1/B1/x", "apprise://inner.example/token", "syslog://", "slack:x", "", "dbus://",
     f"{SLACK}/ x", f"{SLACK}\r\n?template=x", f"{SLACK}\\x"],
)  # fmt: skip
def test_other_schemes_and_odd_signs_are_refused(address: str) -> None:
    with pytest.raises(DeliveryProblem):
        apprise.check(address)


def test_apprise_reads_nothing_but_what_was_read_before_it() -> None:
    """Values that look like parameters stay values; redirects, discovery and certificates are ours to say."""
    address = build_address("matrixs://a:b@chat.example/#room?version=3%26discovery%3Dyes&mode=off")
    assert address.partition("?")[0] == "matrixs://a:b@chat.example/#room"
    assert "version=3%26discovery%3Dyes&" in address
    assert address.endswith("&redirect=no&verify=yes&discovery=no&e2ee=no")


def certificate(folder: Path) -> Path:
    """A certificate of `localhost` with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A chat service with TLS on this machine, whose certificate the farm's operator trusts."""
    path = certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with receiving(200) as receiver:
        receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
        yield receiver


def address_of(service: Receiver) -> str:
    return f"gotifys://localhost:{service.server.server_port}/AbCdEfGhIjKlMnO"


@pytest.mark.django_db
def test_a_notice_arrives_over_tls_where_the_operator_named_the_network(
    team: Team, owner: User, settings: Settings, service: Receiver
) -> None:
    settings.WEBHOOK_NETWORKS = LOOPBACK
    target = address_of(service)
    channel = channels.create_channel(team=team, by=owner, name="chat", kind="apprise", target=target)
    delivery = channels.test_channel(channel=channel, by=owner)
    assert deliveries.deliver(delivery.pk)
    [(headers, body)] = service.seen
    assert "it works" in json.loads(body)["message"]
    assert headers["host"].startswith("localhost:")


def test_a_service_inside_the_network_gets_nothing(service: Receiver) -> None:
    with pytest.raises(DeliveryProblem, match="inside a network") as problem:
        apprise.notify(address_of(service), subject="x", text="y", networks=["10.0.0.0/8"])
    assert problem.value.is_permanent
    assert service.seen == []


def test_a_redirect_is_not_followed(service: Receiver) -> None:
    service.answers = [302]
    with pytest.raises(DeliveryProblem, match="did not accept the message") as problem:
        apprise.notify(address_of(service), subject="x", text="y", networks=LOOPBACK)
    assert len(service.seen) == 1
    assert "secret" not in str(problem.value)


def test_an_untrusted_certificate_gets_nothing(service: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(DeliveryProblem):
        apprise.notify(address_of(service), subject="x", text="y", networks=LOOPBACK)
    assert service.seen == []


def test_a_service_that_never_answers_is_left_after_seconds(service: Receiver) -> None:
    service.pause_s = 5.0
    with pytest.raises(DeliveryProblem, match="did not finish within 3 s") as problem:
        apprise.notify(address_of(service), subject="x", text="y", networks=LOOPBACK, timeout_s=3.0)
    assert not problem.value.is_permanent


def test_no_proxy_looks_names_up_instead_of_the_farm(service: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        apprise.notify(address_of(service), subject="x", text="y", networks=LOOPBACK)
        proxy.settimeout(0.2)
        with pytest.raises(TimeoutError):
            proxy.accept()
    assert len(service.seen) == 1


@pytest.mark.django_db
def test_a_channel_from_before_that_may_not_be_any_more_fails_and_says_why(team: Team, owner: User) -> None:
    channel = channels.create_channel(team=team, by=owner, name="chat", kind="apprise", target=SLACK)
    channel.target += "?template=/etc/passwd"
    channel.save()
    delivery = channels.test_channel(channel=channel, by=owner)
    assert not deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.state == DeliveryState.FAILED
    assert "template is not allowed" in delivery.problem
    assert "passwd" not in delivery.problem


def answers(*addresses: str) -> list[Any]:
    return [(0, 0, 0, "", (address, 443)) for address in addresses]


def test_a_name_that_answers_otherwise_the_second_time_leads_nowhere_else() -> None:
    """DNS rebinding: public while it is judged, the cloud's metadata when it is connected to."""
    told = iter([answers("1.1.1.1"), answers("169.254.169.254"), answers("10.0.0.1")])
    pins = Pins(lookup=lambda *_, **__: next(told))
    for _ in range(3):
        [(family, kind, _, _, where)] = pins.getaddrinfo("chat.example", 443, 0, socket.SOCK_STREAM)
        assert (family, kind, where) == (socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 443))
    pins.check_event("socket.connect", (None, ("1.1.1.1", 443)))
    for elsewhere in ("169.254.169.254", "10.0.0.1", "::ffff:169.254.169.254"):
        with pytest.raises(PermissionError):
            pins.check_event("socket.connect", (None, (elsewhere, 443)))


def test_a_refused_name_is_told_as_the_reason() -> None:
    pins = Pins(lookup=lambda *_, **__: answers("1.1.1.1", "10.0.0.1"))
    with pytest.raises(socket.gaierror):
        pins.getaddrinfo("chat.example", 443)
    assert pins.problem.is_permanent


ESCAPES = """
import os, socket, subprocess, sys
from farm.alerts.channels.pins import Pins
Pins().pin_process()
def there(): socket.create_connection(("127.0.0.1", {port}), 2)
def raw(): socket.socket().connect(("127.0.0.1", {port}))
def quick(): socket.socket().connect_ex(("127.0.0.1", {port}))
def local(): socket.socket(socket.AF_UNIX).connect("/nowhere.sock")
def datagram(): socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {port}))
def program(): subprocess.run(["true"])
def shell(): os.system("true")
def listen(): socket.socket().bind(("127.0.0.1", 0))
for escape in (there, raw, quick, local, datagram, program, shell, listen):
    try:
        escape()
    except OSError as problem:
        print(escape.__name__, type(problem).__name__)
    else:
        print(escape.__name__, "escaped")
"""


def test_a_service_that_wants_more_than_one_connection_gets_nowhere() -> None:
    """Whatever a plugin tries in the process that sends: in a real one, because its guard stays for good."""
    with socket.create_server(("127.0.0.1", 0)) as inner:
        code = ESCAPES.format(port=inner.getsockname()[1])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        inner.settimeout(0.2)
        with pytest.raises(TimeoutError):
            inner.accept()
    said = dict(line.split() for line in done.stdout.splitlines())
    assert said.pop("there") == "gaierror"
    assert said == dict.fromkeys(("raw", "quick", "local", "datagram", "program", "shell", "listen"), "PermissionError")


@pytest.mark.parametrize(
    "address", ["64:ff9b:1:7f00:0:100:808:808", "64:ff9b:1::808:808", "192.88.99.1", "5f00::1", "3fff::1"]
)
def test_what_python_calls_global_but_leads_inside_is_refused(address: str) -> None:
    from farm.alerts.channels.addresses import is_allowed

    assert not is_allowed(ipaddress.ip_address(address))
