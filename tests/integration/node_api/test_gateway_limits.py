"""Strangers and greedy nodes at a real gateway process: what they send stays off the disk and out of the nodes' way."""

import contextlib
import gzip
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx2
import pytest
from django.db import transaction

from farm.accounts.models import AuditEvent, Team, User
from farm.config.embedded.plan import find_free_port
from farm.contract import signatures
from farm.contract.node import ATTEMPT_TOKEN_HEADER, make_secret_message
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.gateway.admission import STRANGER
from farm.registry import storage
from farm.runs.models import Trace
from tests.conftest import PROJECT, farm_environment
from tests.integration.node_api.test_gateway import SECRET, Gateway, known_node, queued_block
from tests.integration.runs.making import make_node, make_run, make_version
from tests.processes import Process, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
HELLO = "hello"
MIB = 1 << 20


class Watched(Gateway):
    """A gateway whose temporary files lie in a folder of their own."""

    folder: Path

    def spooled(self) -> list[str]:
        """Files that it keeps anything in, unlinked ones too."""
        pid = self.process.child.pid
        links: list[str] = []
        for name in os.listdir(f"/proc/{pid}/fd"):
            # one that was closed meanwhile holds nothing
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        return [link for link in links if str(self.folder) in link] + [str(path) for path in self.folder.iterdir()]

    def peak_bytes(self) -> int:
        """The most memory that it has ever had."""
        status = Path(f"/proc/{self.process.child.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def post(self, address: str, *, node: Node | None = None, token: str = "", **more: object) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {SECRET + node.name if node else 'ofn_nobody'}"}
        if token:
            headers[ATTEMPT_TOKEN_HEADER] = token
        return httpx2.post(self.url + address, headers=headers, timeout=60, **more)


@contextmanager
def started(folder: Path) -> Iterator[Watched]:
    port, log = find_free_port(), folder / "gateway.log"
    (folder / "temporary").mkdir()
    command = [sys.executable, "-m", "farm.config.server", "gateway", "--port", str(port), "--log-level", "info"]
    environment = farm_environment() | {"TMPDIR": str(folder / "temporary")}
    with Process(command, env=environment, log=log, cwd=PROJECT) as process:
        wait_for(lambda: "running on" in process.log(), what="the gateway", seconds=30)
        made = Watched(process, port)
        made.folder = folder / "temporary"
        yield made


