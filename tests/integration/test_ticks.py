"""What keeps the farm going, in a real worker with beat over a real broker, while everything else hangs."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import current_app

from farm.accounts.models import Team, Tick, User
from farm.alerts.models import Channel, Delivery
from farm.alerts.states import DeliveryState
from farm.alerts.tasks import MAX_CONCURRENT_DELIVERIES
from farm.config.processes import TICKS
from farm.contract.reports import EndReport
from farm.contract.version import DELIVERY_QUEUE, PREPARE_QUEUE
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.registry.services import messages
from farm.runs.models import Run
from farm.runs.states import BlockState, RunState
from tests.conftest import PROJECT, farm_environment
from tests.integration.alerts.receiver import Receiver, receiving
from tests.integration.runs.making import claim, first_block, make_node, make_run, make_version, reports_of, say
from tests.processes import Process, wait_for

pytestmark = pytest.mark.slow
DISPATCH = "runs.tick"
# beat rings once a second; a machine that others share may take longer, a farm that stands still takes for ever
MOST_S = 8.0


@pytest.fixture
def ticks(transactional_db: None, empty_broker: str, tmp_path: Path) -> Iterator[Process]:
    """The farm's own ticking worker, as deploy/process and quickstart start it."""
    environment = farm_environment() | {"ONNXFARM_WEBHOOK_NETWORKS": "127.0.0.1/32", "ONNXFARM_INDEX_POLL_S": "0"}
    with Process(TICKS.make_command(), env=environment, log=tmp_path / "ticks.log", cwd=PROJECT) as worker:
        wait_for(Tick.objects.filter(name=DISPATCH).exists, what="the first tick", seconds=40)
        yield worker


def goes_on_ticking(times: int) -> None:
    """So many more dispatches end, each soon after the one before."""
    for _ in range(times):
        before = Tick.objects.get(name=DISPATCH).ended_at
        after = Tick.objects.filter(name=DISPATCH, ended_at__gt=before)
        wait_for(after.exists, what="the next tick", seconds=MOST_S)


def make_deliveries(team: Team, receiver: Receiver, count: int) -> list[Delivery]:
    """A message for each of so many channels."""
    rows = []
    for number in range(count):
        channel = Channel.objects.create(team=team, name=f"hook {number}", kind="webhook", target=receiver.url)
        rows.append(
            Delivery.objects.create(channel=channel, cause="test", message_id=f"{team.pk}-{number}", kind="test")
        )
    for row in rows:
        messages.send_hint(messages.DELIVER, row.pk, queue=DELIVERY_QUEUE)
    return rows


def waiting() -> int:
    with current_app.connection_for_write() as connection:
        return int(connection.default_channel.client.llen(PREPARE_QUEUE))


def test_ticks_go_on_while_nobody_has_time_for_a_hundred_slow_makings(ticks: Process) -> None:
    for number in range(100):
        messages.send_hint(messages.MAKE_VARIANT, number)
    goes_on_ticking(3)
    assert waiting() == 100


def test_ticks_go_on_while_thirty_receivers_hang(ticks: Process, team: Team, stranger: User) -> None:
    other = stranger.memberships.get().team
    with receiving(pause_s=60.0) as hanging, receiving() as honest:
        make_deliveries(team, hanging, 30)
        wait_for(lambda: len(hanging.seen) > 0, what="the first message", seconds=20)
        goes_on_ticking(3)
        # one team's hanging receivers leave room for another team's
        (told,) = make_deliveries(other, honest, 1)
        wait_for(
            lambda: Delivery.objects.get(pk=told.pk).state == DeliveryState.SENT, what="the other team's", seconds=20
        )
        assert Delivery.objects.filter(state=DeliveryState.SENDING).count() <= MAX_CONCURRENT_DELIVERIES


def test_a_message_in_the_queue_of_before_the_upgrade_is_not_left_lying(prepare_worker: Process, team: Team) -> None:
    with receiving() as honest:
        (told,) = make_deliveries(team, honest, 1)
        current_app.send_task(messages.DELIVER, args=[told.pk], queue=PREPARE_QUEUE)
        gone = Delivery.objects.filter(pk=told.pk).exclude(state=DeliveryState.WAITING)
        wait_for(gone.exists, what="the old message", seconds=20)


def measured(team: Team, owner: User) -> Run:
    """A run whose only block has reported."""
    node = Node.objects.filter(team=team).first() or make_node(team, owner=owner)
    run = make_run(Version.objects.first() or make_version(team), owner)
    lease = claim(node, first_block(run))
    for report in [*reports_of(lease, {0: 1.0, 1: 1.2, 2: 1.0}), EndReport(wall_s=1.0)]:
        say(node, lease, report)
    return run


def finished(run: Run) -> Callable[[], bool]:
    return Run.objects.filter(pk=run.pk, state=RunState.FINISHED).exists


def test_a_reported_block_is_settled_though_who_should_was_killed_and_its_message_lost(
    ticks: Process, empty_broker: str, team: Team, owner: User, tmp_path: Path
) -> None:
    wait_for(finished(measured(team, owner)), what="the block that was rung", seconds=20)
    ticks.kill()
    ticks.child.wait(60)
    lost = measured(team, owner)
    with current_app.connection_for_write() as connection:
        connection.default_channel.client.flushall()
    assert lost.blocks.get().state == BlockState.REPORTED
    with Process(TICKS.make_command(), env=farm_environment(), log=tmp_path / "again.log", cwd=PROJECT):
        wait_for(finished(lost), what="the block of which nobody knew", seconds=40)


def test_a_killed_worker_ticks_again_when_it_is_started_again(ticks: Process, tmp_path: Path) -> None:
    ticks.kill()
    ticks.child.wait(60)
    time.sleep(1.0)
    with Process(TICKS.make_command(), env=farm_environment(), log=tmp_path / "again.log", cwd=PROJECT):
        before = Tick.objects.get(name=DISPATCH).ended_at
        after = Tick.objects.filter(name=DISPATCH, ended_at__gt=before)
        wait_for(after.exists, what="a tick of the second worker", seconds=40)
