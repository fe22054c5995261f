"""The long poll: a real gateway process and a real broker, and messages that reach those who may use them."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from celery import current_app

from farm.accounts.models import Team, User
from farm.base.secrecy import hash_secret
from farm.config.embedded.plan import find_free_port
from farm.contract.reports import EndReport
from farm.contract.version import name_tag_queue
from farm.fleet import services as fleet
from farm.fleet.models import Node, NodeSecret
from farm.fleet.selectors import make_node_offer
from farm.fleet.states import NodeHealth
from farm.gateway.dispatch import BlockMessage, parse_message
from farm.runs import broker as farm_broker
from farm.runs import services
from farm.runs.models import Block, Run
from farm.runs.states import BlockState, RunReason
from onnxfarm.testing import FakeNode
from tests.conftest import PROJECT, farm_environment
from tests.integration.node_api.calls import NodeClient
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version
from tests.processes import Process, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "ofn_secret-of-"


class Gateway:
    """A gateway process on a free port."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}/api/node/v1/"

    def poll(self, node: Node | None, *, wait: str = "0", secret: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {secret or (SECRET + node.name if node else '')}"}
        return httpx2.get(self.url + "messages", params={"wait": wait}, headers=headers, timeout=90)

    def hint(self, node: Node, *, wait: str = "0") -> BlockMessage | None:
        """What the node is told, if anything."""
        answer = self.poll(node, wait=wait)
        if answer.status_code == 204:
            return None
        assert answer.status_code == 200, answer.text
        return parse_message(json.dumps(answer.json()["message"]).encode())[0]


@pytest.fixture(scope="module")
def gateway(django_db_setup: None, broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One process for all tests of this file; the last one ends it."""
    port, log = find_free_port(), tmp_path_factory.mktemp("gateway") / "gateway.log"
    command = [sys.executable, "-m", "farm.config.server", "gateway", "--port", str(port), "--log-level", "info"]
    with Process(command, env=farm_environment(), log=log, cwd=PROJECT) as process:
        wait_for(lambda: "running on" in process.log(), what="the gateway", seconds=30)
        yield Gateway(process, port)


@pytest.fixture(autouse=True)
def _empty(empty_broker: str) -> None:
    """No message of another test is left."""


def known_node(team: Team, name: str = "bench-1", **changes: Any) -> Node:
    """A node with a secret that the tests know."""
    from datetime import timedelta

    from django.utils import timezone

    node = make_node(team, name=name, **changes)
    NodeSecret.objects.create(
        node=node, hint="ofn_", digest=hash_secret(SECRET + name), expires_at=timezone.now() + timedelta(days=1)
    )
    return node


def queued_block(team: Team, by: User) -> Block:
    return first_block(make_run(make_version(team), by))


def test_a_node_that_waits_is_told_of_a_block_at_once(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    told: list[BlockMessage | None] = []
    waiting = threading.Thread(target=lambda: told.append(gateway.hint(node, wait="25")))
    waiting.start()
    time.sleep(0.5)
    began = time.monotonic()
    block = queued_block(team, member)
    waiting.join(60)
    assert told == [BlockMessage(str(block.pk), 1)]
    # its poll would have lasted 25 s
    assert time.monotonic() - began < 20


def test_a_node_that_proves_a_tag_while_it_waits_is_told_at_once(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team, tags={})
    make_node(team, name="bench-2")  # there to be planned for, and asking for nothing
    told: list[BlockMessage | None] = []
    waiting = threading.Thread(target=lambda: told.append(gateway.hint(node, wait="25")))
    waiting.start()
    time.sleep(0.5)
    block = queued_block(team, member)
    time.sleep(0.5)
    assert told == []
    machine = NodeClient(node.name)
    machine.secret = SECRET + node.name
    began = time.monotonic()
    assert machine.hello().status_code == 200
    waiting.join(60)
    assert told == [BlockMessage(str(block.pk), 1)]
    # its poll would have lasted 25 s
    assert time.monotonic() - began < 20


def test_a_message_waits_for_a_node(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    block = queued_block(team, member)
    assert gateway.hint(node) == BlockMessage(str(block.pk), 1)
    assert gateway.hint(node) is None


def test_the_message_is_what_kombu_wrote(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    queued_block(team, member)
    offer = gateway.poll(node).json()
    assert offer["queue"] == name_tag_queue("cpu")
    assert offer["message"]["headers"]["task"] == "onnxfarm.measure_block"
    assert offer["message"]["properties"]["body_encoding"] == "base64"


def test_a_message_about_a_block_that_is_gone_is_dropped(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    block = queued_block(team, member)
    services.cancel_run(run=block.run, by=member)
    assert gateway.hint(node) is None
    assert farm_broker.count_messages([name_tag_queue("cpu")]) == {name_tag_queue("cpu"): 0}


def test_a_message_about_an_older_attempt_is_dropped(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    block = queued_block(team, member)
    Block.objects.filter(pk=block.pk).update(attempt=2)
    assert gateway.hint(node) is None


def test_a_message_stays_for_the_node_that_may_use_it(gateway: Gateway, team: Team, member: User) -> None:
    block = queued_block_for_its_node(team, member)
    stranger = known_node(Team.objects.create(name="elsewhere"), "theirs")
    assert gateway.hint(stranger) is None
    assert gateway.hint(Node.objects.get(name="bench-1")) == BlockMessage(str(block.pk), 1)


def queued_block_for_its_node(team: Team, member: User) -> Block:
    known_node(team)
    return queued_block(team, member)


def test_one_message_is_told_to_one_node(gateway: Gateway, team: Team, member: User) -> None:
    nodes = [known_node(team, f"bench-{number}") for number in range(3)]
    told: list[BlockMessage | None] = []
    threads = [threading.Thread(target=lambda node=node: told.append(gateway.hint(node, wait="25"))) for node in nodes]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    version = make_version(team)
    blocks = [first_block(make_run(version, member)) for _ in nodes]
    for thread in threads:
        thread.join(60)
    assert sorted(hint.block for hint in told if hint) == sorted(str(block.pk) for block in blocks)


def test_a_message_of_the_farm_s_own_search_names_the_run_that_a_person_asked_for(
    gateway: Gateway, team: Team, member: User
) -> None:
    known_node(team)
    search = queued_block(team, member)
    asked = first_block(make_run(search.run.version, member))
    Run.objects.filter(pk=search.run_id).update(reason=RunReason.WATCH)
    node = Node.objects.get()
    assert gateway.hint(node) == BlockMessage(str(asked.pk), 1)
    block = claim(node, asked)
    services.accept_report(
        node=node, block_id=block.order.block, attempt=1, token=block.token, report=EndReport(wall_s=1.0)
    )
    assert gateway.hint(node) == BlockMessage(str(search.pk), 1)
    assert gateway.hint(node) is None


def test_a_node_is_told_at_once_when_the_other_one_of_its_machine_has_measured(
    gateway: Gateway, team: Team, member: User, owner: User
) -> None:
    one, other = (known_node(team, name, owner=owner, host="0123456789abcdef") for name in ("bench-1", "bench-2"))
    version = make_version(team)
    first, second = (first_block(make_run(version, member)) for _ in range(2))
    lease, told = claim(one, first), []
    waiting = threading.Thread(target=lambda: told.append(gateway.hint(other, wait="25")))
    waiting.start()
    time.sleep(1.0)
    assert told == []
    began = time.monotonic()
    services.accept_report(
        node=one, block_id=lease.order.block, attempt=1, token=lease.token, report=EndReport(wall_s=1.0)
    )
    waiting.join(60)
    assert told == [BlockMessage(str(second.pk), 1)]
    # its poll would have lasted 25 s
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("host", "kept"),
    [("0123456789abcdef", "0123456789abcdef"), ("", ""), ("0123", ""), ("0123456789ABCDEF", ""), ("x" * 5000, "")],
)
def test_a_hello_says_which_machine_the_node_shares(team: Team, host: str, kept: str) -> None:
    node = known_node(team, host="fedcba9876543210")
    machine = NodeClient(node.name)
    machine.secret = SECRET + node.name
    assert machine.hello(host=host).status_code == 200
    node.refresh_from_db()
    assert node.host == kept


SEEN = {"opset": 31, "ir": 16, "ml": 6}


def test_a_hello_teaches_what_releases_newer_than_the_table_load(team: Team) -> None:
    node = known_node(team)
    machine = NodeClient(node.name)
    machine.secret = SECRET + node.name
    told = {"onnxruntime==1.31.1": SEEN, "onnxruntime==1.40.0": SEEN, "my-ort==7.0": SEEN}
    assert machine.hello(loads=told).status_code == 200
    # it was evicted since, and another one came
    assert machine.hello(loads={"onnxruntime-openvino==1.41.0": SEEN}).status_code == 200
    node.refresh_from_db()
    assert node.loads == {"onnxruntime==1.40.0": SEEN, "onnxruntime-openvino==1.41.0": SEEN}
    assert make_node_offer(node).loads["onnxruntime==1.40.0"].opset == 31


@pytest.mark.parametrize(
    "loads",
    [
        {"onnxruntime==1.40.0": {**SEEN, "opset": 0}},
        {"onnxruntime==1.40.0": {**SEEN, "ir": 10**9}},
        {"onnxruntime==1.40.0": {**SEEN, "more": 1}},
        {"onnxruntime==1.40.0": {"opset": 31}},
        {"onnxruntime==1.40.0": "31"},
        {"onnxruntime": SEEN},
        {"onnxruntime==newest": SEEN},
        {"../etc==1.40.0": SEEN},
        {f"onnxruntime==1.{minor}.0": SEEN for minor in range(40, 300)},
        [],
    ],
)
def test_a_hello_that_teaches_nonsense_is_refused(team: Team, loads: Any) -> None:
    node = known_node(team)
    machine = NodeClient(node.name)
    machine.secret = SECRET + node.name
    assert machine.hello(loads=loads).status_code == 422
    node.refresh_from_db()
    assert node.loads == {}


def test_a_node_teaches_of_so_many_releases_and_no_more(team: Team) -> None:
    node = known_node(team)
    machine = NodeClient(node.name)
    machine.secret = SECRET + node.name
    for first in (40, 290):
        machine.hello(loads={f"onnxruntime==1.{minor}.0": SEEN for minor in range(first, first + 250)})
    node.refresh_from_db()
    assert len(node.loads) == 256


def test_something_else_in_a_queue_is_dropped(gateway: Gateway, team: Team) -> None:
    node = known_node(team)
    current_app.send_task("os.system", args=["true"], queue=name_tag_queue("cpu"))
    with current_app.connection_for_write() as connection:
        connection.default_channel.client.lpush(name_tag_queue("cpu"), b"\xff not json", b"{}", b"[]", b'{"body": "x"}')
    assert gateway.hint(node) is None
    assert farm_broker.count_messages([name_tag_queue("cpu")]) == {name_tag_queue("cpu"): 0}


@pytest.mark.parametrize("health", [NodeHealth.DRAINING, NodeHealth.QUARANTINED])
def test_a_node_that_may_not_work_waits_for_nothing(gateway: Gateway, team: Team, member: User, health: NodeHealth):
    queued_block_for_its_node(team, member)
    Node.objects.update(health=health)
    assert gateway.hint(Node.objects.get()) is None


def test_a_revoked_node_is_turned_away(gateway: Gateway, team: Team, owner: User) -> None:
    node = known_node(team)
    assert gateway.poll(node).status_code == 204
    fleet.revoke(node=node, by=owner)
    answer = gateway.poll(node)
    assert (answer.status_code, answer.json()["code"]) == (401, "unknown_node")


@pytest.mark.parametrize("wait", ["", "x", "nan", "-5", "1e400"])
def test_a_wait_that_is_no_number_is_the_default_or_none(gateway: Gateway, team: Team, wait: str) -> None:
    node = known_node(team)
    queue_one(team)
    assert gateway.poll(node, wait=wait).status_code in (200, 204)


def queue_one(team: Team) -> None:
    """A block for whoever asks, so that no test waits for a default of 25 s."""
    from tests.conftest import make_user

    queued_block(team, make_user("somebody", team=team, role="member"))


def test_a_stranger_is_turned_away(gateway: Gateway) -> None:
    for secret in ("-", "ofn_nobody"):
        assert gateway.poll(None, secret=secret).status_code == 401
    # no header may hold it: httptools refuses the request, h11 hands it on, and neither lets anybody in
    assert gateway.poll(None, secret="\x7f").status_code in (400, 401)
    assert httpx2.get(gateway.url + "messages").status_code == 401
    assert httpx2.post(gateway.url + "messages").status_code == 405


def test_a_broker_that_forgets_everything_delays_a_block_and_no_more(gateway: Gateway, team: Team, member: User):
    node = known_node(team)
    block = queued_block(team, member)
    with current_app.connection_for_write() as connection:
        connection.default_channel.client.flushall()
    assert gateway.hint(node) is None
    Block.objects.update(rung_at=None)
    assert services.send_due_hints() == 1
    assert gateway.hint(node) == BlockMessage(str(block.pk), 1)


def test_ringing_again_does_not_pile_up_messages(team: Team, member: User) -> None:
    make_node(team)
    queued_block(team, member)
    for _ in range(5):
        Block.objects.update(rung_at=None)
        services.send_due_hints()
    assert farm_broker.count_messages([name_tag_queue("cpu")]) == {name_tag_queue("cpu"): 1}


def test_a_body_whose_length_nobody_told_is_cut_off_and_refused(gateway: Gateway, team: Team) -> None:
    node = known_node(team)
    headers = {"Authorization": f"Bearer {SECRET}{node.name}"}
    endless = (b" " * 65_536 for _ in range(64))
    answer = httpx2.post(f"{gateway.url}blocks/1/reports", content=endless, headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_who_hangs_up_in_the_middle_of_a_request_disturbs_nobody(gateway: Gateway, team: Team, member: User) -> None:
    node = known_node(team)
    block = queued_block(team, member)
    address = urlsplit(gateway.url)
    for _ in range(4):  # more than there are threads
        with socket.create_connection((address.hostname, address.port)) as half:
            half.sendall(b"POST /api/node/v1/blocks/1/claim HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
    headers = {"Authorization": f"Bearer {SECRET}{node.name}"}
    answer = httpx2.post(f"{gateway.url}blocks/{block.pk}/claim", json={"attempt": 1}, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text


def test_a_node_that_others_wrote_joins_and_measures_a_block_to_its_end(
    gateway: Gateway, team: Team, owner: User, member: User
) -> None:
    with FakeNode(gateway.url.partition("/api/")[0], name="theirs") as theirs:
        theirs.enrol(fleet.invite(team=team, by=owner)[1])
        fleet.approve(node=Node.objects.get(name="theirs"), by=owner)
        theirs.sign_in()
        assert theirs.hello().health == "active"
        block = queued_block(team, member)
        assert theirs.work(wait_s=20) == str(block.pk)
    block.refresh_from_db()
    assert block.state == BlockState.REPORTED