@pytest.fixture(scope="module")
def gateway(django_db_setup: None, broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One process for all tests of this file that do not use up a stranger's patience."""
    with started(tmp_path_factory.mktemp("gateway")) as made:
        yield made


@pytest.fixture
def fresh(django_db_setup: None, broker: str, tmp_path: Path) -> Iterator[Watched]:
    """A process of this test alone: strangers are held up for as long as it lives."""
    with started(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def _empty(empty_broker: str) -> None:
    """No message of another test is left."""


class Wire:
    """A connection by hand, for what no client library sends."""

    def __init__(self, gateway: Gateway) -> None:
        address = urlsplit(gateway.url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def begin(self, method: str, address: str, *headers: str) -> None:
        lines = [f"{method} /api/node/v1/{address} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]
        self._socket.sendall("\r\n".join(lines).encode())

    def send_until_refused(self, bytes_wanted: int) -> int:
        """How much of a body went out before the gateway closed the connection."""
        sent = 0
        with suppress(OSError):
            while sent < bytes_wanted:
                sent += self._socket.send(b"\0" * 65_536)
        return sent

    def status(self) -> int:
        with self._socket.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def test_a_stranger_s_300_mib_are_refused_before_a_byte_lies_on_the_disk(gateway: Watched) -> None:
    seen: list[str] = []
    for method, address in (("PUT", "blocks/1/traces/0/0?attempt=1"), ("POST", "blocks/1/reports"), ("POST", HELLO)):
        with Wire(gateway) as wire:
            wire.begin(method, address, f"Content-Length: {300 * MIB}")
            sent = wire.send_until_refused(300 * MIB)
            seen += gateway.spooled()
        assert sent < 32 * MIB, f"{method} {address} took {sent:,} bytes"
    with Wire(gateway) as wire:
        wire.begin("PUT", "blocks/1/traces/0/0?attempt=1", f"Content-Length: {300 * MIB}", "Expect: 100-continue")
        assert wire.status() == 401
    assert seen + gateway.spooled() == []


def test_a_stranger_s_body_without_a_length_is_cut_off(gateway: Watched) -> None:
    endless = (b" " * 65_536 for _ in range(32))
    answer = gateway.post("enrol", content=endless)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert gateway.spooled() == []


def test_a_node_without_the_lease_s_token_is_refused_before_its_file_is_read(gateway: Watched, team: Team) -> None:
    node = known_node(team)
    assert gateway.poll(node).status_code == 204
    secret = f"Authorization: Bearer {SECRET}{node.name}"
    with Wire(gateway) as wire:
        wire.begin("PUT", "blocks/1/parts/0?attempt=1", secret, f"Content-Length: {20 * MIB}", "Expect: 100-continue")
        assert wire.status() == 409
    assert gateway.spooled() == []


def test_only_the_nodes_own_addresses_are_at_the_gateway(gateway: Watched) -> None:
    root = gateway.url.removesuffix("/api/node/v1/")
    for path in (
        "/",
        "/admin/",
        "/metrics",
        "/sign-in/",
        "/api/v1/models",
        "/api/v1/docs",
        "/api/node/v1/openapi.json",
    ):
        for method in ("GET", "POST"):
            answer = httpx2.request(method, root + path, content=b"x" * 100, timeout=60)
            assert answer.status_code == 404, f"{method} {path}: {answer.status_code}"
    body = httpx2.get(root + "/admin/").json()
    assert (body["code"], body["detail"][-1]) == ("not_found", ".")
    assert "set-cookie" not in httpx2.get(root + "/sign-in/").headers


def test_the_web_process_lets_no_node_in() -> None:
    words = """
import farm.config.wsgi as web
said = []
environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/api/node/v1/enrol", "wsgi.input": None}
body = b"".join(web.application(environ, lambda *answer: said.extend(answer)))
print(said[0], body.decode(), dict(said[1])["X-Gateway"])
"""
    done = subprocess.run(
        [sys.executable, "-c", words], env=farm_environment(), cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith('404 Not Found {"detail":"Nodes are served by the gateway, http')
    assert done.stdout.split()[-1].startswith("http")


def test_a_stranger_who_tries_secrets_waits_and_a_known_node_does_not(fresh: Watched, team: Team) -> None:
    node = known_node(team)
    assert fresh.poll(node).status_code == 204
    half = int(STRANGER.max_tokens) // 2 + 15
    with httpx2.Client(base_url=fresh.url, headers={"Authorization": "Bearer ofn_nobody"}, timeout=60) as stranger:
        answers = [stranger.post(HELLO, json={}) for _ in range(half)]
        answers += [stranger.post("enrol", content=b"{}") for _ in range(half)]
    assert {answer.status_code for answer in answers} == {401, 422, 429}
    held_up = [answer for answer in answers if answer.status_code == 429]
    assert held_up
    assert int(held_up[-1].headers["retry-after"]) >= 1
    assert held_up[-1].json()["code"] == "too_many"
    assert fresh.poll(node).status_code == 204
    assert fresh.post("blocks/1/heartbeat", node=node, json={"attempt": 1}, token="x").status_code == 409


def test_machines_that_wait_for_approval_keep_no_working_node_of_their_address_out(fresh: Watched, team: Team) -> None:
    rack: list[tuple[str, str]] = []
    for number in range(20):
        private = signatures.make_private_key()
        changes = {"health": NodeHealth.PENDING, "public_key": signatures.derive_public_key(private)}
        rack.append((str(make_node(team, name=f"rack-{number}", **changes).pk), private))
    answers = [ask_for_secret(fresh, *machine) for _ in range(6) for machine in rack]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(403, "pending")}
    assert len(answers) > STRANGER.max_tokens
    # one that the gateway has not heard yet
    assert fresh.poll(known_node(team)).status_code == 204


def ask_for_secret(gateway: Gateway, node_id: str, private: str) -> httpx2.Response:
    moment = int(time.time())
    signature = signatures.sign(private, make_secret_message(node_id, moment))
    body = {"node_id": node_id, "signed_at": moment, "signature": signature}
    return httpx2.post(f"{gateway.url}secret", json=body, timeout=60)


def test_a_stranger_s_heartbeat_waits_for_nobody_and_nobody_for_it(gateway: Watched, team: Team) -> None:
    """The one thread that answers nodes is held up; whoever shows no secret never gets as far as its queue."""
    node = known_node(team)
    assert gateway.poll(node).status_code == 204
    said: list[int] = []
    with transaction.atomic():
        Node.objects.filter(pk=node.pk).update(log_tail="held")
        body = {"contract_version": node.contract_version, "facts": node.facts_json}
        waiting = threading.Thread(target=lambda: said.append(gateway.post(HELLO, node=node, json=body).status_code))
        waiting.start()
        time.sleep(0.7)
        assert said == []
        strangers = [gateway.post("blocks/1/heartbeat", json={"attempt": 1}).status_code for _ in range(5)]
        # it waits still: no stranger waited for it
        assert said == []
    waiting.join(60)
    assert (strangers, said) == ([401] * 5, [200])


def test_a_node_s_oldest_polls_end_when_it_opens_more(gateway: Watched, team: Team, member: User) -> None:
    node = known_node(team)
    ended: list[int] = []
    threads = [
        threading.Thread(target=lambda: ended.append(gateway.poll(node, wait="25").status_code)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(ended) == 4, what="the end of the four oldest polls", seconds=5)
    time.sleep(0.5)
    assert ended == [204] * 4
    # the two that are left still wait, and are told
    version = make_version(team)
    for _ in range(2):
        make_run(version, member)
    for thread in threads:
        thread.join(60)
    assert ended == [204] * 4 + [200] * 2


def test_what_the_gateway_itself_refuses_a_node_is_in_the_audit_log(gateway: Watched, team: Team) -> None:
    node = known_node(team)
    assert gateway.post("blocks/1/reports", node=node, content=b" " * 1_100_000).status_code == 413
    told = AuditEvent.objects.get(verb="node refused")
    assert (told.subject, told.facts["code"], told.facts["address"]) == (node.name, "too_large", "reports")


def test_a_compressed_message_is_not_unpacked(gateway: Watched, team: Team) -> None:
    node = known_node(team)
    bomb = gzip.compress(b'{"attempt": 1}' + b" " * 50_000_000)
    url, headers = f"{gateway.url}blocks/1/reports", {"Authorization": f"Bearer {SECRET}{node.name}"}
    answer = httpx2.post(url, content=bomb, headers={**headers, "Content-Encoding": "gzip"}, timeout=60)
    assert answer.status_code == 422


def test_a_trace_of_a_leased_block_comes_in_and_its_files_go_out(fresh: Watched, team: Team, member: User) -> None:
    node = known_node(team)
    block = queued_block(team, member)
    claimed = fresh.post(f"blocks/{block.pk}/claim", node=node, json={"attempt": 1})
    token = claimed.json()["token"]
    noise = [{"name": "x", "ts": random.Random(number).random()} for number in range(60_000)]
    packed = gzip.compress(json.dumps(noise).encode())
    headers = {"Authorization": f"Bearer {SECRET}{node.name}", ATTEMPT_TOKEN_HEADER: token}
    url = f"{fresh.url}blocks/{block.pk}/traces/0/0?attempt=1"
    in_pieces = (packed[at : at + 50_000] for at in range(0, len(packed), 50_000))
    answer = httpx2.put(url, content=in_pieces, headers=headers, timeout=60)
    assert (answer.status_code, answer.json()) == (200, {"sha256": sha256(packed).hexdigest()})
    assert Trace.objects.get().bytes == len(packed)
    model = block.run.version.artifact.files.get().blob.sha256
    place = storage.blob_path(team_id=team.pk, sha256=model)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"onnx" * 100_000)
    assert httpx2.get(f"{fresh.url}files/{model}", headers=headers, timeout=60).content == b"onnx" * 100_000
    absent = httpx2.get(f"{fresh.url}files/{'0' * 64}", headers=headers, timeout=60)
    assert (absent.status_code, absent.json()["code"]) == (404, "not_found")
    with_body = httpx2.request("GET", f"{fresh.url}files/{'0' * 64}", content=b"x", headers=headers, timeout=60)
    assert with_body.status_code == 413


def test_a_large_file_goes_out_piece_by_piece_and_never_lies_in_the_gateway_s_memory(
    fresh: Watched, team: Team, member: User
) -> None:
    node, block = known_node(team), queued_block(team, member)
    token = fresh.post(f"blocks/{block.pk}/claim", node=node, json={"attempt": 1}).json()["token"]
    model = block.run.version.artifact.files.get().blob.sha256
    place = storage.blob_path(team_id=team.pk, sha256=model)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        file.truncate(300 * MIB)
    headers = {"Authorization": f"Bearer {SECRET}{node.name}", ATTEMPT_TOKEN_HEADER: token}
    before = fresh.peak_bytes()
    with httpx2.stream("GET", f"{fresh.url}files/{model}", headers=headers, timeout=60) as answer:
        received = sum(len(piece) for piece in answer.iter_bytes(MIB))
    assert (answer.status_code, answer.headers["content-length"]) == (200, str(300 * MIB))
    assert received == 300 * MIB
    assert fresh.peak_bytes() - before < 50 * MIB
