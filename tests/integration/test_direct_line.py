"""A node's own user of a real broker: it hears its queues, and can do nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from django.core.management import CommandError, call_command

from farm.base.refusals import Invalid
from farm.config.embedded import broker as embedded
from farm.contract.version import MEASURE_TASK
from farm.gateway.dispatch import parse_message
from farm.runs import broker, direct_lines
from tests.processes import Process, wait_for
from worker.agent.connection import gateway
from worker.agent.connection.lan import BrokerConnection

QUEUES = ("node.7", "tag.cpu")


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A broker of one's own: users made by one test are no other test's."""
    folder = tmp_path_factory.mktemp("broker")
    path = folder / "broker.sock"
    words = [*embedded.make_command(folder), "--unixsocket", str(path)]
    with Process(words, env=dict(os.environ), log=folder / "log", cwd=folder):
        wait_for(path.exists, what="the broker's socket", seconds=10)
        yield path


@pytest.fixture(autouse=True)
def farms_broker(socket: Path, settings: "pytest.FixtureRequest") -> None:
    settings.CELERY_BROKER_URL = f"redis+socket://{socket}"  # type: ignore[attr-defined]


@pytest.fixture
def address() -> str:
    return direct_lines.open_line("7", QUEUES)


def ring(socket: Path, queue: str) -> None:
    with Celery(broker=f"redis+socket://{socket}", set_as_current=False) as app:
        app.conf.broker_transport_options = {"priority_steps": [0]}
        app.send_task(MEASURE_TASK, kwargs={"block": "12", "attempt": 3}, queue=queue, ignore_result=True)


def test_a_node_hears_what_the_farm_rings_on_each_of_its_queues(socket: Path, address: str) -> None:
    line = BrokerConnection(address)
    line.set_queues(QUEUES)
    for queue in QUEUES:
        ring(socket, queue)
        offer = line.receive_message(wait_s=25)
        assert offer.queue == queue
        assert offer.message["headers"]["task"] == MEASURE_TASK
    assert line.receive_message(wait_s=1) is None
    line.close()


def test_the_message_is_the_same_hint_that_the_gateway_reads(socket: Path, address: str) -> None:
    ring(socket, "node.7")
    with redis.Redis.from_url(address, protocol=2) as client:
        found = client.brpop(["node.7"], timeout=60)
    assert parse_message(found[1])[0] == ("12", 3)


@pytest.mark.parametrize(
    "words",
    [
        ("GET", "secret"),
        ("LPUSH", "node.7", "forged"),
        ("BRPOP", "node.8", "1"),
        ("BRPOP", "prepare", "1"),
        ("KEYS", "*"),
        ("PUBLISH", broker.QUEUE_CHANNEL, "x"),
        ("SUBSCRIBE", broker.QUEUE_CHANNEL),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
        ("CLIENT", "LIST"),
        ("EVAL", "return 1", "0"),
    ],
    ids=" ".join,
)
def test_a_nodes_user_may_do_nothing_else(address: str, words: tuple[str, ...]) -> None:
    with redis.Redis.from_url(address, protocol=2) as client:
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*words)
        assert client.ping()


def test_whoever_is_taken_out_loses_the_open_connection_too(address: str) -> None:
    line = BrokerConnection(address)
    line.set_queues(QUEUES)
    assert line.receive_message(wait_s=1) is None
    assert direct_lines.close_line("7")
    with pytest.raises(gateway.GatewayError):
        line.receive_message(wait_s=1)
    with pytest.raises(gateway.GatewayError, match="direct_line NODE"):
        line.receive_message(wait_s=1)
    line.close()
    assert not direct_lines.close_line("7")


def test_a_new_secret_ends_the_old_one(address: str) -> None:
    direct_lines.open_line("7", QUEUES)
    line = BrokerConnection(address)
    line.set_queues(QUEUES)
    with pytest.raises(gateway.GatewayError, match="refuses this node's user"):
        line.receive_message(wait_s=1)
    line.close()


def test_a_broker_that_is_away_is_a_reason_to_ask_again(tmp_path: Path) -> None:
    line = BrokerConnection(f"unix://someone:secret@{tmp_path}/nothing.sock")
    line.set_queues(QUEUES)
    with pytest.raises(gateway.UnavailableError, match="the broker is not reachable"):
        line.receive_message(wait_s=1)
    line.close()


def test_a_node_without_queues_waits_without_asking(address: str) -> None:
    line = BrokerConnection(address)
    line.set_queues(())
    assert line.receive_message(wait_s=1) is None


@pytest.mark.parametrize("url", ["", "farm.lan", "https://farm.lan", "redis://farm.lan:6379/0"])
def test_an_address_without_a_user_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(ValueError, match=r"manage\.py direct_line NODE"):
        BrokerConnection(url)


def test_the_address_is_the_one_that_the_node_reaches(address: str) -> None:
    there = direct_lines.open_line("9", ["node.9"], host="farm.lan:6379")
    assert there.startswith("redis://onnxfarm-node-9:")
    assert there.endswith("@farm.lan:6379/0")
    direct_lines.close_line("9")


def test_a_broker_without_users_is_named(settings: "pytest.FixtureRequest") -> None:
    settings.CELERY_BROKER_URL = "memory://"  # type: ignore[attr-defined]
    with pytest.raises(Invalid, match="has no users"):
        direct_lines.open_line("7", QUEUES)


@pytest.mark.django_db
def test_a_node_that_is_not_there_is_named_by_the_command() -> None:
    with pytest.raises(CommandError, match="There is no node “nobody”"):
        call_command("direct_line", "nobody")
    with pytest.raises(CommandError, match="No node “nobody” has a direct line"):
        call_command("direct_line", "nobody", "--off")
