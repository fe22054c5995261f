"""Clients that fall silent in the middle of a request, hundreds at once: nobody else waits for them."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import psutil
import pytest

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import Scope
from tests.conftest import PROJECT, farm_environment
from tests.processes import Process, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
SILENT = 400
# of another person's page meanwhile
MAX_PAGE_S = 2.0
HEADERS = b"GET /sign-in/ HTTP/1.1\r\nHost: farm\r\nX-Half: "
FORM = (
    b"POST /sign-in/x/ HTTP/1.1\r\nHost: farm\r\nCookie: onnxfarm_csrf=made-up\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nc"
)
JSON = (
    b"POST /api/v1/runs HTTP/1.1\r\nHost: farm\r\nAuthorization: Bearer ofk_x\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
)
UPLOAD = (
    b"PUT /api/v1/uploads?file=a.onnx HTTP/1.1\r\nHost: farm\r\nAuthorization: Bearer ofk_x\r\n"
    b"Content-Length: 8000000\r\n\r\n\x08"
)
# certificates are made for the test
TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE
KINDS = {"headers": HEADERS, "forms": FORM, "json": JSON, "uploads": UPLOAD}


class Web(NamedTuple):
    """A web process that answers."""

    port: int
    pid: int


@contextlib.contextmanager
def serving(folder: Path, *more: str) -> Iterator[Web]:
    """The web process as `onnxfarm serve` and `deploy/process web` start it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "farm.config.server", "web", "--port", str(port), "--log-level", "info", *more]
    with Process(command, env=farm_environment(), log=folder / "web.log", cwd=PROJECT) as process:
        said = ("startup complete", "running on")
        wait_for(lambda: all(words in process.log() for words in said), what="the web process", seconds=60)
        # the first page loads what pages need
        page_s(f"{'https' if '--cert' in more else 'http'}://127.0.0.1:{port}")
        yield Web(port, process.child.pid)


@contextlib.contextmanager
def silent_clients(
    port: int, beginning: bytes, count: int = SILENT, *, tls: ssl.SSLContext | None = None
) -> Iterator[list[socket.socket]]:
    """So many connections, each with the beginning of a request and no more."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    with contextlib.ExitStack() as opened:
        clients = []
        for _ in range(count):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            if tls is not None:
                client = opened.enter_context(tls.wrap_socket(client, server_hostname="localhost"))
            client.sendall(beginning)
            clients.append(client)
        yield clients
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def answer_to(client: socket.socket) -> bytes:
    """What the server says until it ends the connection."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65_536):
            said += piece
    return said


def page_s(address: str) -> float:
    """How long another person waits for a page."""
    began = time.monotonic()
    assert httpx2.get(f"{address}/sign-in/", timeout=60, verify=TRUSTING).status_code == 200
    return time.monotonic() - began


@pytest.fixture(scope="module")
def port(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(tmp_path_factory.mktemp("web")) as web:
        yield web.port


@pytest.mark.parametrize("kind", KINDS)
def test_hundreds_of_silent_clients_keep_nobody_waiting(port: int, kind: str) -> None:
    with silent_clients(port, KINDS[kind]):
        for _ in range(3):
            assert page_s(f"http://127.0.0.1:{port}") < MAX_PAGE_S


def test_silent_clients_are_sent_away_in_time(port: int) -> None:
    began = time.monotonic()
    with (
        silent_clients(port, HEADERS, count=1) as (head,),
        silent_clients(port, FORM, count=1) as (form,),
        silent_clients(port, JSON, count=1) as (data,),
    ):
        assert answer_to(head) == b""
        assert answer_to(form).startswith(b"HTTP/1.1 408")
        assert answer_to(data).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 30


def test_a_stranger_s_long_body_is_refused_before_it_is_read(port: int) -> None:
    with silent_clients(port, UPLOAD, count=1) as (client,):
        assert answer_to(client).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("scopes", [[Scope.WRITE], [Scope.READ]], ids=["a viewer's", "one that may read alone"])
def test_an_upload_of_who_may_not_upload_is_refused_before_it_is_read(
    port: int, scopes: list[Scope], viewer: User, member: User
) -> None:
    person = viewer if Scope.WRITE in scopes else member
    _, secret = issue_token(person, scopes)
    with silent_clients(port, UPLOAD.replace(b"ofk_x", secret.encode()), count=1) as (client,):
        assert answer_to(client).startswith(b"HTTP/1.1 403")


def test_a_form_in_another_charset_is_refused(port: int) -> None:
    for charset in ("utf-16", "zlib", "idna"):
        kind = {"Content-Type": f"application/x-www-form-urlencoded; charset={charset}"}
        assert httpx2.post(f"http://127.0.0.1:{port}/sign-in/x/", content=b"a=1", headers=kind).status_code == 400


def test_endless_headers_are_refused(port: int) -> None:
    endless = b"GET /sign-in/ HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(60))
    with silent_clients(port, endless, count=1) as (client,):
        assert answer_to(client).startswith(b"HTTP/1.1 431")


def test_half_a_request_over_tls_keeps_nobody_waiting(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*openssl, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    with (
        serving(tmp_path, "--cert", str(cert), "--key", str(key)) as (port, _),
        # half a handshake, and half a request behind a whole one
        silent_clients(port, b"\x16\x03\x01\x02\x00\x01") as halves,
        silent_clients(port, HEADERS, count=50, tls=TRUSTING),
    ):
        began = time.monotonic()
        assert page_s(f"https://127.0.0.1:{port}") < MAX_PAGE_S
        assert answer_to(halves[-1]) == b""
        assert time.monotonic() - began < 30


def chunked(path: bytes, behind: bytes) -> bytes:
    """A request whose body comes in chunks, and what stands behind the first of them."""
    head = b"POST " + path + b" HTTP/1.1\r\nHost: farm\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"2\r\n{}\r\n" + behind


@pytest.mark.parametrize("behind", [b"0\r\nX: ", b"1;"], ids=["a trailer", "an extension of a chunk"])
def test_what_stands_beside_a_body_without_end_is_cut(port: int, behind: bytes) -> None:
    sent_bytes, piece = 0, b"y" * 65_536
    with (
        silent_clients(port, chunked(b"/api/v1/runs", behind), count=1) as (client,),
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        while sent_bytes < 200_000_000:
            client.sendall(piece)
            sent_bytes += len(piece)
    # what the kernel holds between the two
    assert sent_bytes < 16_000_000


def test_a_body_in_thousands_of_pieces_of_a_byte_is_cut(port: int) -> None:
    sent_bytes, pieces = 0, b"1\r\n{\r\n" * 4000
    with (
        silent_clients(port, chunked(b"/api/v1/runs", b""), count=1) as (client,),
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        while sent_bytes < 20_000_000:
            client.sendall(pieces)
            sent_bytes += len(pieces)
    assert sent_bytes < 16_000_000


def test_requests_before_the_answer_to_the_first_are_cut(port: int) -> None:
    burst = b"GET /sign-in/ HTTP/1.1\r\nHost: farm\r\n\r\n" * 2000
    with silent_clients(port, burst, count=20) as clients:
        assert page_s(f"http://127.0.0.1:{port}") < MAX_PAGE_S
        assert {answer_to(client) for client in clients} == {b""}


def test_the_body_of_a_request_for_another_protocol_is_no_request(port: int) -> None:
    # behind a proxy that keeps its connections, its answer would be another person's
    hidden = b"GET /nothing-here HTTP/1.1\r\nHost: farm\r\n\r\n"
    head = b"POST /sign-in/x/ HTTP/1.1\r\nHost: farm\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n"
    with silent_clients(port, head % len(hidden), count=1) as (client,):
        time.sleep(0.2)
        with contextlib.suppress(ConnectionError):
            client.sendall(hidden)
        said = answer_to(client)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1 ") == 1


def test_one_request_after_the_other_keeps_its_connection(port: int) -> None:
    with httpx2.Client() as client:
        answers = [client.get(f"http://127.0.0.1:{port}/sign-in/", timeout=60) for _ in range(3)]
        stream = answers[-1].extensions["network_stream"]
        assert stream.get_extra_info("client_addr") == answers[0].extensions["network_stream"].get_extra_info(
            "client_addr"
        )


def workers_of(server: int) -> set[int]:
    """The processes that answer behind a server of several, by their numbers."""
    found = set()
    for child in psutil.Process(server).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # ended meanwhile, or a zombie
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as web:
        wait_for(lambda: len(workers_of(web.pid)) == 2, what="two workers", seconds=60)
        before = workers_of(web.pid)
        os.kill(min(before), signal.SIGKILL)
        wait_for(lambda: len(workers_of(web.pid) - before) == 1, what="another worker", seconds=60)
        assert httpx2.get(f"http://127.0.0.1:{web.port}/sign-in/", timeout=60).status_code == 200


def shakes_hands(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        TRUSTING.wrap_socket(plain, server_hostname="localhost").close()
        return True
    return False


@contextlib.contextmanager
def behind_caddy(web: Web, folder: Path) -> Iterator[int]:
    """The port of the proxy of compose in front of a web process, with a certificate of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    told = os.environ | {"ONNXFARM_HOST": f"localhost:{port}", "HOME": str(folder)}
    adapt = ["caddy", "adapt", "--config", str(PROJECT / "deploy" / "Caddyfile")]
    adapted = subprocess.run(adapt, env=told, capture_output=True, check=True, text=True).stdout
    config = json.loads(adapted.replace('"web","port":"8000"', f'"127.0.0.1","port":"{web.port}"'))
    # no other port of this machine is taken, and nothing is put among its certificates
    config["admin"] = {"disabled": True}
    config["apps"]["http"]["servers"]["srv0"]["automatic_https"] = {"disable_redirects": True}
    config["apps"]["pki"] = {"certificate_authorities": {"local": {"install_trust": False}}}
    (folder / "caddy.json").write_text(json.dumps(config))
    run = ["caddy", "run", "--config", str(folder / "caddy.json")]
    with Process(run, env=told, log=folder / "caddy.log", cwd=folder):
        # its log tells of the certificate a moment before it is used
        wait_for(lambda: shakes_hands(port), what="Caddy's certificate", seconds=60)
        yield port


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no caddy on this machine (Debian's package is called so)")
@pytest.mark.timeout(240)
def test_silent_clients_of_the_proxy_of_compose_keep_nobody_waiting(tmp_path: Path) -> None:
    with serving(tmp_path) as web, behind_caddy(web, tmp_path) as port:
        address = f"https://localhost:{port}"
        for beginning in KINDS.values():
            asked = beginning.replace(b"Host: farm", b"Host: localhost:%d" % port)
            with silent_clients(port, asked, tls=TRUSTING):
                for _ in range(3):
                    assert page_s(address) < MAX_PAGE_S


@pytest.mark.skipif(shutil.which("caddy") is None, reason="no caddy on this machine (Debian's package is called so)")
@pytest.mark.timeout(120)
def test_the_deadlines_of_bodies_hold_behind_the_proxy_of_compose(tmp_path: Path) -> None:
    with serving(tmp_path) as web, behind_caddy(web, tmp_path) as port:
        form = FORM.replace(b"Host: farm", b"Host: localhost:%d" % port)
        with silent_clients(port, HEADERS, tls=TRUSTING, count=1) as (head,), silent_clients(port, form, tls=TRUSTING):
            began = time.monotonic()
            assert answer_to(head) == b""
            assert time.monotonic() - began < 15

            def held() -> int:
                return sum(line.status == "ESTABLISHED" for line in psutil.Process(web.pid).net_connections())

            wait_for(lambda: held() < SILENT / 10, what="the end of the silent forms at the web process", seconds=60)
